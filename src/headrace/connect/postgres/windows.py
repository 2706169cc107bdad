"""Which stretch of the log is published next. Pure: the summary of what is there comes from the database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from headrace.connect.postgres.progress import Progress
from headrace.core.errors import HeadraceError


class LostPlace(HeadraceError):
    """The log does not have what the position says."""


class Transaction(NamedTuple):
    commit_lsn: int
    end_lsn: int
    changes: int


class Summary(NamedTuple):
    """Of what is committed from the position on, up to some place."""

    transactions: int
    changes: int
    first: Transaction | None
    last: Transaction | None


@dataclass(frozen=True)
class Window:
    """Changes of the transactions whose commit stands at `start` or behind, and before `end`."""

    start: int
    end: int
    skip: int = 0
    """Changes of the first transaction that are done."""
    most: int | None = None
    """Of the first transaction only changes up to this number; then nothing but it is in the window."""


def window(progress: Progress, end: int, found: Summary, limit: int) -> tuple[Window, Progress] | None:
    """None: there is no change before `end`, and `progress.passed(end)` is as good."""
    first, last = found.first, found.last
    if first is None or last is None:
        if progress.transaction is not None:
            raise _lost(progress)
        return None
    if progress.transaction is not None and first.commit_lsn != progress.transaction:
        raise _lost(progress)
    if found.transactions > 1 and last.changes > limit:
        # The large one begins a window of its own.
        return _whole(progress, last.commit_lsn)
    if found.transactions > 1:
        return _whole(progress, end)
    seen = progress.seen
    if first.changes - seen > limit:
        part = Window(progress.lsn, first.end_lsn, seen, seen + limit)
        return part, progress.within(first.commit_lsn, seen + limit)
    return _whole(progress, end)


def _whole(progress: Progress, end: int) -> tuple[Window, Progress]:
    return Window(progress.lsn, end, progress.seen), progress.passed(end)


def _lost(progress: Progress) -> LostPlace:
    return LostPlace(
        f"{progress.seen} changes of a transaction are published, and the log does not have that transaction "
        "any more"
    )
