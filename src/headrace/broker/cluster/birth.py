"""The first records of a cluster, written before any of its brokers has started.

A cluster whose listeners all ask for a password could otherwise have no user: nobody may log in to make one.
The users are in the batch that the metadata begins with, so that there is no cluster with half of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import uuid4

from headrace.broker.cluster.metadata_partition import METADATA_PARTITION
from headrace.config.broker import BrokerConfig
from headrace.config.topic import resolve_topic
from headrace.controller.codec import Payload, encode_metadata_batch, pack
from headrace.controller.features import finalise_first
from headrace.controller.image import MetadataImage
from headrace.controller.log_journal import METADATA_LOG_CONFIGS, LogJournal
from headrace.controller.operations import RecordGroup
from headrace.controller.scram import alter_credentials
from headrace.controller.security_operations import ScramUpsertion
from headrace.coordination.local import LocalCoordination
from headrace.core.errors import ConfigError, HeadraceError
from headrace.core.ids import NO_TOPIC_ID, BrokerId
from headrace.core.ports import Disk
from headrace.core.ports_coordination import (
    ClusterIdMissing,
    ControllerFenced,
    Coordination,
    SequenceTaken,
)
from headrace.log import files
from headrace.log.checkpoints import encode_uuid
from headrace.log.directory_identity import DirectoryIdentity, read_meta_properties
from headrace.log.manager import LogManager
from headrace.log.os_disk import OsDisk


class ClusterExists(HeadraceError):
    """There is nothing to begin. What is there was not touched."""


async def begin_cluster(
    coordination: Coordination,
    users: Sequence[ScramUpsertion],
    *,
    cluster_id: str,
    broker_id: BrokerId,
    now_ms: int,
) -> str:
    """Write the first batch, and return the cluster's id. It may be run again after it was cut off.

    Raises ClusterExists; what is wrong with a user is raised before anything is written.
    """
    payload = _first_batch(users)
    try:
        cluster_id = await coordination.claim_cluster_id(cluster_id, directories_empty=True)
    except ClusterIdMissing as error:
        raise ClusterExists(str(error)) from None
    if await coordination.end() > 0:
        raise _exists(cluster_id)
    epoch = await coordination.claim_controller(broker_id)
    batch = encode_metadata_batch(payload.values, base_offset=0, controller_epoch=epoch, timestamp_ms=now_ms)
    try:
        await coordination.append(0, batch, epoch)
    except (ControllerFenced, SequenceTaken):  # a broker has started just now, and was faster
        raise _exists(cluster_id) from None
    return cluster_id


def _exists(cluster: str) -> ClusterExists:
    return ClusterExists(
        f"cluster {cluster} has begun already: start its brokers, and use `headrace user create`"
    )


def _first_batch(users: Sequence[ScramUpsertion]) -> Payload:
    image = MetadataImage()
    groups: list[RecordGroup] = list(finalise_first(image).groups)
    for user in users:  # one by one: a request may name nobody twice, a new cluster may
        result = alter_credentials(image, (), (user,))
        for outcome in result.response:
            if outcome.error is not None:
                raise ConfigError(f"user {outcome.user}: {outcome.error}")
        groups += result.groups
    batches = list(pack(groups))
    if len(batches) > 1:
        raise ConfigError("these are too many users to begin with: create the others when it runs")
    return batches[0]


async def begin_standalone(config: BrokerConfig, users: Sequence[ScramUpsertion], *, now_ms: int) -> str:
    """The same in the log directories of a broker that is a cluster of its own. Blocks; no broker runs."""
    disk = OsDisk()
    for path in config.data_directories:
        _require_empty(disk, path)
    known = [read_meta_properties(disk, path).get("cluster.id") for path in config.data_directories]
    cluster_id = next(filter(None, known), None) or encode_uuid(uuid4())
    configs = {METADATA_PARTITION.topic: METADATA_LOG_CONFIGS}
    logs = LogManager(
        disk,
        config.data_directories,
        DirectoryIdentity(cluster_id, config.broker_id),
        lambda topic: resolve_topic(config, {}, {}, configs.get(topic, {})),
        new_uuid=uuid4,
    )
    watermarks = {}
    try:
        watermarks = logs.open_all(now_ms)
        if not logs.online():
            raise ConfigError("; ".join(str(directory.failure) for directory in logs.directories))
        journal = _journal(logs, now_ms=lambda: now_ms)
        await begin_cluster(
            LocalCoordination(journal, cluster_id=cluster_id),
            users,
            cluster_id=cluster_id,
            broker_id=BrokerId(config.broker_id),
            now_ms=now_ms,
        )
    except BaseException:
        logs.release()
        raise
    logs.shut_down(logs.broker_epoch_at_stop, watermarks)
    return cluster_id


def _require_empty(disk: Disk, path: str) -> None:
    """Before anything is opened: to open the logs of a broker and not to close them costs it a recovery."""
    for name in disk.list(path) if disk.is_dir(path) else ():
        partition = files.parse_directory(name)
        if partition == METADATA_PARTITION:
            logs = (each for each in disk.list(f"{path}/{name}") if each.endswith(files.LOG))
            if any(disk.size(f"{path}/{name}/{log}") for log in logs):
                raise _exists(read_meta_properties(disk, path).get("cluster.id", f"in {path}"))
        elif partition is not None:
            raise ClusterExists(f"{path} holds partitions already: begin with empty log directories")


def _journal(logs: LogManager, now_ms: Callable[[], int]) -> LogJournal:
    if METADATA_PARTITION in logs.logs:  # of a beginning that was cut off
        return LogJournal(logs.get(METADATA_PARTITION), now_ms=now_ms)
    return LogJournal(logs.create(METADATA_PARTITION, NO_TOPIC_ID, now_ms()), now_ms=now_ms)
