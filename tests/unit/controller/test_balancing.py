from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.controller.balancing import plan_drain, plan_leaders_away, plan_rebalance
from headrace.controller.placement import Candidate, place
from headrace.core.errors import InvalidReplicationFactor

Layout = dict[int, tuple[int, ...]]


def after(before: Mapping[int, tuple[int, ...]], plan: Mapping[int, tuple[int, ...]]) -> Layout:
    return {**before, **plan}


def holds(layout: Layout) -> Counter[int]:
    return Counter(broker for replicas in layout.values() for broker in replicas)


def leads(layout: Layout) -> Counter[int]:
    return Counter(replicas[0] for replicas in layout.values())


def copies(before: Layout, plan: Layout) -> int:
    return sum(len(set(replicas) - set(before[key])) for key, replicas in plan.items())


def spread(counts: Counter[int], brokers: Mapping[int, str | None]) -> int:
    return max(counts[each] for each in brokers) - min(counts[each] for each in brokers)


def layouts(brokers: int, racks: int, partitions: int, factor: int) -> tuple[Layout, dict[int, str | None]]:
    named: dict[int, str | None] = {each: f"r{each % racks}" if racks else None for each in range(brokers)}
    candidates = [Candidate(each, rack) for each, rack in named.items()]
    placed = place(candidates, partitions=partitions, replication_factor=factor, start=3)
    return dict(enumerate(placed)), named


def test_an_even_cluster_stays_as_it_is() -> None:
    layout: Layout = {key: (key % 3, (key + 1) % 3, 3 + key % 3) for key in range(9)}
    racks = {each: f"r{each}" for each in range(6)}
    layout |= {9 + key: (3 + key % 3, 3 + (key + 1) % 3, key % 3) for key in range(9)}
    assert plan_rebalance(layout, racks) == {}


def test_a_new_broker_gets_its_share_and_nothing_else_moves() -> None:
    layout, racks = layouts(3, 0, 40, 3)
    racks[3] = None
    plan = plan_rebalance(layout, racks)
    assert copies(layout, plan) == 30, "a quarter of 120 replicas: not one more"
    result = after(layout, plan)
    assert set(holds(result).values()) == {30}
    assert set(leads(result).values()) == {10}


def test_leaders_alone_are_evened_without_a_copy() -> None:
    layout: Layout = dict.fromkeys(range(9), (0, 1, 2))
    plan = plan_rebalance(layout, {0: None, 1: None, 2: None})
    assert copies(layout, plan) == 0
    assert set(leads(after(layout, plan)).values()) == {3}


def test_leaderships_are_passed_on_through_a_third() -> None:
    """0 shares nothing with 2, so 1 has to take one from 0 and give one to 2."""
    layout: Layout = {0: (0, 1), 1: (0, 1), 2: (0, 1), 3: (1, 2), 4: (1, 2), 5: (2, 1)}
    plan = plan_rebalance(layout, {0: None, 1: None, 2: None})
    assert set(leads(after(layout, plan)).values()) == {2}


def test_replicas_in_one_rack_are_taken_apart() -> None:
    layout: Layout = {0: (0, 2), 1: (1, 3)}
    plan = plan_rebalance(layout, {0: "a", 2: "a", 1: "b", 3: "b"})
    for replicas in after(layout, plan).values():
        assert {each % 2 for each in replicas} == {0, 1}


def test_a_dead_broker_keeps_what_it_has() -> None:
    layout: Layout = {0: (9, 0), 1: (9, 0), 2: (9, 1)}
    plan = plan_rebalance(layout, {0: None, 1: None})
    assert all(9 in replicas for replicas in after(layout, plan).values())


def test_a_drained_broker_is_empty_and_the_rest_is_even() -> None:
    layout, racks = layouts(6, 3, 30, 3)
    plan = plan_drain(layout, racks, (2,))
    result = after(layout, plan)
    assert copies(layout, plan) == holds(layout)[2]
    assert 2 not in holds(result)
    left = {each: rack for each, rack in racks.items() if each != 2}
    assert spread(leads(result), left) <= 3
    for replicas in result.values():
        assert len({each % 3 for each in replicas}) == 3
        assert len(set(replicas)) == 3
    assert set(plan) == {key for key, replicas in layout.items() if 2 in replicas}


def test_what_cannot_be_drained() -> None:
    with pytest.raises(InvalidReplicationFactor):
        plan_drain({0: (0, 1)}, {0: None, 1: None}, (1,))


def test_leaders_go_and_data_stays() -> None:
    layout: Layout = {0: (0, 1, 2), 1: (0, 2, 1), 2: (1, 0, 2), 3: (0,)}
    plan = plan_leaders_away(layout, {0: None, 1: None, 2: None}, (0,))
    assert plan == {0: (2, 0, 1), 1: (2, 0, 1)}
    assert copies(layout, plan) == 0
    assert 3 not in plan, "nobody else holds it"


@settings(max_examples=60, deadline=None)
@given(
    brokers=st.integers(2, 9),
    racks=st.integers(0, 3),
    layout=st.lists(st.lists(st.integers(0, 8), min_size=1, max_size=3, unique=True), max_size=25),
)
def test_every_plan_keeps_the_factor_and_never_worsens_anything(
    brokers: int, racks: int, layout: list[list[int]]
) -> None:
    named: dict[int, str | None] = {each: f"r{each % racks}" if racks else None for each in range(brokers)}
    before = {key: tuple(replicas) for key, replicas in enumerate(layout)}
    plan = plan_rebalance(before, named)
    result = after(before, plan)
    for key, replicas in result.items():
        assert len(replicas) == len(before[key]) == len(set(replicas))
        assert set(replicas) - set(before[key]) <= set(named)
        if racks:
            assert len({each % racks for each in replicas if each in named}) >= len(
                {each % racks for each in before[key] if each in named}
            )
    if not racks:
        assert spread(holds(result), named) <= max(1, spread(holds(before), named))
    assert plan_rebalance(result, named) == {}, "a plan that was carried out leaves nothing to plan"
