"""Topics and replication."""

from __future__ import annotations

from headrace.config import topic_properties as topic
from headrace.config.broker_properties.network import buffer_size
from headrace.config.declare import boolean, int32, int64, optional_text
from headrace.config.property import UpdateMode
from headrace.config.values import LONG_MAX

LEADER_SELECTOR = "org.apache.kafka.common.replica.LeaderSelector"
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
"""Kafka's class names: a file that was written for it can be used as it is."""


class TopicCreationProperties:
    auto_create_topics_enable = boolean(
        "auto.create.topics.enable",
        True,
        "Create a topic when a client that allows it asks for one that does not exist.",
    )
    delete_topic_enable = boolean(
        "delete.topic.enable", True, "Allow topics to be deleted. If false, DeleteTopics is refused."
    )
    num_partitions = int32(
        "num.partitions", 1, "Partitions of a topic that is created without a number.", at_least=1
    )
    default_replication_factor = int32(
        "default.replication.factor",
        1,
        "Replicas of a topic that is created without a number.",
        at_least=1,
    )


class ReplicationProperties:
    min_insync_replicas = topic.MIN_INSYNC_REPLICAS.at_broker_level("min.insync.replicas")
    unclean_leader_election_enable = topic.UNCLEAN_LEADER_ELECTION_ENABLE.at_broker_level(
        "unclean.leader.election.enable"
    )
    replica_lag_time_max_ms = int64(
        "replica.lag.time.max.ms",
        30_000,
        "A follower that has not been level with its leader for this long is no longer in sync.",
        at_least=1,
    )
    replica_fetch_max_bytes = int32(
        "replica.fetch.max.bytes",
        1_048_576,
        "Bytes per partition that a follower asks for at once. A larger first batch still comes whole.",
        at_least=0,
    )
    replica_fetch_response_max_bytes = int32(
        "replica.fetch.response.max.bytes",
        10_485_760,
        "Bytes that a follower asks for at once, over all partitions.",
        at_least=0,
    )
    replica_fetch_min_bytes = int32(
        "replica.fetch.min.bytes",
        1,
        "Bytes that must be there before a follower's fetch is answered early.",
    )
    replica_fetch_wait_max_ms = int32(
        "replica.fetch.wait.max.ms",
        500,
        "How long a follower's fetch waits for data.",
    )
    replica_fetch_backoff_ms = int32(
        "replica.fetch.backoff.ms",
        1_000,
        "Pause of a follower after a failed fetch.",
        at_least=0,
    )
    replica_socket_timeout_ms = int32(
        "replica.socket.timeout.ms",
        30_000,
        "How long a broker waits for the answer of another one before it gives the connection up.",
    )
    replica_socket_receive_buffer_bytes = int32(
        "replica.socket.receive.buffer.bytes",
        -1,
        "Receive buffer of a broker's socket to another one; -1 leaves it to the system.",
        check=buffer_size,
    )
    num_replica_fetchers = int32(
        "num.replica.fetchers",
        1,
        "Connections that a follower opens to each leader. One event loop serves them all, so one is enough.",
        at_least=1,
        update=UpdateMode.CLUSTER_WIDE,
    )
    replica_high_watermark_checkpoint_interval_ms = int64(
        "replica.high.watermark.checkpoint.interval.ms",
        5_000,
        "How often the high watermark of each partition is written down. What was committed after it, and is "
        "missing after a kill, is not missed.",
        at_least=1,
    )
    auto_leader_rebalance_enable = boolean(
        "auto.leader.rebalance.enable",
        True,
        "Give leadership back to the preferred replica from time to time.",
    )
    leader_imbalance_check_interval_seconds = int64(
        "leader.imbalance.check.interval.seconds",
        300,
        "How often the controller looks for leaderships to give back.",
        at_least=1,
    )
    replica_selector_class = optional_text(
        "replica.selector.class",
        "Which replica a consumer is sent to: the leader, or with RackAwareReplicaSelector one that is in "
        "sync in the consumer's own rack (client.rack).",
        allowed=(LEADER_SELECTOR, RACK_AWARE_SELECTOR),
    )
    leader_replication_throttled_rate = int64(
        "leader.replication.throttled.rate",
        LONG_MAX,
        "Bytes a second that this broker sends to the throttled replicas of the partitions that it leads.",
        at_least=0,
        update=UpdateMode.CLUSTER_WIDE,
        internal=True,
    )
    follower_replication_throttled_rate = int64(
        "follower.replication.throttled.rate",
        LONG_MAX,
        "Bytes a second that this broker fetches for its own throttled replicas.",
        at_least=0,
        update=UpdateMode.CLUSTER_WIDE,
        internal=True,
    )
    replica_alter_log_dirs_io_max_bytes_per_second = int64(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        LONG_MAX,
        "Bytes a second that this broker copies while it moves replicas between its log directories.",
        at_least=0,
        update=UpdateMode.CLUSTER_WIDE,
        internal=True,
    )
