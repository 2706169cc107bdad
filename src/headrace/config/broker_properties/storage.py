"""Where the log lies, and the broker's defaults for what each topic may set for itself."""

from __future__ import annotations

from headrace.config import topic_properties as topic
from headrace.config.declare import (
    int32,
    int64,
    names,
    optional_int32,
    optional_int64,
    optional_names,
)
from headrace.config.property import Status, UpdateMode
from headrace.config.values import LONG_MAX


class StorageProperties:
    log_dir = names(
        "log.dir",
        ("/tmp/headrace-logs",),
        "Directory of the log where log.dirs is not set. The default is for a first try only: a system may "
        "empty it at boot.",
    )
    log_dirs = optional_names(
        "log.dirs",
        "Directories of the log, separated by commas, one per disk. A new partition goes to the one with the "
        "fewest.",
    )
    num_recovery_threads_per_data_dir = int32(
        "num.recovery.threads.per.data.dir",
        2,
        "Threads per directory that check logs after an unclean stop and close them at shutdown. The check"
        " comes before the metadata is read and goes by the file; what is set at run time holds at shutdown.",
        at_least=1,
        update=UpdateMode.CLUSTER_WIDE,
    )
    log_segment_bytes = topic.SEGMENT_BYTES.at_broker_level("log.segment.bytes")
    log_roll_ms = optional_int64(
        "log.roll.ms",
        "Age at which a segment that is not full is closed. Stronger than log.roll.hours.",
        at_least=1,
        update=UpdateMode.CLUSTER_WIDE,
        topic_name="segment.ms",
        aliases=("log.segment.ms",),
    )
    log_roll_hours = int32(
        "log.roll.hours",
        168,
        "Age in hours at which a segment that is not full is closed. Used where log.roll.ms is not set.",
        at_least=1,
        topic_name="segment.ms",
    )
    log_roll_jitter_ms = optional_int64(
        "log.roll.jitter.ms",
        "Up to this much is taken off the roll time, by chance. Stronger than log.roll.jitter.hours.",
        at_least=0,
        update=UpdateMode.CLUSTER_WIDE,
        topic_name="segment.jitter.ms",
    )
    log_roll_jitter_hours = int32(
        "log.roll.jitter.hours",
        0,
        "Up to this many hours are taken off the roll time. Used where log.roll.jitter.ms is not set.",
        at_least=0,
        topic_name="segment.jitter.ms",
    )
    log_index_interval_bytes = topic.INDEX_INTERVAL_BYTES.at_broker_level("log.index.interval.bytes")
    log_index_size_max_bytes = topic.SEGMENT_INDEX_BYTES.at_broker_level("log.index.size.max.bytes")
    log_retention_ms = optional_int64(
        "log.retention.ms",
        "Age at which a segment is deleted; -1 sets no limit. Stronger than log.retention.minutes.",
        check=lambda value: "use -1 for no limit, or at least 1" if value == 0 else None,
        update=UpdateMode.CLUSTER_WIDE,
        topic_name="retention.ms",
    )
    log_retention_minutes = optional_int32(
        "log.retention.minutes",
        "Age in minutes at which a segment is deleted. Stronger than log.retention.hours.",
        check=lambda value: "use -1 for no limit, or at least 1" if value == 0 else None,
        topic_name="retention.ms",
    )
    log_retention_hours = int32(
        "log.retention.hours",
        168,
        "Age in hours at which a segment is deleted. Used where neither .ms nor .minutes is set.",
        check=lambda value: "use -1 for no limit, or at least 1" if value == 0 else None,
        topic_name="retention.ms",
    )
    log_retention_bytes = topic.RETENTION_BYTES.at_broker_level("log.retention.bytes")
    log_retention_check_interval_ms = int64(
        "log.retention.check.interval.ms",
        300_000,
        "How often the broker looks for segments to delete.",
        at_least=1,
    )
    log_local_retention_ms = topic.LOCAL_RETENTION_MS.at_broker_level("log.local.retention.ms")
    log_local_retention_bytes = topic.LOCAL_RETENTION_BYTES.at_broker_level("log.local.retention.bytes")
    log_flush_interval_messages = topic.FLUSH_MESSAGES.at_broker_level("log.flush.interval.messages")
    log_flush_interval_ms = optional_int64(
        "log.flush.interval.ms",
        "Sync a log when its oldest unsynced record is this old; log.flush.scheduler.interval.ms if not set.",
        at_least=0,
        update=UpdateMode.CLUSTER_WIDE,
        topic_name="flush.ms",
    )
    log_flush_scheduler_interval_ms = int64(
        "log.flush.scheduler.interval.ms",
        LONG_MAX,
        "How often the broker looks for logs to sync by age.",
        at_least=1,
        topic_name="flush.ms",
    )
    log_flush_offset_checkpoint_interval_ms = int32(
        "log.flush.offset.checkpoint.interval.ms",
        60_000,
        "How often the point up to which each log is synced is written down.",
        at_least=0,
    )
    log_flush_start_offset_checkpoint_interval_ms = int32(
        "log.flush.start.offset.checkpoint.interval.ms",
        60_000,
        "How often the first offset of each log is written down. So far that happens together with the "
        "recovery points, by log.flush.offset.checkpoint.interval.ms.",
        at_least=0,
        status=Status.LATER,
    )
    log_segment_delete_delay_ms = topic.FILE_DELETE_DELAY_MS.at_broker_level("log.segment.delete.delay.ms")
    log_preallocate = topic.PREALLOCATE.at_broker_level("log.preallocate")
    log_cleanup_policy = topic.CLEANUP_POLICY.at_broker_level("log.cleanup.policy")
    log_message_timestamp_type = topic.MESSAGE_TIMESTAMP_TYPE.at_broker_level("log.message.timestamp.type")
    log_message_timestamp_before_max_ms = topic.MESSAGE_TIMESTAMP_BEFORE_MAX_MS.at_broker_level(
        "log.message.timestamp.before.max.ms"
    )
    log_message_timestamp_after_max_ms = topic.MESSAGE_TIMESTAMP_AFTER_MAX_MS.at_broker_level(
        "log.message.timestamp.after.max.ms"
    )
    message_max_bytes = topic.MAX_MESSAGE_BYTES.at_broker_level("message.max.bytes")
    compression_type = topic.COMPRESSION_TYPE.at_broker_level("compression.type")
    compression_gzip_level = topic.COMPRESSION_GZIP_LEVEL.at_broker_level("compression.gzip.level")
    compression_lz4_level = topic.COMPRESSION_LZ4_LEVEL.at_broker_level("compression.lz4.level")
    compression_zstd_level = topic.COMPRESSION_ZSTD_LEVEL.at_broker_level("compression.zstd.level")
    producer_id_expiration_ms = int32(
        "producer.id.expiration.ms",
        86_400_000,
        "How long a partition remembers an idempotent producer that is silent.",
        at_least=1,
        update=UpdateMode.CLUSTER_WIDE,
    )
    headrace_log_scrub_bytes_per_second = int64(
        "headrace.log.scrub.bytes.per.second",
        4 * 1024 * 1024,
        "How fast the scrub reads sealed segments, to find damage that nobody reads. 0 turns it off.",
        at_least=0,
        update=UpdateMode.CLUSTER_WIDE,
    )
    headrace_log_scrub_interval_ms = int64(
        "headrace.log.scrub.interval.ms",
        7 * 24 * 3_600_000,
        "From the beginning of one pass of the scrub over all sealed segments to that of the next.",
        at_least=1,
        update=UpdateMode.CLUSTER_WIDE,
    )
    headrace_log_dir_min_free_bytes = optional_int64(
        "headrace.log.dir.min.free.bytes",
        "While a log directory has less room than this, producers are told to try again; all else goes on. "
        "If not set: a twentieth of the file system, 10 GiB at most. 0 refuses only what does not fit.",
        at_least=0,
        update=UpdateMode.CLUSTER_WIDE,
    )
    log_dir_failure_timeout_ms = int64(
        "log.dir.failure.timeout.ms",
        30_000,
        "How long a broker with a failed directory tries to tell the controller before it stops.",
        at_least=1,
        status=Status.LATER,
    )
