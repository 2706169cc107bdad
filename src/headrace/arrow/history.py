"""One partition past the brokers: segments that are opened one after the other, wherever they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from headrace.arrow.columns import Bounds
from headrace.core.ids import TopicPartition
from headrace.log.scan import Readable
from headrace.protocol.batch import BatchHeader


class ListedSegment(NamedTuple):
    """One that was not opened."""

    base_offset: int
    next_offset: int
    size: int
    stem: str = ""
    """Of the keys of its objects: a fork's are in two folders. Empty for a file, which is found by its
    offset."""


class OpenSegment(Protocol):
    @property
    def name(self) -> str:
        """For sentences."""
        ...

    @property
    def base_offset(self) -> int: ...

    @property
    def next_offset(self) -> int | None:
        """Where the next segment begins; None if this is the last one."""
        ...

    @property
    def size(self) -> int: ...

    @property
    def latest_ms(self) -> int | None:
        """No record is younger, where that is known."""
        ...

    @property
    def file(self) -> Readable: ...

    def position_of(self, offset: int) -> int:
        """Where a batch begins at or before the one that holds `offset`."""
        ...

    def is_aborted(self, header: BatchHeader) -> bool | None:
        """Whether the transaction of this batch was given up. None: its markers have to be looked for."""
        ...

    def close(self) -> None: ...


class History(Protocol):
    """Invariant: everything below `end` is committed."""

    @property
    def partition(self) -> TopicPartition: ...

    @property
    def start(self) -> int:
        """What is before was deleted."""
        ...

    @property
    def end(self) -> int: ...

    def stable_end(self, first: int) -> int:
        """Where the first open transaction begins, for a reader from `first` on; the end if none is."""
        ...

    def open_at(self, offset: int) -> OpenSegment:
        """The segment that holds `offset`, which is below `end`. HistoryGone if it was deleted."""
        ...

    def listed(self, bounds: Bounds) -> Iterator[ListedSegment]:
        """In order, those that may have records within the bounds. The last one ends where this does."""
        ...
