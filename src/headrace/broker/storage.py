"""Opens the log directories of a broker: identity, locks, recovery, and the metadata log among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from headrace.broker.cluster import description
from headrace.config.broker import BrokerConfig
from headrace.config.topic import TopicConfig, resolve_topic
from headrace.controller.log_journal import METADATA_LOG_CONFIGS
from headrace.controller.topic_names import METADATA_TOPIC
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

if TYPE_CHECKING:
    from headrace.broker.broker import Broker

METADATA_PARTITION: Final = TopicPartition(METADATA_TOPIC, 0)
METADATA_TOPIC_ID: Final = UUID(int=1)
"""Kafka's own id of the metadata log."""


class Storage(NamedTuple):
    logs: LogManager
    metadata_log: PartitionLog
    cluster_id: str
    high_watermarks: dict[TopicPartition, int]
    """As they were checkpointed."""


async def open_storage(broker: Broker, shared: Coordination | None) -> Storage:
    """Blocking work (locks, recovery) happens in a thread; the loop only waits.

    In a cluster the id comes from the service they share, and only a broker without data may make one.
    """
    loop = broker.loop
    known = _cluster_id(broker.disk, broker.static_config)
    cluster_id = known or encode_uuid(_new_uuid(broker))
    if shared is not None:
        cluster_id = await shared.claim_cluster_id(cluster_id, directories_empty=known is None)

    def on_failure(directory: LogDirectory, error: StorageError) -> None:
        loop.call_soon_threadsafe(_report, broker, directory, error)

    return await loop.run_in_executor(None, _open, broker, cluster_id, shared is None, on_failure)


def _report(broker: Broker, directory: LogDirectory, error: StorageError) -> None:
    broker.log.error("log directory offline", directory=directory.path, error=str(error))
    logs = getattr(broker, "logs", None)
    if logs is None:
        return  # still opening: the broker registers with the directories that work
    if not logs.online():
        broker.give_up(StorageError("every log directory is offline"))
        return
    broker.on_directory_failed(directory)


def _on_loss(directory: LogDirectory) -> None:
    """Here and now, in whichever thread met it: a process that is killed before the loop comes to it would
    leave a proof of what may be gone."""
    description.forget(directory.disk, directory.path)


def _open(
    broker: Broker,
    cluster_id: str,
    alone: bool,
    on_failure: Callable[[LogDirectory, StorageError], None],
) -> Storage:
    config = broker.static_config
    logs = LogManager(
        broker.disk,
        config.data_directories,
        DirectoryIdentity(cluster_id, broker.broker_id),
        _config_before_metadata(config),
        new_uuid=lambda: _new_uuid(broker),
        threads_per_directory=config.num_recovery_threads_per_data_dir,
        on_failure=on_failure,
        on_loss=_on_loss,
    )
    now_ms = broker.clock.wall_ms()
    high_watermarks = logs.open_all(now_ms)
    try:
        metadata_log = _metadata_log(logs, now_ms, alone)
    except BaseException:
        logs.release()
        raise
    for partition, error in logs.quarantined.items():
        broker.log.error("partition quarantined", partition=str(partition), error=str(error))
    return Storage(logs, metadata_log, cluster_id, high_watermarks)


def _metadata_log(logs: LogManager, now_ms: int, alone: bool) -> PartitionLog:
    """The log that says which topics exist. A new one is begun only where nothing can be forgotten by it:
    in a cluster it is a copy, and a broker that has lost it fetches it again."""
    if METADATA_PARTITION in logs.quarantined:
        raise logs.quarantined[METADATA_PARTITION]
    if METADATA_PARTITION in logs.logs:
        return logs.get(METADATA_PARTITION)
    offline = [str(directory.failure) for directory in logs.directories if not directory.is_online]
    if alone and (offline or logs.logs or logs.quarantined):
        raise StorageError(
            f"no working log directory holds {METADATA_PARTITION}, which says what topics exist: "
            + ("; ".join(offline) or "put it back from a copy, or begin with empty directories")
        )
    return logs.create(METADATA_PARTITION, NO_TOPIC_ID, now_ms, directory=logs.online()[0])


def _new_uuid(broker: Broker) -> UUID:
    return UUID(bytes=broker.random.randbytes(16), version=4)


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
