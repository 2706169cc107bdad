"""The metadata committer: unknown outcomes are settled by reading, and a copy of the log never has a gap or a
double."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from headrace.controller.codec import encode_metadata_batch, encode_record
from headrace.controller.metadata_committer import MOST_ATTEMPTS, MetadataCommitter
from headrace.controller.store import ensure_held
from headrace.coordination.local import LocalCoordination
from headrace.core.errors import CorruptLog
from headrace.core.ids import BrokerId, ControllerEpoch
from headrace.core.ports_coordination import CommittedBatch, CommitUnknown, ControllerFenced
from headrace.protocol.batch import read_header
from headrace.protocol.stored.no_op_record import NoOpRecord
from tests.unit.controller.cluster import FixedClock
from tests.unit.coordination.memory_journal import MemoryJournal

VALUE = encode_record(NoOpRecord())


class Doubtful(LocalCoordination):
    """Each of the next commits is told as unknown: True if it did land, False if it did not."""

    def __init__(self, journal: MemoryJournal) -> None:
        super().__init__(journal)
        self.doubts: list[bool] = []
        self.tries = 0

    async def append(self, sequence: int, batch: bytes, epoch: ControllerEpoch) -> None:
        self.tries += 1
        if not self.doubts:
            await super().append(sequence, batch, epoch)
            return
        if self.doubts.pop(0):
            await super().append(sequence, batch, epoch)
        raise CommitUnknown("the connection was lost")


class Copy:
    def __init__(self) -> None:
        self.batches: list[bytes] = []

    def end(self) -> int:
        return read_header(self.batches[-1]).next_offset if self.batches else 0

    def hold(self, batch: bytes) -> None:
        self.batches.append(batch)

    async def sync(self) -> None:
        """There is nothing behind it."""

    def read(self, from_sequence: int) -> list[bytes]:
        return [batch for batch in self.batches if read_header(batch).base_offset >= from_sequence]


async def connected() -> None:
    raise AssertionError("the local coordination is always connected")


async def committer_for(port: LocalCoordination) -> MetadataCommitter:
    return MetadataCommitter(port, FixedClock(), await port.claim_controller(BrokerId(1)), connected)


async def committed(port: LocalCoordination) -> Sequence[CommittedBatch]:
    return await port.read(0)


async def test_an_unknown_commit_that_landed_is_not_written_again() -> None:
    port = Doubtful(MemoryJournal())
    committer = await committer_for(port)
    port.doubts = [True]
    assert read_header(await committer.write(0, [VALUE, VALUE])).next_offset == 2
    assert port.tries == 1
    await committer.write(2, [VALUE])
    assert [batch.sequence for batch in await committed(port)] == [0, 2]


async def test_an_unknown_commit_that_did_not_land_is_tried_again() -> None:
    port = Doubtful(MemoryJournal())
    committer = await committer_for(port)
    port.doubts = [False, True]
    await committer.write(0, [VALUE])
    assert port.tries == 2
    assert [batch.sequence for batch in await committed(port)] == [0]


async def test_it_is_not_tried_for_ever() -> None:
    port = Doubtful(MemoryJournal())
    committer = await committer_for(port)
    port.doubts = [False] * 99
    with pytest.raises(CommitUnknown):
        await committer.write(0, [VALUE])
    assert port.tries == MOST_ATTEMPTS


async def test_another_controllers_batch_at_our_sequence_means_we_are_deposed() -> None:
    port = Doubtful(MemoryJournal())
    committer = await committer_for(port)
    rival_epoch = await port.claim_controller(BrokerId(2))
    rival = encode_metadata_batch([VALUE], base_offset=0, controller_epoch=rival_epoch, timestamp_ms=0)
    await port.append(0, rival, rival_epoch)
    port.doubts = [False]
    with pytest.raises(ControllerFenced):
        await committer.write(0, [VALUE])
    assert [batch.batch for batch in await committed(port)] == [rival]


def test_the_copy_holds_each_batch_once() -> None:
    copy = Copy()
    first, second = (
        encode_metadata_batch([VALUE], base_offset=at, controller_epoch=0, timestamp_ms=0) for at in (0, 1)
    )
    for sequence, batch in ((0, first), (1, second), (1, second), (0, first)):
        ensure_held(copy, sequence, batch)
    assert copy.batches == [first, second]


def test_a_copy_never_has_a_gap() -> None:
    batch = encode_metadata_batch([VALUE], base_offset=5, controller_epoch=0, timestamp_ms=0)
    with pytest.raises(CorruptLog):
        ensure_held(Copy(), 5, batch)


async def test_a_gap_in_what_is_committed_is_found() -> None:
    batch = encode_metadata_batch([VALUE], base_offset=5, controller_epoch=0, timestamp_ms=0)
    committer = await committer_for(LocalCoordination(MemoryJournal([batch])))
    with pytest.raises(CorruptLog):
        _ = [found async for found in committer.committed_from(0)]
