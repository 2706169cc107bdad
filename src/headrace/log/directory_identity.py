"""Whose a log directory is: `meta.properties`, and the lock that keeps a second process out."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from headrace.core.errors import ConfigError, StorageError
from headrace.core.ports import Disk
from headrace.log import checkpoints, files
from headrace.log.directory import LogDirectory
from headrace.log.directory_lock import lock_directory


class DirectoryIdentity(NamedTuple):
    cluster_id: str
    """Empty: not known yet; an existing directory then says it."""
    node_id: int


def adopt_directory(
    disk: Disk,
    path: str,
    identity: DirectoryIdentity,
    new_uuid: Callable[[], UUID],
    on_failure: Callable[[LogDirectory, StorageError], None] | None,
    on_loss: Callable[[LogDirectory], None] | None,
) -> LogDirectory:
    """Make, lock and identify a directory. ConfigError if it is another's; offline if it cannot be used."""
    directory = LogDirectory(disk, path, UUID(int=0), on_failure, on_loss=on_loss)
    try:
        _make_durable(disk, path)
        directory.lock = lock_directory(disk, f"{path}/{checkpoints.LOCK}")
        directory.uuid = _identify(disk, path, identity, new_uuid)
    except OSError as error:
        directory.fail(error, "open it", half_done=True)
    return directory


def _make_durable(disk: Disk, path: str) -> None:
    """Make a directory, and sync every directory that got a new name by it."""
    missing = []
    above = path.rstrip("/")
    while above and not disk.exists(above):
        missing.append(above)
        above = above.rpartition("/")[0]
    disk.make_dirs(path)
    for name in reversed(missing):
        disk.sync_dir(name.rpartition("/")[0] or ("/" if name.startswith("/") else "."))


def _identify(disk: Disk, path: str, identity: DirectoryIdentity, new_uuid: Callable[[], UUID]) -> UUID:
    meta = f"{path}/{checkpoints.META_PROPERTIES}"
    known = read_meta_properties(disk, path)
    if known:
        _check(meta, known, identity)
    try:
        uuid = checkpoints.decode_uuid(known["directory.id"])
    except (KeyError, checkpoints.CorruptCheckpoint):
        uuid = new_uuid()
    wanted = {
        "version": "1",
        "cluster.id": identity.cluster_id or known.get("cluster.id", ""),
        "node.id": str(identity.node_id),
        "directory.id": checkpoints.encode_uuid(uuid),
    }
    if known != wanted:
        files.replace(disk, meta, checkpoints.format_properties(wanted), sync=True)
    return uuid


def read_meta_properties(disk: Disk, path: str) -> dict[str, str]:
    """What a directory says of itself; empty when it is new."""
    try:
        return checkpoints.parse_properties(files.read_all(disk, f"{path}/{checkpoints.META_PROPERTIES}"))
    except FileNotFoundError:
        return {}


def _check(meta: str, known: dict[str, str], identity: DirectoryIdentity) -> None:
    cluster = known.get("cluster.id", "")
    if cluster and identity.cluster_id and cluster != identity.cluster_id:
        raise ConfigError(
            f"{meta} belongs to cluster {cluster}, this broker to {identity.cluster_id}: "
            "correct log.dirs or zookeeper.connect, or empty the directory"
        )
    node = known.get("node.id", known.get("broker.id", ""))
    if node and node != str(identity.node_id):
        raise ConfigError(
            f"{meta} belongs to broker {node}, this broker has broker.id={identity.node_id}: "
            "correct broker.id or log.dirs"
        )
