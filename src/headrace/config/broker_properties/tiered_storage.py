"""Tiered storage: sealed segments of topics in an object store."""

from __future__ import annotations

from headrace.config.declare import boolean, int32, int64, optional_text
from headrace.config.property import UpdateMode
from headrace.config.values import LONG_MAX


class TieredStorageProperties:
    remote_log_storage_system_enable = boolean(
        "remote.log.storage.system.enable",
        False,
        "Let topics keep their history in an object store (remote.storage.enable). All brokers of a cluster "
        "need it, with the same headrace.tier.url.",
    )
    headrace_tier_url = optional_text(
        "headrace.tier.url",
        "The bucket, or a prefix of one: s3://BUCKET/PREFIX, gs:// or az://. Credentials come from the "
        "environment of the process, as with `headrace tier check`. Never change it while topics have "
        "history there.",
    )
    headrace_tier_endpoint = optional_text(
        "headrace.tier.endpoint",
        "Where a store is that speaks S3 and is not Amazon's. HTTP is spoken where it begins with http://.",
    )
    headrace_tier_region = optional_text("headrace.tier.region", "The region of an S3 bucket.")
    headrace_tier_call_timeout_ms = int32(
        "headrace.tier.call.timeout.ms",
        30_000,
        "How long the object store may take to answer one call. An upload has a second more for each MB.",
        at_least=1,
    )
    headrace_tier_cache_bytes = int64(
        "headrace.tier.cache.bytes",
        1_073_741_824,
        "Bytes of history that stay on the broker's disk after they were fetched for a consumer. The least "
        "recently read go first.",
        at_least=4 * 1024 * 1024,
    )
    headrace_tier_delete_delay_ms = int64(
        "headrace.tier.delete.delay.ms",
        3_600_000,
        "How long an object stays in the store after nothing refers to it any more, so that jobs that read "
        "it can end.",
        at_least=0,
    )
    remote_log_manager_copier_thread_pool_size = int32(
        "remote.log.manager.copier.thread.pool.size",
        10,
        "Threads that copy segments to the object store. Each copies one segment at a time.",
        at_least=1,
        update=UpdateMode.CLUSTER_WIDE,
    )
    remote_log_reader_threads = int32(
        "remote.log.reader.threads",
        10,
        "Threads that fetch from the object store for consumers, 4 MB at a time.",
        at_least=1,
        update=UpdateMode.CLUSTER_WIDE,
    )
    remote_log_manager_task_interval_ms = int64(
        "remote.log.manager.task.interval.ms",
        30_000,
        "How often each partition is looked at for segments to copy, and for local segments to delete.",
        at_least=1,
    )
    remote_log_manager_copy_max_bytes_per_second = int64(
        "remote.log.manager.copy.max.bytes.per.second",
        LONG_MAX,
        "Bytes a second that this broker copies to the object store. A segment is copied at once, and the "
        "next one waits until the average is kept.",
        at_least=1,
        update=UpdateMode.CLUSTER_WIDE,
    )
    remote_fetch_max_wait_ms = int32(
        "remote.fetch.max.wait.ms",
        500,
        "How long a fetch waits for the object store before it is answered with what there is. The download "
        "goes on, and the next fetch finds it.",
        at_least=1,
        update=UpdateMode.CLUSTER_WIDE,
    )
