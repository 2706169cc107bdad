"""Where each offset of a topic comes from, beside a list of who has it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.spark.history.plan import EMPTY, HistoryRefused, Range, Share, View, share

_OFFSETS = st.integers(0, 30)


def ranges() -> st.SearchStrategy[Range]:
    return st.tuples(_OFFSETS, _OFFSETS).map(lambda pair: Range(min(pair), max(pair)))


@st.composite
def views(draw: st.DrawFn) -> View:
    log, tier, table = (draw(st.dictionaries(st.integers(0, 2), ranges(), max_size=3)) for _ in range(3))
    return View(log, tier, table)


def who_has(view: View, partition: int) -> list[tuple[int, str]]:
    """Each offset that there should be, with the first of table, bucket and brokers that has it."""
    log = view.log[partition]
    table = view.table.get(partition, EMPTY)
    places = {"table": table, "tier": view.tier.get(partition, EMPTY), "log": log}
    firsts = [each.first for each in (table, log) if each.first < each.end or each is log]
    return [
        (offset, next((name for name, span in places.items() if span.has(offset)), "nobody"))
        for offset in range(min(firsts), log.end)
    ]


@given(views())
def test_each_offset_has_one_place(view: View) -> None:
    model = {partition: who_has(view, partition) for partition in view.log}
    is_cut = any(view.table.get(partition, EMPTY).end > log.end for partition, log in view.log.items())
    if is_cut or any(name == "nobody" for places in model.values() for _, name in places):
        with pytest.raises(HistoryRefused, match="do not meet"):
            share("orders", view)
        return
    whole = share("orders", view)
    for partition, places in model.items():
        found = whole.shares[partition]
        assert [(at, each.place) for each in found for at in range(each.first, each.end)] == places
        assert whole.ends[partition] == view.log[partition].end
        for place in ("table", "tier", "log"):
            spans = whole.of(place).get(partition, [])
            assert spans == [Range(each.first, each.end) for each in found if each.place == place]


def test_bucket_and_brokers_follow_the_table() -> None:
    view = View({0: Range(0, 100)}, {0: Range(0, 80)}, {0: Range(0, 30)})
    assert share("orders", view).shares[0] == [
        Share("table", 0, 30),
        Share("tier", 30, 80),
        Share("log", 80, 100),
    ]


def test_a_table_that_began_late_has_what_was_before_it_from_elsewhere() -> None:
    view = View({0: Range(0, 100)}, {0: Range(0, 80)}, {0: Range(50, 90)})
    assert share("orders", view).shares[0] == [
        Share("tier", 0, 50),
        Share("table", 50, 90),
        Share("log", 90, 100),
    ]


def test_a_new_partition_is_not_in_the_table() -> None:
    found = share("orders", View({0: Range(0, 10), 1: Range(5, 9)}, {}, {0: Range(0, 10)}))
    assert found.shares == {0: [Share("table", 0, 10)], 1: [Share("log", 5, 9)]}


def test_what_is_nowhere_is_said() -> None:
    view = View({0: Range(50, 100)}, {0: Range(50, 80)}, {0: Range(0, 30)})
    with pytest.raises(
        HistoryRefused, match=r"of partition 0, offsets from 30 on are gone.*`headrace lake run`"
    ):
        share("orders", view)
    with pytest.raises(HistoryRefused, match=r"partition 0 ends at 10, and the table has it up to 30"):
        share("orders", View({0: Range(0, 10)}, {}, {0: Range(0, 30)}))
