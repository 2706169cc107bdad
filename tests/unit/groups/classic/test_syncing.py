"""SyncGroup: the assignment of a generation, and who never asks for it."""

from __future__ import annotations

import pytest

from headrace.coordinators.decision import CoordinatorRecord
from headrace.groups.classic.states import ClassicState
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.join_group_response import JoinGroupResponse
from headrace.protocol.messages.sync_group_response import SyncGroupResponse
from headrace.protocol.stored.group_metadata_value import GroupMetadataValue
from tests.unit.groups.classic.coordinator import DELAY_MS, REBALANCE_MS, SESSION_MS, Asked, Coordinator


def joined(coordinator: Coordinator, size: int = 2) -> list[Asked[JoinGroupResponse]]:
    ids = [coordinator.new_id() for _ in range(size)]
    joins = [coordinator.join(each) for each in ids]
    coordinator.advance(2 * DELAY_MS)
    return joins


def value_of(record: CoordinatorRecord) -> GroupMetadataValue:
    assert isinstance(record.value, GroupMetadataValue)
    return record.value


def test_followers_wait_for_the_leader() -> None:
    coordinator = Coordinator()
    leader, follower = (each.answer.member_id for each in joined(coordinator))
    waiting = coordinator.sync(follower, 1)
    assert waiting.is_parked
    done = coordinator.sync(leader, 1, {leader: b"L", follower: b"F"})
    assert done.answer == SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=b"L")
    assert waiting.answer.assignment == b"F"
    assert coordinator.group.state is ClassicState.STABLE


def test_the_generation_is_written_with_its_assignment() -> None:
    coordinator = Coordinator()
    leader, follower = (each.answer.member_id for each in joined(coordinator))
    before = len(coordinator.log)
    coordinator.sync(leader, 1, {leader: b"L", follower: b"F"})
    (record,) = coordinator.log[before:]
    value = value_of(record)
    assert record.value_version == 3
    assert (value.protocol_type, value.generation, value.protocol) == ("consumer", 1, "range")
    assert value.leader == leader
    assert [(each.member_id, each.assignment) for each in value.members] == [(leader, b"L"), (follower, b"F")]
    first = value.members[0]
    assert (first.client_id, first.client_host) == ("client", "/127.0.0.1")
    assert (first.rebalance_timeout, first.session_timeout) == (REBALANCE_MS, SESSION_MS)
    assert (first.subscription, first.group_instance_id) == (b"r", None)


def test_a_join_phase_writes_nothing() -> None:
    coordinator = Coordinator()
    joined(coordinator)
    assert len(coordinator.log) == 1  # the new group


def test_who_is_left_out_gets_an_empty_assignment() -> None:
    coordinator = Coordinator()
    leader, follower = (each.answer.member_id for each in joined(coordinator))
    waiting = coordinator.sync(follower, 1)
    coordinator.sync(leader, 1, {leader: b"all", "stranger": b"x"})
    assert (waiting.error, waiting.answer.assignment) == (ErrorCode.NONE, b"")
    assert [each.member_id for each in value_of(coordinator.log[-1]).members] == [leader, follower]


def test_later_syncs_are_answered_from_what_is_known() -> None:
    coordinator = Coordinator()
    leader, follower = (each.answer.member_id for each in joined(coordinator))
    coordinator.sync(leader, 1, {leader: b"L", follower: b"F"})
    assert coordinator.sync(follower, 1).answer.assignment == b"F"
    assert coordinator.sync(leader, 1, {leader: b"other"}).answer.assignment == b"L"


@pytest.mark.parametrize("stable", [False, True])
def test_refusals(stable: bool) -> None:
    coordinator = Coordinator()
    joins = joined(coordinator)
    leader = joins[0].answer.member_id
    if stable:
        coordinator.assign(joins)
    assert coordinator.sync("stranger", 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert coordinator.sync(leader, 0).error is ErrorCode.ILLEGAL_GENERATION
    assert coordinator.sync(leader, 2).error is ErrorCode.ILLEGAL_GENERATION
    inconsistent = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert coordinator.sync(leader, 1, protocol_type="connect").error is inconsistent
    assert coordinator.sync(leader, 1, protocol_name="sticky").error is inconsistent
    assert coordinator.sync(leader, 1, instance="i").error is ErrorCode.UNKNOWN_MEMBER_ID
    good = coordinator.sync(leader, 1, {}, protocol_type="consumer", protocol_name="range")
    assert good.error is ErrorCode.NONE


def test_no_group_or_an_empty_one_knows_nobody() -> None:
    coordinator = Coordinator()
    assert coordinator.sync("m", 0).error is ErrorCode.UNKNOWN_MEMBER_ID
    member_id = coordinator.new_id()
    assert coordinator.sync(member_id, 0).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_sends_those_who_wait_back_to_join() -> None:
    coordinator = Coordinator()
    leader, follower = (each.answer.member_id for each in joined(coordinator))
    waiting = coordinator.sync(follower, 1)
    coordinator.join(coordinator.new_id())
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert coordinator.sync(leader, 1, {}).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert coordinator.group.state is ClassicState.PREPARING_REBALANCE


def test_who_syncs_twice_waits_once() -> None:
    coordinator = Coordinator()
    leader, follower = (each.answer.member_id for each in joined(coordinator))
    first, second = coordinator.sync(follower, 1), coordinator.sync(follower, 1)
    assert first.error is ErrorCode.REBALANCE_IN_PROGRESS
    coordinator.sync(leader, 1, {follower: b"F"})
    assert second.answer.assignment == b"F"


class TestThoseWhoNeverSync:
    def test_are_removed_after_the_rebalance_timeout(self) -> None:
        coordinator = Coordinator()
        leader, follower = (each.answer.member_id for each in joined(coordinator))
        coordinator.sync(leader, 1, {leader: b"", follower: b""})
        for _ in range(REBALANCE_MS // SESSION_MS):
            coordinator.heartbeat(leader, 1)
            coordinator.heartbeat(follower, 1)
            coordinator.advance(SESSION_MS - 1)
        assert coordinator.group.state is ClassicState.STABLE
        coordinator.heartbeat(leader, 1)
        coordinator.advance(REBALANCE_MS % (SESSION_MS - 1))
        assert list(coordinator.group.members) == [leader]
        assert coordinator.heartbeat(leader, 1) is ErrorCode.REBALANCE_IN_PROGRESS

    def test_even_if_it_is_the_leader(self) -> None:
        coordinator = Coordinator()
        leader, follower = (each.answer.member_id for each in joined(coordinator))
        waiting = coordinator.sync(follower, 1)
        for _ in range(REBALANCE_MS // (SESSION_MS - 1) + 1):
            coordinator.heartbeat(leader, 1)
            coordinator.advance(SESSION_MS - 1)
        assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
        assert list(coordinator.group.members) == [follower]

    def test_and_nothing_happens_if_all_did(self) -> None:
        coordinator = Coordinator()
        ids, generation = coordinator.stable_group()
        for _ in range(3 * REBALANCE_MS // SESSION_MS):
            assert [coordinator.heartbeat(each, generation) for each in ids] == [ErrorCode.NONE] * 2
            coordinator.advance(SESSION_MS - 1)
        assert coordinator.group.state is ClassicState.STABLE


def test_an_assignment_that_could_not_be_written_changes_nothing() -> None:
    """The runtime refuses records that are too large before it replays them."""
    coordinator = Coordinator()
    leader, follower = (each.answer.member_id for each in joined(coordinator))
    waiting = coordinator.sync(follower, 1)
    coordinator.records_are_too_large = True
    coordinator.sync(leader, 1, {leader: b"huge"})
    coordinator.records_are_too_large = False
    assert waiting.is_parked
    assert coordinator.group.state is ClassicState.COMPLETING_REBALANCE
    for _ in range(REBALANCE_MS // (SESSION_MS - 1) + 1):
        coordinator.heartbeat(leader, 1)
        coordinator.advance(SESSION_MS - 1)
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS, "nobody waits for ever"
