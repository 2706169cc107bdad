"""The first manifest of a fork: it names the objects of its origin, up to an offset.

No record is copied. The segment in which the fork ends is named with fewer bytes than it has. Transactions
that were open there end in the fork as they ended in the origin, by markers in a small segment of its own, so
that whoever reads it finds all of them decided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from uuid import UUID

from headrace.core.ports import Buffer
from headrace.core.ports_objects import ABSENT, Done, Found, Part
from headrace.tier import index_object
from headrace.tier.calls import Get, GetRange, Put, Steps, reason_of
from headrace.tier.fork_register import RegisteredFork, register
from headrace.tier.knowledge import Failed, Known, Leadership, Overtaken, Result, Seen, Unusable
from headrace.tier.manifest import Manifest, Origin
from headrace.tier.manifest_format import encode_page, stored
from headrace.tier.names import Folder, ObjectName, TieredPartition
from headrace.tier.segments import EpochStart, Misfit, PageRef, RemoteSegment, Stored, page_of
from headrace.tier.writing import commit, read, read_page_of

if TYPE_CHECKING:
    from headrace.tier.jobs import Place

RANGE_BYTES: Final = 4 * 1024 * 1024
LISTED: Final = 280
"""Segments that the first manifest lists itself; a page has as many."""
_READINGS: Final = 5


class OpenTransaction(NamedTuple):
    producer_id: int
    producer_epoch: int
    first_offset: int


class Scanner(Protocol):
    """Goes through the batches before an offset, and knows which transactions are open there."""

    @property
    def next_offset(self) -> int: ...
    @property
    def stored(self) -> Stored:
        """Of what it took since `begin`."""
        ...

    @property
    def max_timestamp(self) -> int: ...
    @property
    def open(self) -> Sequence[OpenTransaction]: ...

    def restore(self, snapshot: bytes) -> None:
        """What the producers were where it begins."""
        ...

    def begin(self, base_offset: int) -> None:
        """The next segment."""
        ...

    def feed(self, data: memoryview, until: int) -> tuple[int, bool]:
        """How many bytes of whole batches it took, and whether it met one that reaches `until`."""
        ...

    def markers(
        self, ends: Sequence[tuple[OpenTransaction, bool]], base_offset: int, leader_epoch: int
    ) -> Buffer:
        """Batches that commit (True) or abort these transactions, each with one offset."""
        ...


@dataclass(frozen=True, slots=True)
class Fork:
    """What a topic is a fork of, as its settings say."""

    origin: UUID
    offset: int
    scanner: Callable[[], Scanner] | None
    """None: it ends where a segment does, and nobody knows of transactions."""


class _Ended(NamedTuple):
    """What the fork begins with."""

    segments: list[RemoteSegment]
    open: Sequence[OpenTransaction]
    scanner: Scanner | None


class _Failure(Exception):
    """Why it cannot be made, now or ever."""

    def __init__(self, result: Failed | Unusable) -> None:
        super().__init__(result.reason)
        self.result = result


@dataclass(frozen=True, slots=True)
class ForkJob:
    """Written down at the origin first, then made of the origin's manifest as it is after that."""

    place: Place
    fork: Fork
    leadership: Leadership
    attempt: str
    """Of the names that it gives."""

    def run(self) -> Steps[Result]:
        place, fork = self.place, self.fork
        origin = place.folder.sibling(fork.origin)
        entry = RegisteredFork(place.partition.topic_id, fork.offset)
        if place.safeguards.fork_registered_first:
            failed = yield from register(origin, entry)
            if failed is not None:
                return failed
        try:
            manifest, segments = yield from self._origin(origin)
            ended = yield from self._ended(origin, manifest, segments)
            first = yield from self._first_manifest(origin, manifest, ended)
        except _Failure as failure:
            return failure.result
        except Misfit as error:
            return Unusable(f"the fork cannot be made: {error}")
        if not place.safeguards.fork_registered_first:
            yield from register(origin, entry)
        return (yield from commit(place.folder, Known(None, ABSENT), first, place.safeguards))

    def _origin(self, origin: Folder) -> Steps[tuple[Manifest, list[RemoteSegment]]]:
        """What is there, with all that its pages list."""
        partition = TieredPartition(self.fork.origin, self.place.partition.partition)
        for _ in range(_READINGS):
            found = yield from read(origin, partition)
            if not isinstance(found, Seen):
                raise _Failure(found)
            manifest = found.known.manifest
            if manifest is None or manifest.is_deleted or manifest.origin is not None:
                raise _Failure(Unusable("the topic that it is a fork of has no history of its own any more"))
            segments: list[RemoteSegment] = []
            for each in manifest.ranges:
                if not isinstance(each, PageRef):
                    segments.append(each)
                    continue
                listed = yield from read_page_of(origin, partition, found.known, each)
                if isinstance(listed, Overtaken):
                    break
                if not isinstance(listed, tuple):
                    raise _Failure(listed)
                segments += listed
            else:
                return manifest, segments
        raise _Failure(Failed("the manifest of its origin changes all the time"))

    def _ended(self, origin: Folder, manifest: Manifest, segments: Sequence[RemoteSegment]) -> Steps[_Ended]:
        """What lies before the offset, and how it ends there."""
        offset = self.fork.offset
        if not manifest.start <= offset <= manifest.next_offset:
            there = f"{manifest.start} to {manifest.next_offset}"
            raise _Failure(Unusable(f"its origin has {there} in the store, and not {offset}"))
        shared = [each for each in segments if manifest.start < each.next_offset <= offset]
        if self.fork.scanner is None:
            return _Ended(shared, (), None)
        scanner = self.fork.scanner()
        unread = yield from self._restored(origin, shared, scanner)
        for each in unread:
            yield from _scan(origin, each, scanner, each.next_offset)
        cut = next((each for each in segments if each.base_offset < offset < each.next_offset), None)
        if cut is not None:
            yield from _scan(origin, cut, scanner, offset)
            if scanner.next_offset > max(cut.base_offset, manifest.start):
                shared.append(_shortened(cut, scanner))
        return _Ended(shared, scanner.open if shared else (), scanner)

    def _restored(
        self, origin: Folder, shared: Sequence[RemoteSegment], scanner: Scanner
    ) -> Steps[Sequence[RemoteSegment]]:
        """What the scanner must go through: what follows the last known producers."""
        for place in range(len(shared) - 1, -1, -1):
            indexes = yield from _indexes(origin, shared[place])
            if indexes.producers is not None:
                scanner.restore(indexes.producers)
                return shared[place + 1 :]
        return shared

    def _first_manifest(self, origin: Folder, manifest: Manifest, ended: _Ended) -> Steps[Manifest]:
        place, (epoch, writer) = self.place, self.leadership
        segments = list(ended.segments)
        until = segments[-1].next_offset if segments else max(manifest.start, 0)
        if not segments:
            start = self.fork.offset
        else:
            start = manifest.start
        if ended.open and ended.scanner is not None:
            segments.append((yield from self._markers(origin, ended, until)))
        pages: list[PageRef] = []
        while len(segments) > LISTED:
            listed, segments = segments[:LISTED], segments[LISTED:]
            data = encode_page(place.partition, listed)
            name = ObjectName(listed[0].base_offset, epoch, self.attempt)
            yield from _put(place.folder.page(name), data)
            pages.append(page_of(name, listed, stored(data)))
        first = Manifest(
            place.partition,
            epoch,
            writer,
            1,
            start,
            pages=tuple(pages),
            segments=tuple(segments),
            origin=Origin(self.fork.origin, until),
        )
        first.check()
        return first

    def _markers(self, origin: Folder, ended: _Ended, base: int) -> Steps[RemoteSegment]:
        """A segment of its own with the end of each transaction that is open, as the origin knows it."""
        assert ended.scanner is not None
        ends = []
        for each in ended.open:
            within = next(
                (one for one in ended.segments if one.base_offset <= each.first_offset < one.next_offset),
                ended.segments[0],
            )
            indexes = yield from _indexes(origin, within)
            is_aborted = any(
                (one.producer_id, one.first_offset) == (each.producer_id, each.first_offset)
                for one in indexes.aborted
            )
            ends.append((each, not is_aborted))
        epoch = self.leadership.epoch
        records = bytes(ended.scanner.markers(ends, base, epoch))
        beside = index_object.encode(
            index_object.Indexes(base, [(base, 0)], [], self._aborted(ends, base), None)
        )
        name = ObjectName(base, epoch, self.attempt)
        yield from _put(self.place.folder.indexes(name), beside)
        yield from _put(self.place.folder.records(name), records)
        newest = max(each.max_timestamp for each in ended.segments)
        epochs = (EpochStart(epoch, base),)
        return RemoteSegment(name, base + len(ends), stored(records), stored(beside), newest, epochs)

    @staticmethod
    def _aborted(ends: Sequence[tuple[OpenTransaction, bool]], base: int) -> list[index_object.Aborted]:
        """Those that end here, though none of their records is: whoever reads on from before sees both."""
        return [
            index_object.Aborted(each.producer_id, each.first_offset, base + place, base + len(ends))
            for place, (each, is_committed) in enumerate(ends)
            if not is_committed
        ]


def _shortened(segment: RemoteSegment, scanner: Scanner) -> RemoteSegment:
    end = scanner.next_offset
    return segment._replace(
        next_offset=end,
        records=scanner.stored,
        max_timestamp=scanner.max_timestamp,
        epochs=tuple(each for each in segment.epochs if each.offset < end),
    )


def _put(key: str, data: bytes) -> Steps[None]:
    outcome = yield Put(key, lambda: (data,))
    if not isinstance(outcome, Done):
        raise _Failure(Failed(f"{key}: {reason_of(outcome)}"))


def _indexes(folder: Folder, segment: RemoteSegment) -> Steps[index_object.Indexes]:
    key = folder.indexes(segment.name)
    outcome = yield Get(key)
    if not isinstance(outcome, Found):
        raise _Failure(Failed(f"{key}: {reason_of(outcome)}"))
    try:
        return index_object.decode(outcome.data, segment.base_offset)
    except index_object.CorruptIndexes as error:
        raise _Failure(Unusable(f"{key}: {error}")) from None


def _scan(folder: Folder, segment: RemoteSegment, scanner: Scanner, until: int) -> Steps[None]:
    key = folder.records(segment.name)
    scanner.begin(segment.base_offset)
    position, length = 0, RANGE_BYTES
    while position < segment.size:
        outcome = yield GetRange(key, position, min(length, segment.size - position))
        if not isinstance(outcome, Part):
            raise _Failure(Failed(f"{key}: {reason_of(outcome)}"))
        data = memoryview(outcome.data)
        taken, is_over = scanner.feed(data, until)
        if is_over:
            return
        if taken == 0 and len(data) < length:
            raise _Failure(Unusable(f"{key}: no whole batch at {position}"))
        position += taken
        length = RANGE_BYTES if taken else length * 2
