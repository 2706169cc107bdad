"""What a replica knows of its partition's history in an object store, as its readers ask for it.

The log on the disk knows only itself: its log start is the local log start. Where the history begins is said
here.
"""

from __future__ import annotations

from typing import Protocol


class History(Protocol):
    @property
    def log_start_offset(self) -> int | None:
        """Of the whole history. None: this replica has not read yet what is in the store."""
        ...

    def request_log_start(self, offset: int) -> None:
        """DeleteRecords: what is before it is not read any more, and is to go."""
        ...

    @property
    def durable_log_start(self) -> int:
        """What the store says: it stays deleted, whoever leads next. -1 if that is not known."""
        ...

    @property
    def tiered_end(self) -> int:
        """Where the store ends: the first offset that is not in it. -1 if nothing is there."""
        ...

    def epoch_of(self, offset: int) -> int:
        """The leader epoch of the record at an offset, here or in the store; -1 if that is not known."""
        ...

    def begin_behind_store(self) -> None:
        """For a follower whose leader has what comes next in the store only: begin where the store ends,
        with all that a log knows of what lies before. It takes a while."""
        ...

    def on_truncated(self) -> None:
        """The log's truncation was run."""
        ...

    def end_of_epoch(self, epoch: int) -> tuple[int, int] | None:
        """The largest epoch up to this one, and where it ended; None if that is not known."""
        ...
