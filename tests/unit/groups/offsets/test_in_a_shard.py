"""Offsets beside real groups: members that commit, groups that come and go with their offsets."""

from __future__ import annotations

import pytest

from headrace.core.errors import IllegalGeneration, UnknownMember
from headrace.groups.classic.group import ClassicGroup
from headrace.groups.group_config import GroupConfig
from headrace.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup
from headrace.protocol.stored.group_metadata_key import GroupMetadataKey
from tests.unit.groups.classic.coordinator import GROUP, SESSION_MS, Coordinator
from tests.unit.groups.consumer.coordinator import Consumer, ConsumerCoordinator, Topics
from tests.unit.groups.offsets.logged_offsets import commit_request

MINUTE = 60_000
CONFIG = GroupConfig(
    offsets_retention_minutes=10,
    offsets_retention_check_interval_ms=MINUTE,
)


def commit(
    at: Coordinator, offset: int, *, group_id: str = GROUP, generation: int = -1, member: str = ""
) -> None:
    request = commit_request(group_id, [("t", 0, offset, "")], generation=generation, member_id=member)
    at._ask(lambda _: at.shard.offsets.commit(request, 9, at.now_ms))


def committed(at: Coordinator, group_id: str = GROUP) -> dict[str, dict[int, int]]:
    asked = OffsetFetchRequestGroup(group_id=group_id, topics=None)
    response = at.shard.offsets.fetch(asked, require_stable=False).response
    return {
        topic.name: {row.partition_index: row.committed_offset for row in topic.partitions}
        for topic in response.topics  # type: ignore[union-attr]  # a fetch is never parked
    }


def test_a_simple_group_is_there_after_a_failover_and_gone_after_its_time() -> None:
    first = Coordinator(CONFIG)
    commit(first, 5)
    second = first.failover()
    assert isinstance(second.shard.groups.get(GROUP), ClassicGroup)
    assert committed(second) == {"t": {0: 5}}
    second.advance(11 * MINUTE)
    assert len(second.shard.groups) == 0
    assert [record.value for record in second.log[1:]] == [None, None]
    assert isinstance(second.log[-1].key, GroupMetadataKey)
    third = second.failover()
    assert len(third.shard.groups) == 0
    assert committed(third) == {}


def test_a_member_commits_in_its_generation_and_lives_by_it() -> None:
    coordinator = Coordinator(CONFIG)
    [member], generation = coordinator.stable_group(1)
    for offset in range(4):
        coordinator.advance(SESSION_MS * 2 // 3)
        commit(coordinator, offset, generation=generation, member=member)
    assert committed(coordinator) == {"t": {0: 3}}
    group = coordinator.shard.groups.get(GROUP)
    assert isinstance(group, ClassicGroup)
    assert list(group.members) == [member], "no heartbeat was sent, only commits"
    with pytest.raises(IllegalGeneration):
        commit(coordinator, 9, generation=generation + 1, member=member)
    with pytest.raises(UnknownMember):
        commit(coordinator, 9)
    coordinator.advance(SESSION_MS * 2)
    assert list(group.members) == []


def test_fault_22_a_zombie_does_not_commit_after_the_rebalance() -> None:
    """It was silent for too long, its partitions went to others, and it wakes up with what it had read."""
    coordinator = Coordinator(CONFIG)
    [zombie], old = coordinator.stable_group(1)
    commit(coordinator, 5, generation=old, member=zombie)
    coordinator.advance(SESSION_MS * 2)
    [heir], new = coordinator.stable_group(1)
    assert heir != zombie
    commit(coordinator, 8, generation=new, member=heir)
    with pytest.raises(UnknownMember):
        commit(coordinator, 6, generation=old, member=zombie)
    with pytest.raises(IllegalGeneration):
        commit(coordinator, 6, generation=old, member=heir)
    assert committed(coordinator) == {"t": {0: 8}} == committed(coordinator.failover())


def test_offsets_outlive_the_members_for_their_retention() -> None:
    coordinator = Coordinator(CONFIG)
    [member], generation = coordinator.stable_group(1)
    commit(coordinator, 5, generation=generation, member=member)
    coordinator.leave((member, None))
    coordinator.advance(9 * MINUTE)
    assert committed(coordinator.failover()) == {"t": {0: 5}}
    coordinator.advance(2 * MINUTE)
    assert committed(coordinator) == {}
    assert len(coordinator.shard.groups) == 0


def test_offsets_outlive_the_members_of_the_other_protocol_too() -> None:
    coordinator = ConsumerCoordinator(CONFIG)
    member = Consumer(coordinator, "m")
    member.beat()
    commit(coordinator, 5, generation=member.epoch, member="m")
    for _ in range(30):
        member.beat()
        coordinator.advance(MINUTE // 2)
    member.leave()
    coordinator.advance(5 * MINUTE)
    assert committed(coordinator) == {"t": {0: 5}}, "their retention begins when the last member goes"
    loaded = coordinator.failover()
    loaded.advance(4 * MINUTE)
    assert committed(loaded) == {"t": {0: 5}}
    loaded.advance(2 * MINUTE)
    assert committed(loaded) == {}
    assert len(loaded.shard.groups) == 0


def commit_late_and_expire(coordinator: Coordinator | ConsumerCoordinator) -> None:
    """To a group that has just become empty, when its own retention is nearly over."""
    coordinator.advance(8 * MINUTE)
    commit(coordinator, 7)
    coordinator.advance(9 * MINUTE)
    assert committed(coordinator) == {"t": {0: 7}}
    coordinator.advance(2 * MINUTE)
    assert committed(coordinator) == {}


def test_what_is_committed_to_an_empty_consumer_group_has_a_retention_of_its_own() -> None:
    coordinator = ConsumerCoordinator(CONFIG)
    member = Consumer(coordinator, "m")
    member.beat()
    commit(coordinator, 5, generation=member.epoch, member="m")
    member.leave()
    commit_late_and_expire(coordinator)


def test_what_is_committed_to_an_empty_classic_group_has_a_retention_of_its_own() -> None:
    coordinator = Coordinator(CONFIG)
    [member], generation = coordinator.stable_group(1)
    commit(coordinator, 5, generation=generation, member=member)
    coordinator.leave((member, None))
    commit_late_and_expire(coordinator)


def test_members_keep_no_offsets_of_topics_that_they_left() -> None:
    coordinator = ConsumerCoordinator(CONFIG, topics=Topics(t=1, u=1))
    member = Consumer(coordinator, "m")
    member.beat()
    commit(coordinator, 5, generation=member.epoch, member="m")
    member.topics = ["u"]
    member.beat(full=True)
    for _ in range(22):
        member.beat()
        coordinator.advance(MINUTE // 2)
    assert committed(coordinator) == {}


def test_a_record_of_the_group_behind_its_offsets_makes_it_the_real_one() -> None:
    """As after compaction, which leaves the last record of each key where it is."""
    first = Coordinator(CONFIG)
    [member], generation = first.stable_group(1)
    commit(first, 5, generation=generation, member=member)
    offsets = [record for record in first.log if not isinstance(record.key, GroupMetadataKey)]
    groups = [record for record in first.log if isinstance(record.key, GroupMetadataKey)]
    second = Coordinator(CONFIG, [*offsets, *groups[-1:]], first.now_ms)
    group = second.shard.groups.get(GROUP)
    assert isinstance(group, ClassicGroup)
    assert list(group.members) == [member]
    assert committed(second) == {"t": {0: 5}}
