"""LeaveGroup: dynamic, static and pending members, one or several."""

from __future__ import annotations

from headrace.groups.classic.states import ClassicState
from headrace.protocol.error_codes import ErrorCode
from tests.unit.groups.classic.coordinator import DELAY_MS, Coordinator


def test_who_leaves_is_gone_at_once() -> None:
    coordinator = Coordinator()
    ids, generation = coordinator.stable_group()
    assert coordinator.leave((ids[0], None)) == [ErrorCode.NONE]
    assert list(coordinator.group.members) == [ids[1]]
    assert coordinator.group.leader == ids[1]
    assert coordinator.heartbeat(ids[1], generation) is ErrorCode.REBALANCE_IN_PROGRESS
    assert coordinator.heartbeat(ids[0], generation) is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_last_one_leaves_the_group_empty() -> None:
    coordinator = Coordinator()
    ids, generation = coordinator.stable_group()
    assert coordinator.leave((ids[0], None), (ids[1], None)) == [ErrorCode.NONE] * 2
    assert coordinator.group.state is ClassicState.EMPTY
    assert coordinator.group.generation == generation + 1
    assert coordinator.group.leader is None


def test_each_of_several_is_answered_on_its_own() -> None:
    coordinator = Coordinator()
    ids, _ = coordinator.stable_group()
    assert coordinator.leave((ids[0], None), ("stranger", None), (ids[0], None)) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]


def test_strangers_disturb_nobody() -> None:
    coordinator = Coordinator()
    coordinator.stable_group()
    assert coordinator.leave(("stranger", None), ("", None), ("", "i")) == [ErrorCode.UNKNOWN_MEMBER_ID] * 3
    assert coordinator.group.state is ClassicState.STABLE
    assert Coordinator().leave(("m", None)) == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_a_pending_id_may_leave() -> None:
    coordinator = Coordinator()
    ids, generation = coordinator.stable_group(1)
    pending = coordinator.new_id()
    waiting = coordinator.join(ids[0])
    assert waiting.is_parked
    assert coordinator.leave((pending, None)) == [ErrorCode.NONE]
    assert waiting.answer.generation_id == generation + 1


def test_what_a_leaving_member_waits_for_is_answered() -> None:
    coordinator = Coordinator()
    ids = [coordinator.new_id(), coordinator.new_id()]
    joins = [coordinator.join(each) for each in ids]
    coordinator.leave((ids[1], None))
    assert joins[1].error is ErrorCode.UNKNOWN_MEMBER_ID
    coordinator.advance(2 * DELAY_MS)
    assert joins[0].answer.generation_id == 1
    late = coordinator.join(coordinator.new_id())
    coordinator.join(ids[0])
    waiting = coordinator.sync(late.answer.member_id, 2)
    coordinator.leave((late.answer.member_id, None))
    assert waiting.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert not coordinator.parked


def test_static_members_leave_by_instance_by_id_or_by_both() -> None:
    coordinator = Coordinator()
    joins = [coordinator.join(instance=each) for each in ("a", "b", "c")]
    coordinator.advance(3 * DELAY_MS)
    ids = [each.answer.member_id for each in joins]
    coordinator.assign(joins)
    assert coordinator.leave(("", "a"), (ids[1], None)) == [ErrorCode.NONE] * 2
    assert coordinator.leave((ids[2], "a")) == [ErrorCode.UNKNOWN_MEMBER_ID], "a is gone"
    assert coordinator.leave(("old", "c")) == [ErrorCode.FENCED_INSTANCE_ID]
    assert coordinator.leave((ids[2], "c")) == [ErrorCode.NONE]
    assert coordinator.group.state is ClassicState.EMPTY
    assert not coordinator.group.static_members
