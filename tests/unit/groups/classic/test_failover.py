"""A new coordinator has the log of the old one, and nothing else."""

from __future__ import annotations

from typing import cast

from headrace.coordinators.decision import CoordinatorRecord
from headrace.groups.classic.group import ClassicGroup
from headrace.groups.classic.states import ClassicState
from headrace.groups.group import Group, GroupType
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.stored.consumer_group_metadata_key import ConsumerGroupMetadataKey
from headrace.protocol.stored.group_metadata_key import GroupMetadataKey
from headrace.protocol.stored.group_metadata_value import GroupMetadataValue, MemberMetadata
from tests.unit.groups.classic.coordinator import DELAY_MS, GROUP, SESSION_MS, Coordinator


def test_a_stable_group_goes_on_without_a_rebalance() -> None:
    before = Coordinator()
    ids, generation = before.stable_group(3)
    after = before.failover()
    assert after.described() == before.described()
    assert [after.heartbeat(each, generation) for each in ids] == [ErrorCode.NONE] * 3
    assert after.sync(ids[2], generation).answer.assignment == ids[2].encode()
    after.group.validate_offset_commit(ids[1], None, generation, 9, transactional=False)


def test_members_have_a_whole_session_to_find_the_new_coordinator() -> None:
    before = Coordinator()
    ids, generation = before.stable_group(2)
    before.advance(SESSION_MS - 1)
    after = before.failover()
    after.advance(SESSION_MS - 1)
    assert after.heartbeat(ids[0], generation) is ErrorCode.NONE
    after.advance(1)
    assert list(after.group.members) == [ids[0]]


def test_a_rebalance_that_was_under_way_is_forgotten() -> None:
    before = Coordinator()
    ids, generation = before.stable_group(2)
    late = before.new_id()
    before.join(late)
    before.join(ids[0])
    after = before.failover()
    assert after.group.state is ClassicState.STABLE
    assert after.heartbeat(ids[0], generation) is ErrorCode.NONE
    assert after.join(late).error is ErrorCode.UNKNOWN_MEMBER_ID, "ids that were given out are lost"


def test_a_generation_without_an_assignment_never_was() -> None:
    before = Coordinator()
    ids, generation = before.stable_group(1)
    before.join(ids[0], protocols=[("range", b"new")])
    assert before.group.generation == generation + 1
    after = before.failover()
    assert after.group.generation == generation
    assert after.heartbeat(ids[0], generation + 1) is ErrorCode.ILLEGAL_GENERATION


def test_members_say_again_what_else_they_know() -> None:
    """The log only has the protocol that was selected."""
    protocols = [("range", b"1"), ("sticky", b"2")]
    before = Coordinator()
    ids, generation = before.stable_group(2, protocols=protocols)
    after = before.failover()
    joins = [after.join(each, protocols=protocols) for each in ids]
    assert {each.answer.generation_id for each in joins} == {generation + 1}
    assert after.group.supporters == {"range": 2, "sticky": 2}


def test_static_members_and_an_empty_group() -> None:
    before = Coordinator()
    joins = [before.join(instance=each) for each in ("a", "b")]
    before.advance(2 * DELAY_MS)
    before.assign(joins)
    before.join(instance="b")
    assert before.failover().described() == before.described()
    before.leave(("", "a"), ("", "b"))
    assert before.group.state is ClassicState.EMPTY
    assert before.failover().described() == before.described()


def test_the_first_join_after_an_empty_group_counts_on() -> None:
    before = Coordinator()
    before.stable_group(1)
    before.advance(SESSION_MS)
    after = before.failover()
    _, generation = after.stable_group(1)
    assert generation == 3


def test_a_tombstone_removes_the_group() -> None:
    before = Coordinator()
    ids, _ = before.stable_group(1)
    before.leave((ids[0], None))
    before._carry_out(before.shard.delete_groups([GROUP]), None)
    assert GROUP not in before.shard.groups
    assert before.log[-1] == CoordinatorRecord(GroupMetadataKey(group=GROUP), None)
    assert GROUP not in before.failover().shard.groups


def test_records_of_older_kafkas() -> None:
    """Version 0 has no rebalance timeout, no instance and no time."""
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=4,
        protocol="range",
        leader="m",
        current_state_timestamp=-1,
        members=[MemberMetadata(member_id="m", client_id="c", client_host="/h", session_timeout=7_000)],
    )
    stored = GroupMetadataValue.from_bytes(value.to_bytes(0), 0)
    after = Coordinator(log=[CoordinatorRecord(GroupMetadataKey(group=GROUP), stored, 0)])
    assert after.group.members["m"].rebalance_timeout_ms == 7_000
    assert after.heartbeat("m", 4) is ErrorCode.NONE


def test_an_empty_group_of_the_other_protocol_gives_way() -> None:
    coordinator = Coordinator()
    coordinator.shard.groups.put(cast(Group, _Foreign()))
    assert coordinator.join("old-id").error is ErrorCode.UNKNOWN_MEMBER_ID
    asked = coordinator.join()
    assert asked.error is ErrorCode.MEMBER_ID_REQUIRED
    assert [record.value is None for record in coordinator.log] == [True, False]
    assert isinstance(coordinator.shard.groups.get(GROUP), ClassicGroup)


class _Foreign:
    """An empty group of the other protocol: all that may be asked of it."""

    group_id = GROUP
    type = GroupType.CONSUMER

    def is_empty(self) -> bool:
        return True

    def tombstones(self) -> list[CoordinatorRecord]:
        return [CoordinatorRecord(ConsumerGroupMetadataKey(group_id=GROUP), None)]
