"""The cleaner, which compacts topics with cleanup.policy=compact, and its defaults for topics."""

from __future__ import annotations

from headrace.config import topic_properties as topic
from headrace.config.declare import boolean, int32, int64, real
from headrace.config.property import UpdateMode


class CleanerProperties:
    log_cleaner_enable = boolean("log.cleaner.enable", True, "Run the cleaner, which compacts topics by key.")
    log_cleaner_threads = int32(
        "log.cleaner.threads",
        1,
        "Processes of the cleaner. They run only while there is something to clean.",
        at_least=0,
        update=UpdateMode.CLUSTER_WIDE,
    )
    log_cleaner_backoff_ms = int64(
        "log.cleaner.backoff.ms",
        15_000,
        "Pause of the cleaner when there is nothing to do.",
        at_least=0,
        update=UpdateMode.CLUSTER_WIDE,
    )
    log_cleaner_dedupe_buffer_size = int64(
        "log.cleaner.dedupe.buffer.size",
        134_217_728,
        "Memory for the table of keys, over all workers. A key takes about 200 bytes of it. What does not "
        "fit is cleaned in another pass.",
        update=UpdateMode.CLUSTER_WIDE,
    )
    log_cleaner_io_buffer_size = int32(
        "log.cleaner.io.buffer.size",
        524_288,
        "Memory for reading and writing, over all workers.",
        at_least=0,
        update=UpdateMode.CLUSTER_WIDE,
    )
    log_cleaner_io_buffer_load_factor = real(
        "log.cleaner.io.buffer.load.factor",
        0.9,
        "How full the table of keys may become.",
        update=UpdateMode.CLUSTER_WIDE,
    )
    log_cleaner_io_max_bytes_per_second = real(
        "log.cleaner.io.max.bytes.per.second",
        1.7976931348623157e308,
        "Bytes a second that the cleaner reads and writes at most.",
        update=UpdateMode.CLUSTER_WIDE,
    )
    log_cleaner_delete_retention_ms = topic.DELETE_RETENTION_MS.at_broker_level(
        "log.cleaner.delete.retention.ms"
    )
    log_cleaner_min_cleanable_ratio = topic.MIN_CLEANABLE_DIRTY_RATIO.at_broker_level(
        "log.cleaner.min.cleanable.ratio"
    )
    log_cleaner_min_compaction_lag_ms = topic.MIN_COMPACTION_LAG_MS.at_broker_level(
        "log.cleaner.min.compaction.lag.ms"
    )
    log_cleaner_max_compaction_lag_ms = topic.MAX_COMPACTION_LAG_MS.at_broker_level(
        "log.cleaner.max.compaction.lag.ms"
    )
