"""What a query's filters leave of a topic: ranges of offsets and times, and some of the partitions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from headrace.arrow.columns import END, FIRST, Bounds

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_NEVER_NULL: Final = ("topic", "partition", "offset", "timestamp", "timestampType")


class _Range(NamedTuple):
    """Whole numbers from `first` to before `end`."""

    first: int = FIRST
    end: int = END

    def within(self, other: _Range) -> _Range:
        return _Range(max(self.first, other.first), min(self.end, other.end))


class Pushed(NamedTuple):
    offsets: _Range = _Range()
    times: _Range = _Range()
    """In milliseconds."""
    partitions: _Range = _Range()
    chosen: frozenset[int] | None = None
    """Partitions by their numbers; None for all."""

    def wants(self, partition: int) -> bool:
        is_chosen = self.chosen is None or partition in self.chosen
        return is_chosen and self.partitions.first <= partition < self.partitions.end

    def narrowed(self, bounds: Bounds) -> Bounds:
        return Bounds(
            max(bounds.first_offset, self.offsets.first),
            min(bounds.next_offset, self.offsets.end),
            max(bounds.first_ms, self.times.first),
            min(bounds.next_ms, self.times.end),
        )


def push(filters: Iterable[Filter]) -> tuple[Pushed, list[Filter]]:
    """What all of them leave, and those that Spark has to look at still."""
    pushed, left = Pushed(), []
    for each in filters:
        found = _with(pushed, each)
        if found is None:
            left.append(each)
        else:
            pushed, is_whole = found
            if not is_whole:
                left.append(each)
    return pushed, left


def _with(pushed: Pushed, given: Filter) -> tuple[Pushed, bool] | None:
    """Whether that is all of the filter; None where it says nothing that helps."""
    column = _column(given)
    if isinstance(given, IsNotNull):
        return (pushed, True) if column in _NEVER_NULL else None
    if isinstance(given, In):
        return _with_many(pushed, column, given.value)
    span = _range_of(given, column)
    if span is None:
        return None
    if column == "offset":
        return pushed._replace(offsets=pushed.offsets.within(span)), True
    if column == "timestamp":
        return pushed._replace(times=pushed.times.within(span)), True
    return pushed._replace(partitions=pushed.partitions.within(span)), True


def _with_many(pushed: Pushed, column: str | None, values: Sequence[Any]) -> tuple[Pushed, bool] | None:
    if not values or not all(_is_number(each) for each in values):
        return None
    if column == "partition":
        chosen = frozenset(values) if pushed.chosen is None else pushed.chosen & frozenset(values)
        return pushed._replace(chosen=chosen), True
    if column == "offset":
        span = _Range(min(values), max(values) + 1)
        return pushed._replace(offsets=pushed.offsets.within(span)), False
    return None


def _column(given: Filter) -> str | None:
    path: tuple[str, ...] = getattr(given, "attribute", ())
    return path[0] if len(path) == 1 else None


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _range_of(given: Filter, column: str | None) -> _Range | None:
    value = getattr(given, "value", None)
    if column in ("offset", "partition") and isinstance(value, int) and _is_number(value):
        below = at_most = value
    elif column == "timestamp" and isinstance(value, datetime) and value.tzinfo is not None:
        # A record's time is whole milliseconds, and Spark compares microseconds.
        micros = (value - _EPOCH) // _MICROSECOND
        below, at_most = -(-micros // 1000), micros // 1000
    else:
        return None
    match given:
        case EqualTo() | EqualNullSafe():
            return _Range(below, at_most + 1)
        case GreaterThan():
            return _Range(first=at_most + 1)
        case GreaterThanOrEqual():
            return _Range(first=below)
        case LessThan():
            return _Range(end=below)
        case LessThanOrEqual():
            return _Range(end=at_most + 1)
    return None
