"""The metadata log: one node per committed batch, named by its sequence. A commit is one write.

Only the active controller writes here, and each of its writes checks the fence of its term. So what it
knows to be the end is the end, until a write has an unknown outcome: then the end is read again.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from headrace.coordination.ensemble.controller_election import ControllerElection, Term
from headrace.coordination.ensemble.paths import Paths, sequences_of
from headrace.coordination.ensemble.requests import (
    ConnectionBroken,
    Exists,
    Missing,
    NotPermitted,
    Refused,
    children,
    get,
    stored,
)
from headrace.coordination.ensemble.session import Session
from headrace.core.errors import CorruptLog
from headrace.core.ids import BrokerId, ControllerEpoch
from headrace.core.ports_coordination import (
    CommittedBatch,
    CommitUnknown,
    ControllerFenced,
    SequenceTaken,
    SnapshotPointer,
)
from headrace.protocol.batch import read_header

MAX_BATCH_BYTES: Final = 512 * 1024
"""Half of what a ZooKeeper server accepts in one request by default."""
READ_BYTES: Final = 4 * 1024 * 1024
"""How much one `read` answers with, beyond the batches that are fetched together."""
FIRST_TOGETHER: Final = 8
MOST_TOGETHER: Final = 64
BYTES_TOGETHER: Final = 1024 * 1024
"""How many batches are fetched at once depends on their size: the server holds all of them in memory."""
DELETED_TOGETHER: Final = 500

Operation = Callable[[Any], None]


class MetadataLog:
    def __init__(self, session: Session, paths: Paths, election: ControllerElection) -> None:
        self._session = session
        self._paths = paths
        self._election = election
        # One commit is in flight. The next one is judged by what became of it.
        self._commit = asyncio.Lock()
        self._known: tuple[Term, int] | None = None
        """The end of the log in a term of our own; None if it has to be read."""

    async def append(self, sequence: int, batch: bytes, epoch: ControllerEpoch) -> None:
        async with self._commit:
            term = self._election.require(epoch)
            self._session.require_connected()
            end = await self._end_in(term)
            if sequence < end:
                # Never tried: the sequence may have been trimmed, and would be free again.
                await self._election.confirm(term)
                raise SequenceTaken(f"sequence {sequence} is committed; the end is {end}")
            header = read_header(batch)
            if sequence != end or header.base_offset != sequence:
                raise ValueError(f"batch {header.base_offset} at sequence {sequence}: the end is {end}")
            if len(batch) > MAX_BATCH_BYTES:
                raise ValueError(f"a batch of {len(batch)} bytes; one node holds {MAX_BATCH_BYTES} at most")
            path = self._paths.batch(sequence)
            self._known = None  # until the outcome is known, also if we are cancelled
            try:
                await self._fenced(term, lambda transaction: transaction.create(path, batch))
            except Exists:
                raise SequenceTaken(f"sequence {sequence} is committed already") from None
            self._known = (term, header.next_offset)

    async def _end_in(self, term: Term) -> int:
        if self._known is None or self._known[0] != term:
            self._known = (term, await self.end())
        return self._known[1]

    async def _fenced(self, term: Term, *operations: Operation) -> None:
        """One write that succeeds only while `term` lasts."""
        fence = self._paths.controller_epoch
        try:
            await self._session.commit(lambda transaction: transaction.check(fence, term.fence), *operations)
        except Refused as refused:
            if refused.place == 0:
                raise self._election.lost(term) from None
            raise refused.reason from None
        except NotPermitted as error:
            # Somebody has changed the ACLs under us. To try again for ever would help nobody.
            self._election.lost(term)
            raise ControllerFenced(str(error)) from error
        except ConnectionBroken as error:
            raise CommitUnknown(f"it is not known whether the write was committed: {error}") from error

    async def end(self) -> int:
        while True:
            sequences = await self._sequences()
            if not sequences:
                return 0
            (answer,) = await self._session.ask(get(self._paths.batch(sequences[-1])))
            last = stored(answer)
            if last is not None:  # otherwise more was committed, and this trimmed, since we looked
                return read_header(last.data).next_offset

    async def start_offset(self) -> int:
        sequences = await self._sequences()
        return sequences[0] if sequences else 0

    async def _sequences(self) -> list[int]:
        (names,) = await self._session.ask_latest(children(self._paths.log))
        return sequences_of(names)

    async def read(self, from_sequence: int) -> Sequence[CommittedBatch]:
        while True:
            wanted = [sequence for sequence in await self._sequences() if sequence >= from_sequence]
            found = await self._fetch(wanted)
            if found or not wanted:
                return found
            # What we wanted was trimmed since we looked.

    async def _fetch(self, sequences: list[int]) -> list[CommittedBatch]:
        """The batches at these sequences, up to some size, or up to the first that is gone."""
        found: list[CommittedBatch] = []
        size = 0
        while len(found) < len(sequences) and size < READ_BYTES:
            together = FIRST_TOGETHER
            if found:
                together = max(1, min(MOST_TOGETHER, BYTES_TOGETHER * len(found) // size))
            some = sequences[len(found) : len(found) + together]
            answers = await self._session.ask(*(get(self._paths.batch(sequence)) for sequence in some))
            for sequence, node in zip(some, map(stored, answers), strict=True):
                if node is None:
                    return found
                expected = read_header(found[-1].batch).next_offset if found else sequence
                if sequence != expected or read_header(node.data).base_offset != sequence:
                    raise CorruptLog(
                        f"the metadata log in ZooKeeper has no batch at {expected}; do not start brokers,"
                        " and restore it from a broker's copy"
                    )
                found.append(CommittedBatch(sequence, node.data))
                size += len(node.data)
        return found

    async def snapshot(self) -> SnapshotPointer | None:
        (answer,) = await self._session.ask_latest(get(self._paths.snapshot))
        node = stored(answer)
        return None if node is None or not node.data else decode_pointer(node.data)

    async def move_snapshot(self, pointer: SnapshotPointer, epoch: ControllerEpoch) -> None:
        term = self._election.require(epoch)
        path, data = self._paths.snapshot, encode_pointer(pointer)
        await self._fenced(term, lambda transaction: transaction.set_data(path, data))

    async def trim(self, before: int, epoch: ControllerEpoch) -> None:
        term = self._election.require(epoch)
        await self._election.confirm(term)
        if before > await self.end():
            raise ValueError(f"nothing is committed at {before} yet")
        while old := _wholly_below(before, await self._sequences()):
            try:
                # In order, so that a trim that is cut off leaves no hole.
                await self._fenced(term, *map(self._deletion, old[:DELETED_TOGETHER]))
            except Missing:
                continue  # one of ours of an unknown outcome has got there first

    def _deletion(self, sequence: int) -> Operation:
        path = self._paths.batch(sequence)
        return lambda transaction: transaction.delete(path)


def _wholly_below(before: int, sequences: list[int]) -> list[int]:
    """A batch ends where the next one begins. The last one has no next, and stays."""
    return [sequence for sequence, following in itertools.pairwise(sequences) if following <= before]


def encode_pointer(pointer: SnapshotPointer) -> bytes:
    told = {
        "version": 1,
        "end_offset": pointer.end_offset,
        "checksum": pointer.checksum,
        "holders": list(pointer.holders),
    }
    return json.dumps(told).encode()


def decode_pointer(data: bytes) -> SnapshotPointer:
    told = json.loads(data)
    holders = tuple(BrokerId(holder) for holder in told["holders"])
    return SnapshotPointer(told["end_offset"], told["checksum"], holders)
