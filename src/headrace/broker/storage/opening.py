"""Opens the log directories of a broker: identity, locks, recovery, and the metadata log among them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple
from uuid import UUID

from headrace.broker.cluster import description
from headrace.broker.cluster.metadata_partition import METADATA_PARTITION
from headrace.broker.runtime.runtime import Runtime
from headrace.broker.storage.log_dir_failures import LogDirFailures
from headrace.config.broker import BrokerConfig
from headrace.config.topic import TopicConfig, resolve_topic
from headrace.controller.log_journal import METADATA_LOG_CONFIGS
from headrace.core.errors import StorageError
from headrace.core.ids import NO_TOPIC_ID, TopicPartition
from headrace.core.ports import Disk
from headrace.core.ports_coordination import ClusterIdMissing, Coordination
from headrace.log.checkpoints import encode_uuid
from headrace.log.directory import LogDirectory
from headrace.log.directory_identity import DirectoryIdentity, read_meta_properties
from headrace.log.files import parse_directory
from headrace.log.manager import LogManager
from headrace.log.partition_log import PartitionLog


class OpenedLogs(NamedTuple):
    logs: LogManager
    metadata_log: PartitionLog
    cluster_id: str
    high_watermarks: dict[TopicPartition, int]
    """As they were checkpointed."""


async def open_storage(
    runtime: Runtime, coordination: Coordination | None, failures: LogDirFailures
) -> OpenedLogs:
    """Blocking work (locks, recovery) happens in a thread; the loop only waits.

    In a cluster the id comes from the service they share, and only a broker without data may make one.
    """
    loop = runtime.loop
    known = _cluster_id(runtime.disk, runtime.static_config)
    cluster_id = known or encode_uuid(_new_uuid(runtime))
    if coordination is not None:
        cluster_id = await coordination.claim_cluster_id(cluster_id, directories_empty=known is None)
    opened = await loop.run_in_executor(None, _open, runtime, cluster_id, failures)
    failures.logs_are_open()
    return opened


def _on_loss(directory: LogDirectory) -> None:
    """Here and now, in whichever thread met it: a process that is killed before the loop comes to it would
    leave a proof of what may be gone."""
    description.forget(directory.disk, directory.path)


def _open(runtime: Runtime, cluster_id: str, failures: LogDirFailures) -> OpenedLogs:
    config = runtime.static_config
    logs = LogManager(
        runtime.disk,
        config.data_directories,
        DirectoryIdentity(cluster_id, runtime.broker_id),
        _config_before_metadata(config),
        new_uuid=lambda: _new_uuid(runtime),
        threads_per_directory=config.num_recovery_threads_per_data_dir,
        on_failure=failures.report,
        on_loss=_on_loss,
        wholeness=runtime.environment.wholeness,
    )
    now_ms = runtime.clock.wall_ms()
    high_watermarks = logs.open_all(
        now_ms,
        host_stayed_up=lambda path: _host_stayed_up(runtime, path),
        expect_folders=runtime.environment.wholeness.folders,
    )
    try:
        own = metadata_log(runtime, logs, now_ms)
    except BaseException:
        logs.release()
        raise
    for partition, error in logs.quarantined.items():
        runtime.log.error("partition quarantined", partition=str(partition), error=str(error))
    for file in dict.fromkeys(logs.rebuilt):
        _tell_rebuilt(runtime, file)
    for directory in logs.directories:  # an index may be found to be wrong when it is first asked
        directory.on_rebuilt = partial(_tell_rebuilt, runtime)
    return OpenedLogs(logs, own, cluster_id, high_watermarks)


def _tell_rebuilt(runtime: Runtime, file: str) -> None:
    runtime.log.warning("file rebuilt from the batches: it was not what had been written", file=file)


def _host_stayed_up(runtime: Runtime, path: str) -> bool:
    """Since the last process registered that had this directory: then its page cache has outlived it."""
    remembered = description.recall(runtime.disk, [path])
    return remembered is not None and description.is_same_boot(remembered, runtime.environment.boot_id)


def metadata_log(runtime: Runtime, logs: LogManager, now_ms: int) -> PartitionLog:
    """The log that says which topics exist. A new one is begun only where nothing can be forgotten by it:
    in a cluster it is a copy, and a broker whose copy is lost or damaged fetches it again."""
    damage = logs.quarantined.get(METADATA_PARTITION)
    if damage is not None and runtime.is_standalone:
        raise damage
    if damage is not None:
        path = logs.set_quarantined_aside(METADATA_PARTITION)
        runtime.log.warning("metadata log damaged; fetching it again", error=str(damage), old_files=path)
    if METADATA_PARTITION in logs.logs:
        return logs.get(METADATA_PARTITION)
    offline = [str(directory.failure) for directory in logs.directories if not directory.is_online]
    if runtime.is_standalone and (offline or logs.logs or logs.quarantined):
        raise StorageError(
            f"no working log directory holds {METADATA_PARTITION}, which says what topics exist: "
            + ("; ".join(offline) or "put it back from a copy, or begin with empty directories")
        )
    return logs.create(METADATA_PARTITION, NO_TOPIC_ID, now_ms, directory=logs.online()[0])


def _new_uuid(runtime: Runtime) -> UUID:
    return UUID(bytes=runtime.random.randbytes(16), version=4)


def _cluster_id(disk: Disk, config: BrokerConfig) -> str | None:
    """What the directories say; None when they are empty, so that a new cluster may begin in them."""
    holds_data = False
    for path in config.data_directories:
        try:
            known = read_meta_properties(disk, path).get("cluster.id")
            names = disk.list(path) if disk.is_dir(path) else ()
        except OSError:
            continue  # it will be offline, and said so, when it is opened
        if known:
            return known
        holds_data = holds_data or any(parse_directory(name) for name in names)
    if holds_data:
        raise ClusterIdMissing(
            "the log directories hold partitions but no meta.properties: start with the directories that hold"
            " it, or with empty ones (`headrace log adopt` brings partitions in)"
        )
    return None


def _config_before_metadata(config: BrokerConfig) -> Callable[[str], TopicConfig]:
    """Logs are opened before the metadata can be read; what a topic overrides is applied afterwards."""
    usual = resolve_topic(config, {}, {}, {})
    metadata = resolve_topic(config, {}, {}, METADATA_LOG_CONFIGS)
    return lambda topic: metadata if topic == METADATA_PARTITION.topic else usual
