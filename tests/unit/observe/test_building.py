"""From answers to a snapshot: sums, rates, lags; and what is not known stays so."""

from __future__ import annotations

import pytest

from headrace.audit.verdict import State as Window
from headrace.client.group_offsets import Committed
from headrace.core.ids import TopicPartition
from headrace.doctor.model import Unknown
from headrace.observe.building import total
from headrace.observe.ends import AllEnds, Ends
from headrace.observe.history import History, Track
from headrace.observe.look import Look
from headrace.observe.record_times import NOTHING_LEFT
from headrace.observe.snapshot import Rail, State, certified_until
from tests.unit.observe.made_up import (
    NOW_MS,
    broken_look,
    committed,
    empty_look,
    group,
    look,
    small_look,
    snapshot_of,
    topic,
    verdict,
)

ORDERS = TopicPartition("orders", 0)


def test_a_sum_without_a_part_is_not_known() -> None:
    assert total([1, 2]) == 3
    assert total([1, None]) is None
    assert total([]) == 0


def test_nothing_is_there() -> None:
    seen = snapshot_of(empty_look())
    assert seen.totals.topics == seen.totals.records == seen.totals.size_bytes == 0
    assert seen.groups == {}
    assert seen.audit is None


def test_rates_come_from_two_looks() -> None:
    first = snapshot_of(small_look())
    assert first.totals.rate_in is None
    assert first.topics["orders"].rate_in is None
    second = snapshot_of(small_look(0), small_look(1))
    orders = second.topics["orders"]
    assert orders.rate_in == pytest.approx(60.0), "50 records in each of 6 partitions in 5 seconds"
    assert orders.partitions[0].rate == pytest.approx(10.0)
    assert orders.rate_out == pytest.approx(60.0), "billing keeps up"
    assert second.topics["clicks"].rate_out == 0.0
    assert second.totals.rate_in == pytest.approx(100.0)
    assert second.brokers[1].rate_in == pytest.approx(30.0)


def test_an_end_that_went_back_has_no_rate() -> None:
    seen = snapshot_of(small_look(4), small_look(1)._replace(seconds=200.0))
    assert seen.topics["orders"].rate_in is None


def test_groups_and_how_far_they_are_behind() -> None:
    seen = snapshot_of(small_look())
    assert not isinstance(seen.groups, Unknown)
    billing, reports = seen.groups["billing"], seen.groups["reports"]
    assert (billing.lag, billing.late_ms, billing.members) == (0, 0, 1)
    assert billing.clients == ["billing-1 at 10.0.0.7"]
    assert (reports.lag, reports.late_ms, reports.members) == (6 * 600, 3_600_000, 0)
    orders = seen.topics["orders"]
    assert orders.groups == ["billing", "reports"]
    assert (orders.lag, orders.late_ms) == (3600, 3_600_000)
    assert seen.topics["clicks"].lag is None


def test_a_group_that_left_partitions_alone() -> None:
    topics = [topic("orders", 2, (1,), 1), topic("gone-soon", 1, (1,), 1)]
    seen = snapshot_of(
        look(
            1,
            topics,
            groups={"billing": group("billing")},
            committed={
                "billing": committed({ORDERS: 1000, TopicPartition("deleted", 0): 5}),
            },
            times={},
        )
    )
    assert not isinstance(seen.groups, Unknown)
    billing = seen.groups["billing"]
    assert not isinstance(billing.rails, Unknown)
    assert [(rail.partition.partition, rail.committed, rail.lag) for rail in billing.rails] == [
        (0, 1000, 0),
        (1, None, 1000),
    ]
    assert billing.lag == 1000
    assert billing.late_ms is None, "nobody has told how old the first record of partition 1 is"


def test_only_marks_of_transactions_are_left() -> None:
    made = look(
        1,
        [topic("orders", 1, (1,), 1)],
        groups={"billing": group("billing")},
        committed={"billing": committed({ORDERS: 999})},
        times={(ORDERS, 999): NOTHING_LEFT},
    )
    seen = snapshot_of(made)
    assert not isinstance(seen.groups, Unknown)
    assert (seen.groups["billing"].lag, seen.groups["billing"].late_ms) == (1, 0)


def test_a_rail() -> None:
    rail = Rail(ORDERS, 90, False, Ends(100, 120, 130), "", None)
    assert (rail.lag, rail.missed, rail.held) == (40, 10, True)
    assert rail._replace(committed=None).lag == 30
    assert rail._replace(committed=140).lag == 0, "a commit beyond the end is no negative lag"
    assert rail._replace(ends=None).lag is None


def test_what_is_broken_is_not_shown_as_nothing() -> None:
    seen = snapshot_of(broken_look(0), broken_look(1))
    assert seen.topics["lost"].condition is State.OFFLINE
    assert seen.topics["orders"].condition is State.UNWRITABLE
    assert seen.topics["lost"].records is None
    assert seen.topics["lost"].rate_in is None
    assert seen.topics["lost"].size_bytes is None
    assert seen.topics["orders"].size_bytes is None, "two of its three brokers did not tell"
    assert seen.totals.records is None
    assert seen.brokers[2].size_bytes is None
    assert not isinstance(seen.groups, Unknown)
    billing = seen.groups["billing"]
    assert isinstance(billing.rails, Unknown)
    assert billing.lag is None
    assert billing.late_ms is None
    assert isinstance(seen.audit, Unknown)
    assert set(seen.silent) == {2, 3}


def test_a_leader_that_does_not_answer_costs_only_its_own_partitions() -> None:
    made = small_look()
    ends = {
        partition: each
        for partition, each in made.all_ends.ends.items()
        if partition != TopicPartition("clicks", 0)
    }
    seen = snapshot_of(made._replace(all_ends=AllEnds(ends, {2: "timed out"})))
    assert seen.topics["clicks"].records is None
    assert seen.topics["orders"].records == 6000


def test_a_group_that_was_set_back_has_committed_nothing() -> None:
    def at(offset: int, number: int) -> Look:
        return look(
            1,
            [topic("orders", 1, (1,), 1)],
            at=number,
            groups={"billing": group("billing")},
            committed={"billing": {ORDERS: Committed(offset, 1, "", False)}},
        )

    seen = snapshot_of(at(900, 0), at(100, 1))
    assert seen.topics["orders"].rate_out == 0.0


def test_numbers_of_six_hours_are_kept() -> None:
    history = History()
    seen = snapshot_of(small_look(0), small_look(1), history=history)
    assert history.of(Track.IN, "orders", seen.at_ms)[-1] == pytest.approx(60.0)
    assert history.of(Track.LAG, "reports", seen.at_ms)[-1] == pytest.approx(3900)
    assert history.of(Track.LATE, "reports", seen.at_ms)[-1] == pytest.approx(3_605_000, rel=1e-4)
    snapshot_of(empty_look(2), history=history)
    assert history.of(Track.LAG, "reports", seen.at_ms)[-1] is None


def test_certified_until_the_first_window_that_is_not() -> None:
    windows = [verdict("orders", window) for window in range(3)]
    assert certified_until(windows) == windows[2].window_ms + windows[2].length_ms
    assert (
        certified_until([windows[0], verdict("orders", 1, Window.OPEN), windows[2]]) == windows[1].window_ms
    )
    assert certified_until([]) is None


def test_the_times_of_a_look() -> None:
    seen = snapshot_of(small_look(3))
    assert seen.at_ms == NOW_MS + 15_000
