"""The topics that hold the state of groups and of transactions. What is not said otherwise holds only for the
moment when such a topic is created."""

from __future__ import annotations

from headrace.config.declare import int16, int32
from headrace.config.property import Status


class InternalTopicProperties:
    offsets_topic_num_partitions = int32(
        "offsets.topic.num.partitions",
        50,
        "Partitions of the topic that holds the groups' offsets.",
        at_least=1,
    )
    offsets_topic_replication_factor = int16(
        "offsets.topic.replication.factor",
        3,
        "Replicas of the topic that holds the groups' offsets, which is created when so many brokers are"
        " alive; in a cluster of fewer registered brokers, as many as those.",
        at_least=1,
    )
    offsets_topic_segment_bytes = int32(
        "offsets.topic.segment.bytes",
        104_857_600,
        "Size of a segment of the topic that holds the groups' offsets; at least 1 MiB is taken.",
        at_least=1,
    )
    offsets_topic_compression_codec = int32(
        "offsets.topic.compression.codec",
        0,
        "How a broker compresses what it writes there: 0 not at all, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
        check=lambda value: None if 0 <= value <= 4 else "use 0 to 4",
    )
    offsets_commit_timeout_ms = int32(
        "offsets.commit.timeout.ms",
        5_000,
        "How long a request to a group waits for the replicas of what it changed.",
        at_least=1,
    )
    offsets_load_buffer_size = int32(
        "offsets.load.buffer.size",
        5_242_880,
        "Bytes that are read at once when groups are loaded. Always 256 KB here, so that others have turns.",
        at_least=1,
        status=Status.LATER,
    )
    transaction_state_log_num_partitions = int32(
        "transaction.state.log.num.partitions",
        50,
        "Partitions of the topic that holds the state of transactions.",
        at_least=1,
    )
    transaction_state_log_replication_factor = int16(
        "transaction.state.log.replication.factor",
        3,
        "Replicas of the topic that holds the state of transactions, which is created when so many"
        " brokers are alive; in a cluster of fewer registered brokers, as many as those.",
        at_least=1,
    )
    transaction_state_log_segment_bytes = int32(
        "transaction.state.log.segment.bytes",
        104_857_600,
        "Size of a segment of the topic that holds the state of transactions; at least 1 MiB is taken.",
        at_least=1,
    )
    transaction_state_log_min_isr = int32(
        "transaction.state.log.min.isr",
        2,
        "Replicas of that topic that must be in sync; all of them if there are fewer.",
        at_least=1,
    )
    transaction_state_log_load_buffer_size = int32(
        "transaction.state.log.load.buffer.size",
        5_242_880,
        "Bytes that are read at once when transactions are loaded. Always 256 KB here.",
        at_least=1,
        status=Status.LATER,
    )
