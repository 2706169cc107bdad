"""Write a broker's copy of the metadata log into a ZooKeeper that has lost everything.

Nobody can take half a log for a whole one. A mark stands while it is written, no broker starts under the
mark, and the last write removes it together with whatever makes the ensemble a cluster: the cluster id, the
controller epoch, and what broker epochs are counted from. A restoration that was cut off is begun anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

from headrace.config.zookeeper_address import ZooKeeperAddress
from headrace.config.zookeeper_security import OPEN, ZooKeeperSecurity
from headrace.coordination.ensemble.metadata_log import MAX_BATCH_BYTES, encode_pointer
from headrace.coordination.ensemble.paths import Paths, sequences_of
from headrace.coordination.ensemble.requests import (
    Exists,
    Missing,
    OtherVersion,
    Refused,
    Stored,
    children,
    create,
    get,
    stored,
)
from headrace.coordination.ensemble.session import Session, make_lasting_nodes
from headrace.coordination.zookeeper import SESSION_TIMEOUT_MS, decode_cluster_id, encode_cluster_id
from headrace.core.errors import ServerError
from headrace.core.ids import BrokerEpoch, ControllerEpoch
from headrace.core.ports_coordination import SnapshotPointer
from headrace.protocol.batch import read_header

_TOGETHER: Final = 200

Operation = Callable[[Any], None]
T = TypeVar("T")
NONE = ControllerEpoch(-1)


class RestoreRefused(ServerError):
    """The ensemble, or the copy, is not what a restoration may start from. What was there is kept."""


async def restore(
    address: ZooKeeperAddress,
    batches: Sequence[bytes],
    *,
    cluster_id: str,
    broker_epoch: BrokerEpoch,
    epoch: ControllerEpoch = NONE,
    snapshot: SnapshotPointer | None = None,
    session_timeout_ms: int = SESSION_TIMEOUT_MS,
    security: ZooKeeperSecurity = OPEN,
) -> ControllerEpoch:
    """Make `batches` the metadata log, and return the controller epoch that stands afterwards.

    That one is above `epoch`, above every one in the copy, and above one that the ensemble knows.
    `broker_epoch` is the highest that the copy tells of: ZooKeeper's own numbers begin anew, and every
    later registration must still get a higher one. `snapshot` is needed if the copy begins above 0.
    """
    raised = max([int(epoch), *_check_copy(batches, snapshot)]) + 1
    session = Session(
        address, timeout_ms=session_timeout_ms, connect_timeout_ms=session_timeout_ms, security=security
    )
    await session.start()
    try:
        paths = Paths(address.chroot)
        await make_lasting_nodes(session, paths.lasting())
        return await _Restoration(session, paths, cluster_id).run(batches, raised, broker_epoch, snapshot)
    finally:
        await session.close()


def _check_copy(batches: Sequence[bytes], snapshot: SnapshotPointer | None) -> Iterator[int]:
    """The controller epochs in the copy, if it is whole."""
    if not batches:
        raise RestoreRefused("the copy holds no metadata at all: choose the log directory of another broker")
    expected = read_header(batches[0]).base_offset
    if expected > 0 and (snapshot is None or snapshot.end_offset < expected):
        raise RestoreRefused(f"the copy begins at offset {expected}, and no snapshot reaches that far")
    for batch in batches:
        header = read_header(batch)
        if header.base_offset != expected:
            raise RestoreRefused(f"the copy has a hole: {header.base_offset} follows where {expected} should")
        if len(batch) > MAX_BATCH_BYTES:
            raise RestoreRefused(f"the batch at {expected} has {len(batch)} bytes, which no node may hold")
        expected = header.next_offset
        yield header.leader_epoch


class _Restoration:
    def __init__(self, session: Session, paths: Paths, cluster_id: str) -> None:
        self._session = session
        self._paths = paths
        self._cluster_id = cluster_id
        self._mark_version = 0

    async def run(
        self, batches: Sequence[bytes], raised: int, broker_epoch: int, snapshot: SnapshotPointer | None
    ) -> ControllerEpoch:
        paths = self._paths
        known_epoch, known_base = await self._begin()
        (left,) = await self._session.ask(children(paths.log))
        for some in _groups([paths.batch(sequence) for sequence in sequences_of(left)], len):
            await self._write(*(_delete(path) for path in some))
        for group in _groups(batches, len):
            await self._write(
                *(_create(paths.batch(read_header(batch).base_offset), batch) for batch in group)
            )
        if known_epoch is not None:
            raised = max(raised, int(known_epoch.data) + 1)
        if known_base is not None:
            broker_epoch = max(broker_epoch, int(known_base.data))
        await self._write(
            _put(paths.controller_epoch, b"%d" % raised, known_epoch),
            _put(paths.epoch_base, b"%d" % broker_epoch, known_base),
            _set(paths.snapshot, b"" if snapshot is None else encode_pointer(snapshot)),
            *await self._naming(),
            _delete(paths.restoring),
        )
        return ControllerEpoch(raised)

    async def _begin(self) -> tuple[Stored | None, Stored | None]:
        """Set the mark, if this is a place to restore. The numbers that must not go back are returned."""
        paths = self._paths
        mark = await self._inspect(mark_is_new=False)
        await self._set_mark(mark)
        try:
            # Again, under our mark: another restoration may have come to its end just before it was set.
            await self._inspect(mark_is_new=mark is None)
        except RestoreRefused:
            await self._write(_delete(paths.restoring))
            raise
        epoch, base = await self._session.ask(get(paths.controller_epoch), get(paths.epoch_base))
        return stored(epoch), stored(base)

    async def _inspect(self, *, mark_is_new: bool) -> Stored | None:
        """The mark, if there is one. Batches may go only if an older mark says that they are half a log."""
        paths = self._paths
        log, members, mark, cluster = await self._session.ask_latest(
            children(paths.log), children(paths.members), get(paths.restoring), get(paths.cluster_id)
        )
        where = self._session.address
        if members:
            raise RestoreRefused(f"brokers are running here ({', '.join(sorted(members))}): stop them first")
        if log and (mark is None or mark_is_new):
            raise RestoreRefused(f"ZooKeeper at {where} holds metadata: there is nothing to restore")
        other = stored(cluster)
        if other is not None and decode_cluster_id(other.data) != self._cluster_id:
            raise RestoreRefused(
                f"ZooKeeper at {where} belongs to cluster {decode_cluster_id(other.data)},"
                f" the copy to {self._cluster_id}: check the chroot"
            )
        return stored(mark)

    async def _set_mark(self, left: Stored | None) -> None:
        """Each restoration has a version of the mark of its own, so that of two at once one fails."""
        path = self._paths.restoring
        try:
            if left is None:
                await self._session.change(create(path, b""))
            else:
                version = left.version
                stat = await self._session.change(lambda client: client.set_async(path, b"", version))
                self._mark_version = stat.version
        except (Exists, Missing, OtherVersion):
            raise RestoreRefused("another restoration is at work") from None

    async def _naming(self) -> list[Operation]:
        (answer,) = await self._session.ask(get(self._paths.cluster_id))
        if answer is not None:
            return []
        return [_create(self._paths.cluster_id, encode_cluster_id(self._cluster_id))]

    async def _write(self, *operations: Operation) -> None:
        mark, version = self._paths.restoring, self._mark_version
        try:
            await self._session.commit(lambda transaction: transaction.check(mark, version), *operations)
        except Refused as refused:
            raise RestoreRefused(f"somebody else changed the metadata meanwhile: {refused}") from refused


def _groups(items: Sequence[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """In order, each small enough for one write."""
    group: list[T] = []
    total = 0
    for item in items:
        if group and (len(group) == _TOGETHER or total + size(item) > MAX_BATCH_BYTES):
            yield group
            group, total = [], 0
        group.append(item)
        total += size(item)
    if group:
        yield group


def _create(path: str, data: bytes) -> Operation:
    return lambda transaction: transaction.create(path, data)


def _set(path: str, data: bytes) -> Operation:
    return lambda transaction: transaction.set_data(path, data)


def _put(path: str, data: bytes, known: Stored | None) -> Operation:
    if known is None:
        return _create(path, data)
    return lambda transaction: transaction.set_data(path, data, known.version)


def _delete(path: str) -> Operation:
    return lambda transaction: transaction.delete(path)
