"""Heartbeats, and members that fall silent."""

from __future__ import annotations

import pytest

from headrace.groups.classic.states import ClassicState
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.heartbeat_request import HeartbeatRequest
from headrace.protocol.stored.group_metadata_value import GroupMetadataValue
from tests.unit.groups.classic.coordinator import DELAY_MS, REBALANCE_MS, SESSION_MS, START_MS, Coordinator


def test_refusals() -> None:
    coordinator = Coordinator()
    assert coordinator.heartbeat("m", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    ids, generation = coordinator.stable_group()
    assert coordinator.heartbeat("stranger", generation) is ErrorCode.UNKNOWN_MEMBER_ID
    assert coordinator.heartbeat(ids[0], generation + 1) is ErrorCode.ILLEGAL_GENERATION
    assert coordinator.heartbeat(ids[0], generation - 1) is ErrorCode.ILLEGAL_GENERATION
    assert coordinator.heartbeat(ids[0], generation, instance="i") is ErrorCode.UNKNOWN_MEMBER_ID
    assert coordinator.heartbeat(ids[0], generation) is ErrorCode.NONE


def test_a_member_may_already_beat_while_the_assignment_is_made() -> None:
    coordinator = Coordinator()
    member_id = coordinator.new_id()
    coordinator.join(member_id)
    coordinator.advance(DELAY_MS)
    assert coordinator.group.state is ClassicState.COMPLETING_REBALANCE
    assert coordinator.heartbeat(member_id, 1) is ErrorCode.NONE


def test_a_heartbeat_tells_nothing_that_has_to_be_committed_first() -> None:
    coordinator = Coordinator()
    ids, generation = coordinator.stable_group()
    request = HeartbeatRequest(group_id="g", generation_id=generation, member_id=ids[0])
    assert not coordinator.shard.heartbeat(request, coordinator.now_ms).reveals


def test_a_silent_member_is_removed_when_its_session_ends() -> None:
    coordinator = Coordinator()
    (loud, silent), generation = coordinator.stable_group()
    coordinator.advance(SESSION_MS - 1)
    assert coordinator.heartbeat(loud, generation) is ErrorCode.NONE
    coordinator.advance(1)
    assert list(coordinator.group.members) == [loud]
    assert coordinator.heartbeat(silent, generation) is ErrorCode.UNKNOWN_MEMBER_ID
    assert coordinator.heartbeat(loud, generation) is ErrorCode.REBALANCE_IN_PROGRESS
    assert coordinator.join(loud).answer.generation_id == generation + 1


def test_the_last_one_leaves_an_empty_group_in_the_log() -> None:
    coordinator = Coordinator()
    _, generation = coordinator.stable_group(1)
    ended_ms = coordinator.now_ms + SESSION_MS
    coordinator.advance(SESSION_MS + 5_000)
    assert coordinator.group.state is ClassicState.EMPTY
    value = coordinator.log[-1].value
    assert isinstance(value, GroupMetadataValue)
    assert (value.generation, value.members, value.leader) == (generation + 1, [], None)
    assert (value.protocol_type, value.protocol) == ("consumer", None)
    assert value.current_state_timestamp == ended_ms, "offsets expire from then on"


def test_a_parked_request_keeps_a_session_alive() -> None:
    coordinator = Coordinator()
    ids, generation = coordinator.stable_group(2)
    waiting = coordinator.join(ids[0], protocols=[("range", b"new")])
    for _ in range(REBALANCE_MS // SESSION_MS - 1):
        coordinator.heartbeat(ids[1], generation)
        coordinator.advance(SESSION_MS - 1)
    assert waiting.is_parked
    assert ids[0] in coordinator.group.members
    coordinator.join(ids[1])
    assert waiting.answer.generation_id == generation + 1
    coordinator.advance(SESSION_MS - 1)
    assert ids[0] in coordinator.group.members, "its session began anew with the answer"


def test_a_silent_member_holds_a_rebalance_up_only_until_its_session_ends() -> None:
    coordinator = Coordinator()
    ids, generation = coordinator.stable_group(2)
    waiting = coordinator.join(ids[0], protocols=[("range", b"new")])
    coordinator.advance(SESSION_MS)
    assert waiting.answer.generation_id == generation + 1
    assert list(coordinator.group.members) == [ids[0]]


@pytest.mark.parametrize("state", ["stable", "completing"])
def test_offset_commits_keep_a_session_alive_unless_the_member_has_to_sync(state: str) -> None:
    coordinator = Coordinator()
    ids = [coordinator.new_id(), coordinator.new_id()]
    joins = [coordinator.join(each) for each in ids]
    coordinator.advance(2 * DELAY_MS)
    if state == "stable":
        coordinator.assign(joins)
    coordinator.advance(SESSION_MS - 1)
    coordinator.shard.classic.on_offset_commit(coordinator.group, ids[0], coordinator.now_ms)
    coordinator.shard.classic.on_offset_commit(coordinator.group, "stranger", coordinator.now_ms)
    coordinator.advance(1)
    assert (ids[0] in coordinator.group.members) == (state == "stable")


def test_every_timer_ends_with_its_group() -> None:
    coordinator = Coordinator()
    before = set(coordinator.timers)
    ids, _ = coordinator.stable_group(3)
    coordinator.new_id()
    coordinator.leave(*((each, None) for each in ids))
    coordinator.advance(SESSION_MS)
    assert coordinator.group.state is ClassicState.EMPTY
    assert set(coordinator.timers) == before
    assert coordinator.now_ms > START_MS
