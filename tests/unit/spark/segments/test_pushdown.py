"""What filters leave, beside the filters themselves on drawn records."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
)

from headrace.arrow.columns import Bounds
from headrace.spark.segments.pushdown import Pushed, push

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COMPARISONS = (EqualTo, EqualNullSafe, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual)
_KINDS = st.sampled_from(_COMPARISONS)
_NUMBERS = st.integers(0, 12)
_TIMES = st.integers(-3000, 9000).map(lambda micros: _EPOCH + timedelta(microseconds=micros))
Record = tuple[int, int, int]
"""Partition, offset, milliseconds."""


@st.composite
def filters(draw: st.DrawFn) -> Filter:
    column = draw(st.sampled_from(("partition", "offset", "timestamp")))
    values = _TIMES if column == "timestamp" else _NUMBERS
    shape = draw(st.integers(0, 5))
    if shape == 0:
        return In((column,), tuple(draw(st.lists(values, max_size=3))))
    if shape == 1:
        return Not(draw(_KINDS)((column,), draw(values)))
    if shape == 2:
        return draw(st.sampled_from((IsNotNull, IsNull)))((column,))
    return draw(_KINDS)((column,), draw(values))


def passes(given_filter: Filter, record: Record) -> bool:
    if isinstance(given_filter, Not):
        return not passes(given_filter.child, record)
    partition, offset, time_ms = record
    values = {
        "partition": partition,
        "offset": offset,
        "timestamp": _EPOCH + timedelta(milliseconds=time_ms),
    }
    value = values[given_filter.attribute[0]]  # type: ignore[attr-defined]  # all of them have one
    match given_filter:
        case In(value=several):
            return value in several
        case IsNotNull():
            return True
        case IsNull():
            return False
        case EqualTo(value=other) | EqualNullSafe(value=other):
            return bool(value == other)
        case GreaterThan(value=other):
            return bool(value > other)
        case GreaterThanOrEqual(value=other):
            return bool(value >= other)
        case LessThan(value=other):
            return bool(value < other)
        case LessThanOrEqual(value=other):
            return bool(value <= other)
    raise AssertionError(given_filter)


def is_left(pushed: Pushed, record: Record) -> bool:
    partition, offset, time_ms = record
    bounds = pushed.narrowed(Bounds())
    return (
        pushed.wants(partition)
        and bounds.first_offset <= offset < bounds.next_offset
        and bounds.first_ms <= time_ms < bounds.next_ms
    )


@given(st.lists(filters(), max_size=4), st.tuples(_NUMBERS, _NUMBERS, st.integers(-3, 9)))
def test_nothing_is_left_out_that_passes_and_spark_looks_at_the_rest(
    given_filters: list[Filter], record: Record
) -> None:
    pushed, left = push(given_filters)
    assert all(any(each is other for other in given_filters) for each in left)
    whole = all(passes(each, record) for each in given_filters)
    assert whole == (is_left(pushed, record) and all(passes(each, record) for each in left))


def test_what_it_cannot_use_is_left_to_spark() -> None:
    strange = [
        EqualTo(("value",), b"x"),
        EqualTo(("offset",), True),
        GreaterThan(("timestamp",), datetime(2026, 1, 1)),
        StringContains(("topic",), "x"),
        EqualTo(("headers", "key"), 1),
        IsNotNull(("key",)),
    ]
    assert push(strange) == (Pushed(), strange)
