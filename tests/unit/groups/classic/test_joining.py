"""JoinGroup: ids, the initial delay, the protocol, the leader, and who is waited for."""

from __future__ import annotations

import pytest

from headrace.groups.classic.sessions import NEW_MEMBER_JOIN_TIMEOUT_MS
from headrace.groups.classic.states import ClassicState
from headrace.groups.group_config import GroupConfig
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.join_group_response import JoinGroupResponse
from tests.unit.groups.classic.coordinator import (
    DELAY_MS,
    GROUP,
    RANGE,
    REBALANCE_MS,
    SESSION_MS,
    START_MS,
    Coordinator,
)


def test_a_new_dynamic_member_is_given_an_id_first() -> None:
    coordinator = Coordinator()
    asked = coordinator.join()
    assert asked.error is ErrorCode.MEMBER_ID_REQUIRED
    assert asked.answer.member_id.startswith("client-")
    assert len(asked.answer.member_id) == len("client-") + 36
    assert coordinator.group.state is ClassicState.EMPTY
    assert list(coordinator.group.pending_joins) == [asked.answer.member_id]


@pytest.mark.parametrize("version", [0, 3])
def test_older_clients_join_at_once(version: int) -> None:
    coordinator = Coordinator()
    asked = coordinator.join(version=version)
    assert asked.is_parked
    coordinator.advance(DELAY_MS)
    assert asked.error is ErrorCode.NONE
    assert asked.answer.leader == asked.answer.member_id


def test_an_id_that_nobody_joins_with_is_forgotten() -> None:
    coordinator = Coordinator()
    member_id = coordinator.new_id()
    coordinator.advance(SESSION_MS)
    assert not coordinator.group.pending_joins
    assert coordinator.join(member_id).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_group_exists_in_the_log_from_its_first_join_on() -> None:
    coordinator = Coordinator()
    coordinator.new_id()
    coordinator.new_id()
    assert len(coordinator.log) == 1
    value = coordinator.log[0].value
    assert coordinator.log[0].value_version == 3
    assert value is not None
    assert (value.protocol_type, value.generation, value.protocol, value.leader) == ("", 0, None, None)  # type: ignore[attr-defined]  # a GroupMetadataValue
    assert value.current_state_timestamp == START_MS  # type: ignore[attr-defined]  # a GroupMetadataValue
    assert coordinator.group.state is ClassicState.EMPTY


def test_a_member_id_without_a_group_is_unknown_and_makes_none() -> None:
    coordinator = Coordinator()
    assert coordinator.join("me").error is ErrorCode.UNKNOWN_MEMBER_ID
    assert coordinator.join("me").answer.member_id == "me"
    assert len(coordinator.shard.groups) == 0
    assert not coordinator.log


def test_an_unknown_member_of_a_group_is_told_null_for_the_protocol() -> None:
    coordinator = Coordinator()
    coordinator.stable_group()
    answer = coordinator.join("stranger").answer
    assert answer == JoinGroupResponse(
        error_code=ErrorCode.UNKNOWN_MEMBER_ID, member_id="stranger", protocol_name=None
    )


class TestTheInitialDelay:
    def test_joins_are_parked_until_it_is_over(self) -> None:
        coordinator = Coordinator()
        asked = coordinator.join(coordinator.new_id())
        coordinator.advance(DELAY_MS - 1)
        assert asked.is_parked
        assert coordinator.group.state_name == "PreparingRebalance"
        coordinator.advance(1)
        assert asked.answer.generation_id == 1
        assert coordinator.group.state_name == "CompletingRebalance"

    def test_a_newcomer_prolongs_it(self) -> None:
        coordinator = Coordinator()
        first = coordinator.join(coordinator.new_id())
        coordinator.advance(DELAY_MS - 1)
        second = coordinator.join(coordinator.new_id())
        coordinator.advance(DELAY_MS)
        assert first.is_parked
        assert second.is_parked
        coordinator.advance(1)
        assert {first.answer.generation_id, second.answer.generation_id} == {1}

    def test_but_not_beyond_the_rebalance_timeout_of_the_first(self) -> None:
        coordinator = Coordinator()
        first = coordinator.join(coordinator.new_id(), rebalance_ms=2 * DELAY_MS + 500)
        for _ in range(2):
            coordinator.advance(DELAY_MS - 1)
            coordinator.join(coordinator.new_id())
            coordinator.advance(1)
        assert first.is_parked
        coordinator.advance(500)
        assert first.answer.generation_id == 1

    def test_without_one_the_group_begins_at_once(self) -> None:
        coordinator = Coordinator(GroupConfig(group_initial_rebalance_delay_ms=0))
        asked = coordinator.join(coordinator.new_id())
        coordinator.advance(0)
        assert asked.answer.generation_id == 1


def test_only_the_leader_is_told_who_else_is_there() -> None:
    coordinator = Coordinator()
    ids = [coordinator.new_id(), coordinator.new_id()]
    first = coordinator.join(ids[0], protocols=[("range", b"1")])
    second = coordinator.join(ids[1], protocols=[("range", b"2")])
    coordinator.advance(2 * DELAY_MS)
    assert first.answer.leader == second.answer.leader == ids[0]
    assert {each.member_id: each.metadata for each in first.answer.members} == {ids[0]: b"1", ids[1]: b"2"}
    assert second.answer.members == []
    assert first.answer.protocol_type == "consumer"
    assert second.answer.protocol_name == "range"
    assert not second.answer.skip_assignment


class TestTheProtocol:
    def test_most_votes_win_among_what_all_know(self) -> None:
        coordinator = Coordinator()
        wishes = [("a", "b", "c"), ("b", "a", "d"), ("b", "a", "c")]
        joins = []
        for wish in wishes:
            protocols = [(name, name.encode()) for name in wish]
            joins.append(coordinator.join(coordinator.new_id(protocols=protocols), protocols=protocols))
        coordinator.advance(3 * DELAY_MS)
        assert {each.answer.protocol_name for each in joins} == {"b"}
        assert {each.metadata for each in joins[0].answer.members} == {b"b"}

    def test_who_shares_none_with_all_others_is_refused(self) -> None:
        coordinator = Coordinator()
        coordinator.stable_group(protocols=[("a", b""), ("b", b"")])
        refused = coordinator.join(protocols=[("c", b"")])
        assert refused.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert refused.answer.member_id == ""
        assert coordinator.join(protocols=[("c", b""), ("b", b"")]).error is ErrorCode.MEMBER_ID_REQUIRED

    def test_so_is_who_is_of_another_type(self) -> None:
        coordinator = Coordinator()
        ids, _ = coordinator.stable_group()
        assert coordinator.join(protocol_type="connect").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert (
            coordinator.join(ids[0], protocol_type="connect").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        )

    @pytest.mark.parametrize(("protocol_type", "protocols"), [("", RANGE), ("consumer", ())])
    def test_a_first_member_must_say_one(self, protocol_type: str, protocols: tuple[()]) -> None:
        coordinator = Coordinator()
        asked = coordinator.join(protocol_type=protocol_type, protocols=protocols)
        assert asked.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    def test_any_type_will_do_and_may_change_once_the_group_is_empty(self) -> None:
        coordinator = Coordinator()
        ids, _ = coordinator.stable_group(1, protocol_type="sr", protocols=[("v0", b"{}")])
        assert coordinator.group.protocol_type == "sr"
        assert coordinator.leave((ids[0], None)) == [ErrorCode.NONE]
        coordinator.stable_group(1, protocol_type="connect", protocols=[("eager", b"")])
        assert coordinator.group.protocol_type == "connect"


class TestJoiningAgain:
    def test_a_new_member_makes_all_others_join_again(self) -> None:
        coordinator = Coordinator()
        ids, generation = coordinator.stable_group(2)
        late = coordinator.join(coordinator.new_id())
        assert coordinator.group.state is ClassicState.PREPARING_REBALANCE
        assert coordinator.heartbeat(ids[0], generation) is ErrorCode.REBALANCE_IN_PROGRESS
        again = [coordinator.join(each) for each in ids]
        answers = [each.answer for each in (late, *again)]
        assert {each.generation_id for each in answers} == {generation + 1}
        assert {each.leader for each in answers} == {ids[0]}

    def test_members_that_do_not_are_left_behind(self) -> None:
        coordinator = Coordinator()
        ids, generation = coordinator.stable_group(2)
        late = coordinator.join(coordinator.new_id())
        coordinator.join(ids[1])
        for _ in range(REBALANCE_MS // SESSION_MS + 1):
            coordinator.heartbeat(ids[0], generation)
            coordinator.advance(SESSION_MS - 1)
        assert late.answer.leader == ids[1], "a leader that did not join cannot lead"
        assert list(coordinator.group.members) == [ids[1], late.answer.member_id]
        assert coordinator.heartbeat(ids[0], generation) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_ids_that_were_given_out_are_waited_for(self) -> None:
        coordinator = Coordinator()
        ids, _ = coordinator.stable_group(1)
        pending = coordinator.new_id()
        again = coordinator.join(ids[0])
        assert again.is_parked
        coordinator.advance(SESSION_MS)
        assert again.error is ErrorCode.NONE
        assert pending not in coordinator.group.members

    def test_a_follower_whose_answer_was_lost_gets_it_again(self) -> None:
        coordinator = Coordinator()
        ids, generation = coordinator.stable_group(2)
        again = coordinator.join(ids[1]).answer
        assert (again.generation_id, again.leader, again.members) == (generation, ids[0], [])
        assert coordinator.group.state is ClassicState.STABLE

    def test_and_so_does_anybody_who_has_not_synced(self) -> None:
        coordinator = Coordinator()
        member_id = coordinator.new_id()
        first = coordinator.join(member_id)
        coordinator.advance(DELAY_MS)
        assert coordinator.join(member_id).answer == first.answer

    def test_the_leader_of_a_stable_group_may_ask_for_a_rebalance(self) -> None:
        coordinator = Coordinator()
        ids, _ = coordinator.stable_group(2)
        assert coordinator.join(ids[0]).is_parked
        assert coordinator.group.state is ClassicState.PREPARING_REBALANCE

    @pytest.mark.parametrize("synced", [True, False])
    def test_other_metadata_begins_a_rebalance(self, synced: bool) -> None:
        coordinator = Coordinator()
        ids = [coordinator.new_id(), coordinator.new_id()]
        joins = [coordinator.join(each) for each in ids]
        coordinator.advance(2 * DELAY_MS)
        if synced:
            coordinator.assign(joins)
        assert coordinator.join(ids[1], protocols=[("range", b"other")]).is_parked
        assert coordinator.group.state is ClassicState.PREPARING_REBALANCE

    def test_who_joins_twice_waits_once(self) -> None:
        """The connection broke, and the client tried again while the first request was still parked."""
        coordinator = Coordinator()
        member_id = coordinator.new_id()
        first = coordinator.join(member_id)
        second = coordinator.join(member_id)
        assert first.error is ErrorCode.REBALANCE_IN_PROGRESS
        assert list(coordinator.parked) == [second.completion]
        coordinator.advance(2 * DELAY_MS)
        assert second.answer.generation_id == 1
        assert coordinator.group.joined == 0


def test_a_new_member_is_not_parked_for_ever() -> None:
    coordinator = Coordinator()
    ids, generation = coordinator.stable_group(1, rebalance_ms=2 * NEW_MEMBER_JOIN_TIMEOUT_MS)
    late = coordinator.join(coordinator.new_id())
    for _ in range(NEW_MEMBER_JOIN_TIMEOUT_MS // (SESSION_MS - 1) + 1):
        assert late.is_parked
        coordinator.heartbeat(ids[0], generation)
        coordinator.advance(SESSION_MS - 1)
    assert late.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert late.answer.member_id == ""


def test_a_pending_id_cannot_become_a_static_member() -> None:
    coordinator = Coordinator()
    asked = coordinator.join(coordinator.new_id(), instance="i")
    assert asked.error is ErrorCode.UNKNOWN_SERVER_ERROR


class TestTheLargestSize:
    def test_one_more_is_refused(self) -> None:
        coordinator = Coordinator(GroupConfig(group_max_size=2))
        coordinator.stable_group(2)
        asked = coordinator.join()
        assert asked.error is ErrorCode.GROUP_MAX_SIZE_REACHED
        assert asked.answer.member_id == ""

    def test_also_while_members_join(self) -> None:
        coordinator = Coordinator(GroupConfig(group_max_size=2))
        ids = [coordinator.new_id() for _ in range(3)]
        joins = [coordinator.join(each) for each in ids]
        assert joins[2].error is ErrorCode.GROUP_MAX_SIZE_REACHED
        assert list(coordinator.group.pending_joins) == []
        assert coordinator.join(ids[0]).is_parked, "who is in, stays in"

    def test_a_group_over_a_lowered_limit_is_rebalanced_when_it_is_loaded(self) -> None:
        coordinator = Coordinator()
        ids, generation = coordinator.stable_group(3)
        after = Coordinator(GroupConfig(group_max_size=2), list(coordinator.log))
        assert after.group.state is ClassicState.PREPARING_REBALANCE
        assert after.heartbeat(ids[0], generation) is ErrorCode.REBALANCE_IN_PROGRESS
        joins = [after.join(each) for each in ids]
        assert joins[2].error is ErrorCode.GROUP_MAX_SIZE_REACHED
        assert [each.answer.generation_id for each in joins[:2]] == [generation + 1] * 2, (
            "nobody is waited for"
        )
        after.assign(joins[:2])
        assert list(after.group.members) == ids[:2]

    def test_an_id_that_was_given_out_and_is_turned_away_is_not_waited_for(self) -> None:
        coordinator = Coordinator(GroupConfig(group_max_size=2))
        ids, _ = coordinator.stable_group(1)
        late = [coordinator.new_id(), coordinator.new_id()]
        joins = [coordinator.join(late[0]), coordinator.join(ids[0])]
        assert all(each.is_parked for each in joins)
        assert coordinator.join(late[1]).error is ErrorCode.GROUP_MAX_SIZE_REACHED
        assert [each.error for each in joins] == [ErrorCode.NONE] * 2

    def test_the_first_rebalance_still_waits_for_more(self) -> None:
        coordinator = Coordinator(GroupConfig(group_max_size=1))
        ids = [coordinator.new_id(), coordinator.new_id()]
        first = coordinator.join(ids[0])
        assert coordinator.join(ids[1]).error is ErrorCode.GROUP_MAX_SIZE_REACHED
        assert first.is_parked
        coordinator.advance(2 * DELAY_MS)
        assert first.error is ErrorCode.NONE


def test_groups_do_not_disturb_each_other() -> None:
    coordinator = Coordinator()
    _, generation = coordinator.stable_group()
    coordinator.join(coordinator.new_id(group="other"), group="other")
    assert coordinator.group.state is ClassicState.STABLE
    assert coordinator.group.generation == generation
    assert {group.group_id for group in coordinator.shard.groups} == {GROUP, "other"}
