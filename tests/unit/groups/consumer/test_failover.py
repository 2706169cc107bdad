"""The next coordinator knows from the log what the one before knew."""

from __future__ import annotations

from typing import Any

from headrace.coordinators.decision import CoordinatorRecord
from headrace.groups.consumer.group import ConsumerGroup
from headrace.groups.consumer.member import ConsumerMember, MemberState
from headrace.protocol.stored.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from headrace.protocol.stored.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from headrace.protocol.stored.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from headrace.protocol.stored.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey
from headrace.protocol.stored.consumer_group_partition_metadata_value import (
    ConsumerGroupPartitionMetadataValue,
)
from tests.unit.groups.classic.coordinator import GROUP
from tests.unit.groups.consumer.coordinator import (
    INTERVAL_MS,
    SESSION_MS,
    Consumer,
    ConsumerCoordinator,
    settle,
)


def lasting(group: ConsumerGroup) -> Any:
    """Everything of a group that is in its records, and what is counted from them."""
    soft = {"topics_version", "regexes_version", "regexes_checked_ms", "unheard", "members"}
    fields = {name: getattr(group, name) for name in ConsumerGroup.__slots__ if name not in soft}
    members = {
        member_id: [getattr(member, name) for name in ConsumerMember.__slots__]
        for member_id, member in group.members.items()
    }
    return fields, members


def test_all_that_is_written_is_known_again() -> None:
    coordinator = ConsumerCoordinator()
    one = Consumer(coordinator, "m1", assignor="range", rack="r")
    two = Consumer(coordinator, "m2", None, regex="t.*", instance="i")
    settle(one)
    two.beat()
    one.beat(slow=True)
    assert coordinator.consumers.members["m1"].state is MemberState.UNREVOKED_PARTITIONS
    assert lasting(coordinator.failover().consumers) == lasting(coordinator.consumers)
    one.settle()
    settle(one, two)
    assert lasting(coordinator.failover().consumers) == lasting(coordinator.consumers)
    two.leave()
    assert lasting(coordinator.failover().consumers) == lasting(coordinator.consumers)


def test_members_go_on_with_the_next_coordinator() -> None:
    coordinator = ConsumerCoordinator()
    one, two = Consumer(coordinator, "m1"), Consumer(coordinator, "m2")
    settle(one)
    two.beat()
    one.beat(slow=True)
    loaded = coordinator.failover()
    one.coordinator = two.coordinator = loaded
    two.beat()
    assert two.count == 0
    one.settle()
    settle(one, two)
    assert (one.count, two.count) == (2, 2)


def test_who_does_not_come_back_is_removed() -> None:
    coordinator = ConsumerCoordinator()
    one, two = Consumer(coordinator, "m1"), Consumer(coordinator, "m2")
    settle(one, two)
    loaded = coordinator.failover()
    one.coordinator = loaded
    loaded.advance(SESSION_MS - 1)
    assert set(loaded.consumers.members) == {"m1", "m2"}
    one.beat()
    loaded.advance(INTERVAL_MS)
    assert set(loaded.consumers.members) == {"m1"}


def test_the_deadline_for_giving_up_begins_again() -> None:
    coordinator = ConsumerCoordinator()
    one, two = Consumer(coordinator, "m1", rebalance_ms=20_000), Consumer(coordinator, "m2")
    settle(one)
    two.beat()
    one.beat(slow=True)
    coordinator.advance(15_000)
    loaded = coordinator.failover()
    one.coordinator = loaded
    for _ in range(3):
        one.beat(slow=True)
        loaded.advance(INTERVAL_MS)
    assert "m1" in loaded.consumers.members
    loaded.advance(INTERVAL_MS)
    assert "m1" not in loaded.consumers.members


def test_tombstones_of_what_is_not_there_are_passed_over() -> None:
    coordinator = ConsumerCoordinator()
    one = Consumer(coordinator, "m1")
    one.beat()
    one.leave()
    coordinator._ask(lambda _: coordinator.shard.delete_groups([GROUP]))
    compacted = [record for record in coordinator.log if record.value is None]
    assert compacted
    assert len(ConsumerCoordinator(log=compacted).shard.groups) == 0


def test_a_log_may_hold_only_the_newest_record_of_each_key() -> None:
    coordinator = ConsumerCoordinator()
    one, two = Consumer(coordinator, "m1"), Consumer(coordinator, "m2")
    settle(one)
    settle(one, two)
    newest: dict[bytes, CoordinatorRecord] = {}
    for record in coordinator.log:
        key = bytes([record.key.API_KEY]) + record.key.to_bytes(0)
        newest.pop(key, None)
        newest[key] = record
    loaded = ConsumerCoordinator(log=list(newest.values()))
    fields, members = lasting(loaded.consumers)
    assert members == lasting(coordinator.consumers)[1]
    assert fields["owners"] == coordinator.consumers.owners


def test_while_a_log_is_read_two_may_seem_to_hold_a_partition() -> None:
    """What only the older record of one says is not taken from the other when that record is replaced."""
    coordinator = ConsumerCoordinator()
    topic_id = coordinator.topics.ids["t"]

    def held(member_id: str, *numbers: int) -> CoordinatorRecord:
        value = ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=1,
            assigned_partitions=[TopicPartitions(topic_id=topic_id, partitions=list(numbers))],
        )
        return CoordinatorRecord(
            ConsumerGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id=member_id), value
        )

    group = ConsumerCoordinator(log=[held("m1", 0), held("m2", 0), held("m1", 1)]).consumers
    assert group.owners == {topic_id: {0: "m2", 1: "m1"}}
    assert group.members["m1"].assigned == {topic_id: {1: 1}}, "without epochs, the member's own counts"


def test_what_another_version_wrote_is_understood_or_dropped() -> None:
    coordinator = ConsumerCoordinator()
    one = Consumer(coordinator, "m1")
    one.beat()
    key = ConsumerGroupPartitionMetadataKey(group_id=GROUP)
    log = [*coordinator.log, CoordinatorRecord(key, ConsumerGroupPartitionMetadataValue())]
    loaded = ConsumerCoordinator(log=log, topics=coordinator.topics)
    one.coordinator = loaded
    before = loaded.consumers.has_partition_metadata
    one.beat()
    assert (before, loaded.consumers.has_partition_metadata) == (True, False)
    assert [record.value for record in loaded.log if record.key == key][-1] is None


def test_a_member_without_a_record_of_its_own_goes_with_its_tombstone() -> None:
    coordinator = ConsumerCoordinator()
    one = Consumer(coordinator, "m1")
    one.beat()
    key = ConsumerGroupMemberMetadataKey(group_id=GROUP, member_id="m1")
    log = [*coordinator.log, CoordinatorRecord(key, None)]
    assert ConsumerCoordinator(log=log).consumers.owners == {}
