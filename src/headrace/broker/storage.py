"""Opens the log directories of a broker: identity, locks, recovery, and the metadata log among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from headrace.broker.cluster import description
from headrace.config.broker import BrokerConfig
from headrace.config.topic import TopicConfig, resolve_topic
from headrace.controller.log_journal import METADATA_LOG_CONFIGS, LogJournal
from headrace.controller.store import MetadataStore
from headrace.controller.topic_names import METADATA_TOPIC
from headrace.core.errors import CorruptBatch, CorruptLog, StorageError
from headrace.core.ids import NO_TOPIC_ID, TopicPartition
from headrace.core.ports import Disk
from headrace.core.ports_coordination import ClusterIdMissing, Coordination
from headrace.log.checkpoints import encode_uuid
from headrace.log.directory import LogDirectory
from headrace.log.directory_identity import DirectoryIdentity, read_meta_properties
from headrace.log.files import STRAY_DIRECTORY, parse_directory
from headrace.log.manager import LogManager
from headrace.log.partition_log import PartitionLog

if TYPE_CHECKING:
    from headrace.broker.broker import Broker

METADATA_PARTITION: Final = TopicPartition(METADATA_TOPIC, 0)
MOST_SET_ASIDE: Final = 3
"""Damaged copies of the metadata that are kept."""
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
        wholeness=broker.world.wholeness,
    )
    now_ms = broker.clock.wall_ms()
    high_watermarks = logs.open_all(
        now_ms,
        host_stayed_up=lambda path: _host_stayed_up(broker, path),
        expect_folders=broker.world.wholeness.folders,
    )
    try:
        metadata_log = _metadata_log(broker, logs, now_ms, alone)
    except BaseException:
        logs.release()
        raise
    for partition, error in logs.quarantined.items():
        broker.log.error("partition quarantined", partition=str(partition), error=str(error))
    for file in logs.rebuilt:
        broker.log.warning("file rebuilt from the batches: it was not what had been written", file=file)
    return Storage(logs, metadata_log, cluster_id, high_watermarks)


def _host_stayed_up(broker: Broker, path: str) -> bool:
    """Since the last process registered that had this directory: then its page cache has outlived it."""
    remembered = description.recall(broker.disk, [path])
    return remembered is not None and description.is_same_boot(remembered, broker.world.boot_id)


def _metadata_log(broker: Broker, logs: LogManager, now_ms: int, alone: bool) -> PartitionLog:
    """The log that says which topics exist. A new one is begun only where nothing can be forgotten by it:
    in a cluster it is a copy, and a broker whose copy is lost or damaged fetches it again."""
    damage = logs.quarantined.get(METADATA_PARTITION)
    if damage is not None and alone:
        raise damage
    if damage is not None:
        path = logs.set_quarantined_aside(METADATA_PARTITION)
        broker.log.warning("metadata log damaged; fetching it again", error=str(damage), old_files=path)
    if METADATA_PARTITION in logs.logs:
        return logs.get(METADATA_PARTITION)
    offline = [str(directory.failure) for directory in logs.directories if not directory.is_online]
    if alone and (offline or logs.logs or logs.quarantined):
        raise StorageError(
            f"no working log directory holds {METADATA_PARTITION}, which says what topics exist: "
            + ("; ".join(offline) or "put it back from a copy, or begin with empty directories")
        )
    return logs.create(METADATA_PARTITION, NO_TOPIC_ID, now_ms, directory=logs.online()[0])


async def load_metadata(
    broker: Broker, storage: Storage, make_store: Callable[[Storage, LogJournal], MetadataStore]
) -> tuple[Storage, LogJournal, MetadataStore]:
    """Replay the metadata. In a cluster a copy that cannot be replayed is set aside, and fetched again.

    Raises CorruptLog or CorruptBatch where it is the only one, and where that was done before: what cannot be
    replayed however often it is fetched is not the fault of a file.
    """
    journal = LogJournal(storage.metadata_log, now_ms=broker.clock.wall_ms, offload=broker.offload)
    store = make_store(storage, journal)
    try:
        await store.load()
    except (CorruptLog, CorruptBatch) as damage:
        anew = await broker.loop.run_in_executor(None, _begin_metadata_anew, broker, storage, damage)
        if anew is None:
            raise
        return await load_metadata(broker, anew, make_store)
    return storage, journal, store


def _begin_metadata_anew(broker: Broker, storage: Storage, damage: Exception) -> Storage | None:
    logs = storage.logs
    names = [name for directory in logs.online() for name in logs.disk.list(directory.path)]
    if broker.is_standalone or sum(map(_is_old_metadata, names)) >= MOST_SET_ASIDE:
        return None
    logs.quarantine(METADATA_PARTITION, CorruptLog(str(damage)))
    return storage._replace(metadata_log=_metadata_log(broker, logs, broker.clock.wall_ms(), alone=False))


def _is_old_metadata(name: str) -> bool:
    return name.startswith(f"{METADATA_PARTITION}.") and name.endswith(STRAY_DIRECTORY)


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
