"""The range assignor."""

from __future__ import annotations

from hypothesis import given

from headrace.groups.consumer.assignors.range import assign_ranges
from headrace.groups.consumer.assignors.spec import GroupSpec
from tests.unit.groups.consumer.assignors.groups import TOPICS, member, run, specs

ONE, TWO, *_ = TOPICS


def test_partitions_of_one_number_meet_at_one_member() -> None:
    group = GroupSpec({name: member(ONE, TWO) for name in ("a", "b")}, {ONE: 3, TWO: 3})
    assert run(assign_ranges, group) == {"a": {ONE: {0, 1}, TWO: {0, 1}}, "b": {ONE: {2}, TWO: {2}}}


def test_each_topic_is_cut_among_its_own_subscribers() -> None:
    group = GroupSpec({"a": member(ONE), "b": member(ONE, TWO), "c": member(TWO)}, {ONE: 3, TWO: 2})
    assert run(assign_ranges, group) == {
        "a": {ONE: {0, 1}},
        "b": {ONE: {2}, TWO: {0}},
        "c": {TWO: {1}},
    }


def test_who_comes_too_late_gets_nothing() -> None:
    group = GroupSpec({name: member(ONE) for name in ("a", "b", "c")}, {ONE: 2})
    assert run(assign_ranges, group) == {"a": {ONE: {0}}, "b": {ONE: {1}}, "c": {}}


def test_an_instance_keeps_its_range_whatever_its_member_id() -> None:
    before = GroupSpec({"a": member(ONE), "z": member(ONE, instance="i")}, {ONE: 2})
    after = GroupSpec({"a": member(ONE), "0": member(ONE, instance="i")}, {ONE: 2})
    assert run(assign_ranges, before)["z"] == run(assign_ranges, after)["0"] == {ONE: {0}}


@given(specs(alike=False, instances=True))
def test_every_topic_is_shared_evenly_in_consecutive_pieces(group: GroupSpec) -> None:
    assigned = run(assign_ranges, group)
    for topic in TOPICS:
        subscribers = [name for name, spec in group.members.items() if topic in spec.topics]
        pieces = [assigned[name].get(topic, frozenset()) for name in subscribers]
        if pieces:
            assert max(map(len, pieces)) - min(map(len, pieces)) <= 1
        for piece in pieces:
            assert not piece or piece == set(range(min(piece), max(piece) + 1))
