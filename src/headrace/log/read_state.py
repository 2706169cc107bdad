"""What a process knows of a sealed or loaded segment's bytes: which of them it has verified, where a reader
goes on, and which are damaged. All of it is in memory, small, and may be forgotten at any time but the last.

A page that was read from a disk is not trusted because it is in memory: the kernel reads ahead of everybody.
Trusted is what this process has appended, and what it has verified since. Both are forgotten for the whole
segment as soon as a page of it is found to have left memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from headrace.core.errors import StorageError

if TYPE_CHECKING:
    from headrace.core.ports import File
    from headrace.log.segment import Segment

MAX_RANGES: Final = 16
MAX_POSITIONS: Final = 16
ASKED_AGAIN: Final = 3
"""As often as this a reader asks for the same offset, before what it got is looked at: it may refuse it."""


class ColdRead(Exception):
    """A read would wait for a disk, or give out what nobody has verified: `read_ahead.py` brings it first."""

    def __init__(self, segment: Segment, offset: int, *, transactions: bool = False) -> None:
        super().__init__(offset)
        self.segment = segment
        self.offset = offset
        """From which on the segment's batches are wanted."""
        self.transactions = transactions
        """The indexes of aborted transactions are wanted as well, of this segment and those behind it."""


class UnverifiedReads:
    """The file of a segment for whoever looks at headers in it and verifies nothing. What that brings from a
    disk into memory looks as if it had never left, and is not what was verified there before."""

    __slots__ = ("_file", "_segment")

    def __init__(self, segment: Segment, file: File) -> None:
        self._segment = segment
        self._file = file

    def pread(self, length: int, position: int) -> bytes:
        if not self._file.is_resident(position, length):
            self._segment.distrust()
        return self._file.pread(length, position)


class Damage(NamedTuple):
    """Bytes of a segment that are not what was written."""

    position: int
    end: int
    """Where a whole batch begins again, or the end of the segment."""
    offset: int
    """The first one that is lost by it."""
    end_offset: int
    """The first one behind it that can be read."""
    reason: str


class ReadState:
    __slots__ = ("_asked", "_older", "_positions", "_verified", "damage", "index_is_doubted")

    def __init__(self) -> None:
        self._verified: list[tuple[int, int]] = []
        """Ranges from batch to batch that overlap nowhere, the latest last."""
        self._positions: dict[int, int] = {}
        self._older: dict[int, int] = {}
        """Where the batches are that a reader asked for or goes on with: two generations."""
        self._asked: dict[int, int] = {}
        self.damage: tuple[Damage, ...] = ()
        self.index_is_doubted = False
        """An entry of the offset index was not true. The next thread that reads here says so."""

    # --- what is verified ---

    def covers(self, start: int, end: int) -> bool:
        return any(first <= start and end <= last for first, last in self._verified)

    def note_verified(self, start: int, end: int) -> None:
        if end <= start:
            return
        apart = []
        for first, last in self._verified:
            if last < start or end < first:
                apart.append((first, last))
            else:
                start, end = min(start, first), max(end, last)
        self._verified = [*apart, (start, end)][-MAX_RANGES:]

    def run_before(self, position: int) -> int:
        """How many verified bytes end at `position`: what a reader that comes in order has read before."""
        return max(
            (position - first for first, last in self._verified if first < position <= last), default=0
        )

    @property
    def has_verified(self) -> bool:
        return bool(self._verified)

    def forget_verified(self) -> None:
        self._verified = []

    # --- where a reader goes on ---

    def position_of(self, offset: int) -> int | None:
        position = self._positions.get(offset)
        return self._older.get(offset) if position is None else position

    def learn(self, offset: int, position: int) -> None:
        if len(self._positions) >= MAX_POSITIONS:
            self._older = self._positions
            self._positions = {}
        self._positions[offset] = position

    def is_asked_again(self, offset: int) -> bool:
        """Note that a consumer asks for `offset`. True if it did so before, as often as whoever refuses what
        it gets: then once, and not again until it has asked as often."""
        times = self._asked.get(offset, 0) + 1
        if len(self._asked) >= MAX_POSITIONS and times == 1:
            self._asked.clear()
        self._asked[offset] = 0 if times >= ASKED_AGAIN else times
        return times >= ASKED_AGAIN

    def forget_positions(self) -> None:
        self._positions = {}
        self._older = {}
        self._asked = {}

    def doubt_index(self) -> bool:
        """True if it was not doubted yet: somebody has to go and read, so that it is made again."""
        is_first, self.index_is_doubted = not self.index_is_doubted, True
        return is_first

    # --- what is damaged ---

    def note_damage(self, damage: Damage) -> None:
        others = [known for known in self.damage if known.position != damage.position]
        self.damage = tuple(sorted((*others, damage)))

    def end_before_damage(self, path: str, position: int, end: int) -> int:
        """How far a read from `position` may go. StorageError: it would begin with damage."""
        for damage in self.damage:
            if damage.position <= position < damage.end:
                raise StorageError(
                    f"{path}: position {damage.position} (offset {damage.offset}) is damaged: {damage.reason}"
                )
            if position < damage.position < end:
                return damage.position
        return end
