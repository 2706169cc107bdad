"""A log of a few hundred records, as the machine of the tier sees it, and as bytes that can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from headrace.tier.local import epochs_within
from headrace.tier.segments import EpochStart


class Record(NamedTuple):
    epoch: int
    opens: int | None
    """The number of a transaction that begins with it."""
    ends: int | None
    time_ms: int
    value: bytes

    def encode(self, offset: int) -> bytes:
        return b"%d %d %d %s\n" % (offset, self.epoch, self.time_ms, self.value)


def encode(records: Sequence[Record], first: int, until: int) -> bytes:
    """The bytes of a range of offsets; the first record of all has offset 0."""
    return b"".join(records[offset].encode(offset) for offset in range(first, until))


def last_stable(records: Sequence[Record], high_watermark: int) -> int:
    """Where the first transaction begins that is open at the high watermark."""
    opened: dict[int, int] = {}
    for offset in range(high_watermark):
        record = records[offset]
        if record.opens is not None:
            opened[record.opens] = offset
        if record.ends is not None:
            opened.pop(record.ends, None)
    return min(opened.values(), default=high_watermark)


def epochs_of(records: Sequence[Record]) -> list[EpochStart]:
    found: list[EpochStart] = []
    for offset, record in enumerate(records):
        if not found or record.epoch != found[-1].epoch:
            found.append(EpochStart(record.epoch, offset))
    return found


class SealedSegment:
    """Keeps what it had when it was sealed: a thread reads it, whatever becomes of the log."""

    def __init__(self, log: ReplicaLog, base: int, following: int) -> None:
        self.base_offset = base
        self.next_offset = following
        self._pieces = [log.records[offset].encode(offset) for offset in range(base, following)]
        self.size = sum(map(len, self._pieces))
        self.max_timestamp = max(record.time_ms for record in log.records[base:following])

    def records(self, base_offset: int) -> Iterable[bytes]:
        return self._pieces[base_offset - self.base_offset :]

    def indexes(self, base_offset: int) -> Iterable[bytes]:
        return [b"index from %d to %d" % (base_offset, self.next_offset)]


class ReplicaLog:
    """`records` has all that ever were, by offset; only those from `local_start` on are on the disk."""

    def __init__(self, roll_records: int) -> None:
        self.records: list[Record] = []
        self.epochs: list[EpochStart] = []
        self.start = 0
        self.local_start = 0
        self.high_watermark = 0
        self._roll = roll_records
        self._sealed: list[SealedSegment] = []
        self._active = 0
        self._bytes = [0]
        self._stable: tuple[int, int] | None = None

    @property
    def end(self) -> int:
        return len(self.records)

    @property
    def sealed(self) -> Sequence[SealedSegment]:
        return self._sealed

    @property
    def last_stable_offset(self) -> int:
        if self._stable is None or self._stable[0] != self.high_watermark:
            self._stable = self.high_watermark, last_stable(self.records, self.high_watermark)
        return self._stable[1]

    def bytes_from(self, offset: int) -> int:
        return self._bytes[-1] - self._bytes[min(max(offset, self.local_start), self.end)]

    def all_bytes_from(self, offset: int) -> int:
        """Also of what is not on the disk."""
        return self._bytes[-1] - self._bytes[min(offset, self.end)]

    def append(self, record: Record) -> None:
        if self.end - self._active >= self._roll:
            self._seal()
        if not self.epochs or self.epochs[-1].epoch != record.epoch:
            self.epochs.append(EpochStart(record.epoch, self.end))
        self._bytes.append(self._bytes[-1] + len(record.encode(self.end)))
        self.records.append(record)

    def _seal(self) -> None:
        self._sealed.append(SealedSegment(self, self._active, self.end))
        self._active = self.end

    def truncate(self, offset: int) -> None:
        if offset >= self.end:
            return
        del self.records[offset:], self._bytes[offset + 1 :]
        self.epochs = list(epochs_within(self.epochs, 0, offset))
        while self._sealed and self._sealed[-1].next_offset > offset:
            self._active = self._sealed.pop().base_offset
        self.high_watermark = min(self.high_watermark, offset)
        self._stable = None

    def begin_anew(self, records: Sequence[Record], start: int) -> None:
        """Nothing is on the disk; the log goes on behind these records."""
        self.records = list(records)
        self.epochs = epochs_of(records)
        self._bytes = [0]
        for offset, record in enumerate(records):
            self._bytes.append(self._bytes[-1] + len(record.encode(offset)))
        self._sealed = []
        self._active = self.local_start = self.high_watermark = len(records)
        self.start = min(start, self.end)
        self._stable = None

    def delete_local(self, until: int) -> None:
        self._sealed = [each for each in self._sealed if each.base_offset >= until]
        self.local_start = max(self.local_start, until)


def common(one: Sequence[Record], other: Sequence[Record]) -> int:
    """How many records both begin with."""
    for offset, (ours, theirs) in enumerate(zip(one, other, strict=False)):
        if ours is not theirs and ours != theirs:
            return offset
    return min(len(one), len(other))
