"""Static members: a process that starts again takes the place it had."""

from __future__ import annotations

import pytest

from headrace.groups.classic.states import ClassicState
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.stored.group_metadata_value import GroupMetadataValue
from tests.unit.groups.classic.coordinator import DELAY_MS, REBALANCE_MS, SESSION_MS, Coordinator


def static_group(coordinator: Coordinator, *instances: str) -> tuple[list[str], int]:
    joins = [coordinator.join(instance=each) for each in instances]
    coordinator.advance(3 * DELAY_MS)
    generation = coordinator.assign(joins)
    return [each.answer.member_id for each in joins], generation


def test_a_static_member_needs_no_id_first() -> None:
    coordinator = Coordinator()
    asked = coordinator.join(instance="a")
    assert asked.is_parked
    coordinator.advance(DELAY_MS)
    assert asked.answer.member_id.startswith("a-")
    assert asked.answer.members[0].group_instance_id == "a"


class TestOneThatStartsAgainInAStableGroup:
    def test_keeps_the_assignment_without_a_rebalance(self) -> None:
        coordinator = Coordinator()
        (leader, old), generation = static_group(coordinator, "a", "b")
        again = coordinator.join(instance="b").answer
        assert again.error_code == ErrorCode.NONE
        assert again.member_id not in (old, "")
        assert (again.generation_id, again.leader, again.members) == (generation, leader, [])
        assert not again.skip_assignment
        assert coordinator.group.state is ClassicState.STABLE
        assert coordinator.sync(again.member_id, generation).answer.assignment == old.encode()
        assert coordinator.heartbeat(leader, generation) is ErrorCode.NONE

    def test_fences_its_predecessor(self) -> None:
        coordinator = Coordinator()
        (_, old), generation = static_group(coordinator, "a", "b")
        coordinator.join(instance="b")
        fenced = ErrorCode.FENCED_INSTANCE_ID
        assert coordinator.heartbeat(old, generation, instance="b") is fenced
        assert coordinator.sync(old, generation, instance="b").error is fenced
        assert coordinator.join(old, instance="b").error is fenced
        assert coordinator.join(old, instance="b").answer.protocol_name is None
        assert coordinator.leave((old, "b")) == [fenced]
        assert coordinator.heartbeat(old, generation) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_the_new_id_is_written(self) -> None:
        coordinator = Coordinator()
        (leader, old), generation = static_group(coordinator, "a", "b")
        again = coordinator.join(instance="b").answer
        value = coordinator.log[-1].value
        assert isinstance(value, GroupMetadataValue)
        assert value.generation == generation
        assert {each.member_id: each.assignment for each in value.members} == {
            leader: leader.encode(),
            again.member_id: old.encode(),
        }

    def test_a_leader_is_told_to_skip_the_assignment_if_it_understands_that(self) -> None:
        coordinator = Coordinator()
        (old, _), _ = static_group(coordinator, "a", "b")
        again = coordinator.join(instance="a", version=9).answer
        assert again.skip_assignment
        assert again.leader == again.member_id != old
        assert len(again.members) == 2

    def test_and_otherwise_is_told_of_its_predecessor(self) -> None:
        coordinator = Coordinator()
        (old, _), _ = static_group(coordinator, "a", "b")
        again = coordinator.join(instance="a", version=8).answer
        assert not again.skip_assignment
        assert again.leader == old != again.member_id
        assert again.members == []
        assert coordinator.group.leader == again.member_id

    def test_a_change_of_the_selected_protocol_begins_a_rebalance(self) -> None:
        coordinator = Coordinator()
        both = [("range", b""), ("sticky", b"")]
        joins = [coordinator.join(instance=each, protocols=both) for each in ("a", "b")]
        coordinator.advance(2 * DELAY_MS)
        coordinator.assign(joins)
        assert coordinator.group.protocol_name == "range"
        assert coordinator.join(instance="b", protocols=both[1:]).is_parked
        assert coordinator.group.state is ClassicState.PREPARING_REBALANCE


def test_during_the_join_phase_the_predecessor_is_fenced_and_its_place_taken() -> None:
    coordinator = Coordinator()
    first = coordinator.join(instance="a")
    second = coordinator.join(instance="a")
    assert first.error is ErrorCode.FENCED_INSTANCE_ID
    assert first.answer.protocol_name is None
    assert second.is_parked
    coordinator.advance(2 * DELAY_MS)
    assert [each.member_id for each in second.answer.members] == [second.answer.member_id]
    assert coordinator.group.joined == 0


def test_between_join_and_sync_another_rebalance_is_needed() -> None:
    """The leader may have assigned to the old id already."""
    coordinator = Coordinator()
    joins = [coordinator.join(instance=each) for each in ("a", "b")]
    coordinator.advance(2 * DELAY_MS)
    old = joins[1].answer.member_id
    waiting = coordinator.sync(old, 1)
    again = coordinator.join(instance="b")
    assert waiting.error is ErrorCode.FENCED_INSTANCE_ID
    assert again.is_parked
    assert coordinator.group.state is ClassicState.PREPARING_REBALANCE


def test_absence_from_a_rebalance_is_forgiven_until_the_session_ends() -> None:
    coordinator = Coordinator()
    session_ms = 3 * REBALANCE_MS
    joins = [coordinator.join(instance=each, session_ms=session_ms) for each in ("a", "b")]
    coordinator.advance(2 * DELAY_MS)
    coordinator.assign(joins)
    absent = joins[1].answer.member_id
    waiting = coordinator.join(coordinator.new_id(session_ms=session_ms), session_ms=session_ms)
    coordinator.join(joins[0].answer.member_id, instance="a")
    coordinator.advance(REBALANCE_MS)
    assert waiting.answer.generation_id == 2
    assert absent in coordinator.group.members
    assert {
        each.group_instance_id for each in coordinator.join(joins[0].answer.member_id).answer.members
    } == {
        "a",
        "b",
        None,
    }


def test_a_rebalance_that_nobody_joins_waits_for_sessions_to_end() -> None:
    coordinator = Coordinator()
    session_ms = 3 * REBALANCE_MS
    joins = [coordinator.join(instance=each, session_ms=session_ms) for each in ("a", "b")]
    coordinator.advance(2 * DELAY_MS)
    coordinator.assign(joins)
    coordinator.leave(("", "a"))
    coordinator.advance(REBALANCE_MS)
    assert coordinator.group.state_name == "PreparingRebalance"
    coordinator.advance(session_ms)
    assert coordinator.group.state_name == "Empty"


def test_a_static_member_that_stays_away_is_removed() -> None:
    coordinator = Coordinator()
    _, generation = static_group(coordinator, "a")
    coordinator.advance(SESSION_MS)
    assert coordinator.group.state is ClassicState.EMPTY
    assert not coordinator.group.static_members
    again = coordinator.join(instance="a")
    coordinator.advance(DELAY_MS)
    assert again.answer.generation_id == generation + 2


@pytest.mark.parametrize("size", [1, 3])
def test_the_old_process_takes_no_timer_of_the_new_one_with_it(size: int) -> None:
    coordinator = Coordinator()
    instances = [f"i{number}" for number in range(size)]
    static_group(coordinator, *instances)
    coordinator.advance(SESSION_MS - 1)
    for each in instances:
        coordinator.join(instance=each)
    coordinator.advance(SESSION_MS - 1)
    assert len(coordinator.group.members) == size
