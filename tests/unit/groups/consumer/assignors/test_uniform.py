"""The uniform assignor: even, complete, and as still as it can be."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.groups.consumer.assignors.spec import Assignment, GroupSpec, MemberSpec
from headrace.groups.consumer.assignors.uniform import assign_uniformly
from tests.unit.groups.consumer.assignors.groups import (
    NOTHING,
    TOPICS,
    again,
    member,
    moved,
    run,
    sizes,
    specs,
)

ONE, TWO, THREE, *_ = TOPICS


def test_nobody_gets_nothing() -> None:
    assert assign_uniformly(GroupSpec({}, {})) == {}


@given(specs(alike=True))
def test_members_with_the_same_topics_differ_by_one_at_most(group: GroupSpec) -> None:
    counts = sizes(group, run(assign_uniformly, group)).values()
    assert max(counts) - min(counts) <= 1


@given(specs(alike=True), st.data())
def test_nothing_moves_that_need_not(group: GroupSpec, data: st.DataObject) -> None:
    """A member leaves: only its own partitions move. One comes: only what it is given moves."""
    settled = again(group, run(assign_uniformly, group))
    before = {name: spec.assigned for name, spec in settled.members.items()}
    assert assign_uniformly(settled) == before
    gone = data.draw(st.sampled_from(list(group.members)))
    rest = {name: spec for name, spec in settled.members.items() if name != gone}
    if rest:
        fewer = GroupSpec(rest, group.partition_counts)
        after = run(assign_uniformly, fewer)
        assert moved({name: each for name, each in before.items() if name != gone}, after) == 0
    topics = next(iter(group.members.values())).topics
    more = GroupSpec({**settled.members, "new": MemberSpec(None, topics, NOTHING)}, group.partition_counts)
    after = run(assign_uniformly, more)
    assert moved(before, after) == sizes(more, after)["new"]


@given(specs(alike=True), specs(alike=True))
def test_topics_that_change_move_no_more_than_the_quotas_demand(old: GroupSpec, new: GroupSpec) -> None:
    before = assign_uniformly(old)
    members = {name: spec._replace(assigned=before.get(name, NOTHING)) for name, spec in new.members.items()}
    group = GroupSpec(members, new.partition_counts)
    after = run(assign_uniformly, group)
    counts = sizes(group, after).values()
    assert max(counts) - min(counts) <= 1
    for name, spec in members.items():
        valid = {
            (topic, number)
            for topic, numbers in spec.assigned.items()
            if topic in spec.topics
            for number in numbers
            if number < group.partition_counts[topic]
        }
        kept = {(topic, number) for topic, numbers in after[name].items() for number in numbers} & valid
        assert len(kept) == min(len(valid), sizes(group, after)[name]), "gave something up, and got another"


@given(specs(alike=False))
def test_mixed_subscriptions_are_as_even_as_they_can_be(group: GroupSpec) -> None:
    assigned = run(assign_uniformly, group)
    assert _improvement(group, assigned) is None


@given(specs(alike=False))
def test_mixed_subscriptions_come_to_rest(group: GroupSpec) -> None:
    assigned = run(assign_uniformly, group)
    assert assign_uniformly(again(group, assigned)) == assigned


@given(specs(alike=False), st.data())
def test_mixed_groups_stay_even_and_move_little(group: GroupSpec, data: st.DataObject) -> None:
    settled = again(group, run(assign_uniformly, group))
    gone = data.draw(st.sampled_from(list(group.members)))
    fewer = GroupSpec(
        {name: spec for name, spec in settled.members.items() if name != gone}, group.partition_counts
    )
    after = run(assign_uniformly, fewer)
    assert _improvement(fewer, after) is None


def test_a_chain_of_moves_evens_out_what_no_single_move_can() -> None:
    """a and c share no topic: what a has too much of must pass through b."""
    group = GroupSpec(
        {
            "a": member(ONE, had={ONE: frozenset({0, 1, 2})}),
            "b": member(ONE, TWO, had={ONE: frozenset({3}), TWO: frozenset({0})}),
            "c": member(TWO, had={TWO: frozenset({1})}),
        },
        {ONE: 4, TWO: 2},
    )
    assert sizes(group, run(assign_uniformly, group)) == {"a": 2, "b": 2, "c": 2}


def test_two_that_claim_one_partition_are_told_apart() -> None:
    had = {ONE: frozenset({0, 1})}
    group = GroupSpec({"a": member(ONE, had=had), "b": member(ONE, had=had)}, {ONE: 2})
    assert sizes(group, run(assign_uniformly, group)) == {"a": 1, "b": 1}


def _improvement(group: GroupSpec, assigned: Mapping[str, Assignment]) -> tuple[str, str] | None:
    """Two members between which a chain of moves would make the group more even, found by brute force."""
    counts = sizes(group, assigned)
    gives = {
        (one, other)
        for one in group.members
        for other, spec in group.members.items()
        if any(topic in spec.topics for topic in assigned[one])
    }
    reaches = set(gives)
    for middle in group.members:
        reaches |= {
            (one, other)
            for one in group.members
            if (one, middle) in reaches
            for other in group.members
            if (middle, other) in reaches
        }
    return next(((one, other) for one, other in reaches if counts[one] - counts[other] >= 2), None)


@pytest.mark.parametrize("alike", [True, False])
def test_a_hundred_members_over_a_thousand_partitions(alike: bool) -> None:
    topics = TOPICS if alike else TOPICS[:-1]
    members = {f"m{n:03}": member(*(TOPICS if n else topics)) for n in range(100)}
    group = GroupSpec(members, dict.fromkeys(TOPICS, 200))
    assigned = run(assign_uniformly, group)
    assert set(sizes(group, assigned).values()) == {10}
    settled = again(group, assigned)
    rest = GroupSpec({n: spec for n, spec in settled.members.items() if n != "m050"}, group.partition_counts)
    after = run(assign_uniformly, rest)
    assert set(sizes(rest, after).values()) == {10, 11}
    assert moved({n: each for n, each in assigned.items() if n != "m050"}, after) == 0
