"""What comes before the brokers' part, and how a query goes through it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.arrow.history import ListedSegment
from headrace.spark.history.listed_stream import Pieces, require_checkpoint
from headrace.spark.history.pinned import Pinned, ahead, pinned_of
from headrace.spark.history.plan import EMPTY, HistoryRefused, Range, View, share
from headrace.spark.segments.plan import Span
from tests.unit.spark.history.test_plan import views


@given(views())
def test_each_offset_comes_before_the_brokers_part_or_in_it(view: View) -> None:
    try:
        whole = share("orders", view)
    except HistoryRefused:
        return
    found = ahead(whole)
    for partition, log in view.log.items():
        start = found.starts[partition]
        before = [
            offset
            for ranges in (found.table.get(partition, ()), found.tier.get(partition, ()))
            for each in ranges
            for offset in range(each.first, each.end)
        ]
        shares = whole.shares[partition]
        first = shares[0].first if shares else log.end
        assert sorted(before) == list(range(first, start))
        assert all(log.has(offset) for offset in range(start, log.end))


def test_brokers_have_what_comes_behind_their_first_share() -> None:
    view = View({0: Range(0, 100)}, {0: Range(20, 80)}, {0: EMPTY})
    found = ahead(share("orders", view))
    assert (found.tier, dict(found.starts)) == ({}, {0: 0})


def test_it_is_read_as_it_was_written() -> None:
    segments = (ListedSegment(0, 10, 500, "a"), ListedSegment(10, 30, 700, "b"))
    pinned = Pinned(
        "orders",
        {0: 30, 1: 7},
        {0: [Range(0, 5)], 1: [Range(0, 7)]},
        ("file:/a.parquet",),
        (),
        '{"type": "struct", "fields": []}',
        ((Span("orders", 0, 5, 30, segments),),),
    )
    assert pinned_of(pinned.text()) == pinned
    newer = json.dumps({**json.loads(pinned.text()), "version": 2})
    with pytest.raises(HistoryRefused, match="has version 2, and 1 is known here"):
        pinned_of(newer)


@given(st.integers(0, 9), st.integers(0, 9), st.integers(1, 4), st.booleans())
def test_one_list_is_through_before_the_next_one_begins(
    first_total: int, second_total: int, pieces: int, is_asked_first: bool
) -> None:
    """As Spark asks: each for where the next batch ends, from where the last one ended."""

    def no_frame(first: int, end: int) -> None:
        raise AssertionError("no batch is planned here")

    first = Pieces("first", first_total, no_frame, pieces=pieces)  # type: ignore[arg-type]  # never called
    second = Pieces("second", second_total, no_frame, lambda: first.is_through, pieces)  # type: ignore[arg-type]  # never called
    asked = [first, second] if is_asked_first else [second, first]
    at = {"first": 0, "second": 0}
    for _ in range(first_total + second_total + 2):
        ends = {each.name: each.following(at[each.name]) for each in asked}
        assert ends["second"] == at["second"] or at["first"] == first_total
        assert all(at[name] <= ends[name] <= at[name] + pieces for name in at)
        at = ends
    assert at == {"first": first_total, "second": second_total}


@pytest.mark.parametrize(
    ("checkpoint", "where"),
    [
        ("/data/point", "file:/data/point/sources/0"),
        ("file:///data/point/", "file:/data/point/sources/3"),
        ("hdfs://name/data/point", "hdfs://name/data/point/sources/0"),
    ],
)
def test_a_query_has_the_checkpoint_of_its_frame(checkpoint: str, where: str) -> None:
    require_checkpoint(checkpoint, where)
    with pytest.raises(HistoryRefused, match=r'start it with \.option\("checkpointLocation"'):
        require_checkpoint(f"{checkpoint.rstrip('/')}-other", where)
