"""One partition past the brokers: segments that are opened one after the other, wherever they are."""

from __future__ import annotations

from typing import Protocol

from headrace.core.ids import TopicPartition
from headrace.log.scan import Readable


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
