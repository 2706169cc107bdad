"""Replays the metadata log at the start of a broker."""

from __future__ import annotations

from typing import Final

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.cluster.metadata_partition import METADATA_PARTITION, METADATA_TOPIC_ID
from headrace.broker.runtime.runtime import Runtime
from headrace.broker.storage.opening import OpenedLogs, metadata_log
from headrace.controller.checkpoint_files import CheckpointFiles
from headrace.controller.declared_schema import DeclaredSchema
from headrace.controller.log_journal import LogJournal
from headrace.controller.machine import ControllerMachine
from headrace.controller.store import MetadataStore
from headrace.controller.topics import TopicDefaults
from headrace.core.errors import CorruptBatch, CorruptLog
from headrace.log.files import STRAY_DIRECTORY
from headrace.replication.partition import Partition

MOST_SET_ASIDE: Final = 3
"""Damaged copies of the metadata that are kept."""


async def load_metadata(runtime: Runtime, opened: OpenedLogs) -> tuple[LogJournal, MetadataCache]:
    """In a cluster a copy that cannot be replayed is set aside, and fetched again.

    Raises CorruptLog or CorruptBatch where it is the only one, and where that was done before: what cannot be
    replayed however often it is fetched is not the fault of a file.
    """
    log = opened.metadata_log
    journal = LogJournal(log, now_ms=runtime.clock.wall_ms, offload=runtime.offload)
    store = _store(runtime, journal, log.path)
    try:
        await store.load()
    except (CorruptLog, CorruptBatch) as damage:
        anew = await runtime.loop.run_in_executor(None, _begin_metadata_anew, runtime, opened, damage)
        if anew is None:
            raise
        return await load_metadata(runtime, anew)
    log.vouch()  # no other log's records can be replayed
    metrics = runtime.metrics.topic(METADATA_PARTITION.topic)
    partition = Partition(METADATA_PARTITION, METADATA_TOPIC_ID, log, metrics)
    return journal, MetadataCache(runtime, store, partition, opened.cluster_id)


def _store(runtime: Runtime, journal: LogJournal, folder: str) -> MetadataStore:
    config = runtime.static_config
    machine = ControllerMachine(
        schema=DeclaredSchema(config),
        random=runtime.random,
        defaults=TopicDefaults(
            config.num_partitions,
            config.default_replication_factor,
            config.min_insync_replicas,
            config.unclean_leader_election_enable,
        ),
        safeguards=runtime.environment.controller_safeguards,
    )
    checkpoints = CheckpointFiles(runtime.disk, folder, offload=runtime.offload)
    store = MetadataStore(machine, journal, checkpoints=checkpoints)
    store.on_subscriber_error = lambda error: runtime.loop.call_exception_handler(
        {"message": "a subscriber of the metadata failed", "exception": error}
    )
    return store


def _begin_metadata_anew(runtime: Runtime, opened: OpenedLogs, damage: Exception) -> OpenedLogs | None:
    logs = opened.logs
    names = [name for directory in logs.online() for name in logs.disk.list(directory.path)]
    if runtime.is_standalone or sum(map(_is_old_metadata, names)) >= MOST_SET_ASIDE:
        return None
    logs.quarantine(METADATA_PARTITION, CorruptLog(str(damage)))
    return opened._replace(metadata_log=metadata_log(runtime, logs, runtime.clock.wall_ms()))


def _is_old_metadata(name: str) -> bool:
    return name.startswith(f"{METADATA_PARTITION}.") and name.endswith(STRAY_DIRECTORY)
