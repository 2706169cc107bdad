"""Who leads: elections that are asked for, the balance of leaders, and the new epochs of a restart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from headrace.controller.fencing import elections_of_leaderless
from headrace.controller.image import MetadataImage
from headrace.controller.operations import Balanced, ElectedLeader, ElectionType, RecordGroup, Result
from headrace.controller.partition_changes import PartitionChanges
from headrace.controller.policy import ReplicationPolicy
from headrace.core.errors import (
    ElectionNotNeeded,
    EligibleLeadersNotAvailable,
    HeadraceError,
    InvalidRequest,
    PreferredLeaderNotAvailable,
    UnknownTopicOrPartition,
)
from headrace.core.ids import NO_BROKER, BrokerId
from headrace.protocol.stored.partition_change_record import PartitionChangeRecord

LongestFirst = Mapping[tuple[str, int], Sequence[int]]
NOTHING_KNOWN: LongestFirst = {}
MOST_ELECTIONS = 1000
"""In one balancing, so that it does not delay what follows it."""


def elect_leaders(
    policy: ReplicationPolicy,
    election: int,
    partitions: Sequence[tuple[str, int]] | None,
    longest_first: LongestFirst = NOTHING_KNOWN,
) -> Result[list[ElectedLeader]]:
    """`partitions` None asks for all, and then those that need no election are left out of the answer.

    `longest_first`: the replicas of partitions without a leader, those with the longest log first.
    """
    if election not in (ElectionType.PREFERRED, ElectionType.UNCLEAN):
        raise InvalidRequest(f"{election} is no type of election")
    groups: list[RecordGroup] = []
    outcomes: list[ElectedLeader] = []
    asked = _in_need(policy.image, election) if partitions is None else dict.fromkeys(partitions)
    for name, partition in asked:
        try:
            longest = longest_first.get((name, partition), ())
            record = _elect(policy, election, name, partition, longest)
            groups.append([record])
        except HeadraceError as error:
            outcomes.append(ElectedLeader(name, partition, error))
        else:
            outcomes.append(ElectedLeader(name, partition, leader=BrokerId(record.leader)))
    return Result(groups, outcomes)


def _in_need(image: MetadataImage, election: int) -> Iterator[tuple[str, int]]:
    """The partitions for which an election of this kind could be needed."""
    for name, topic in image.topics_by_name.items():
        wanting = topic.leaderless_partitions()
        if election == ElectionType.PREFERRED:
            wanting = sorted([*wanting, *topic.partitions_led_by_another()])
        yield from ((name, partition) for partition in wanting)


def _elect(
    policy: ReplicationPolicy, election: int, name: str, partition: int, longest_first: Sequence[int]
) -> PartitionChangeRecord:
    topic = policy.image.topic(name)
    if topic is None or partition not in topic:
        raise UnknownTopicOrPartition(f"there is no partition {name}-{partition}")
    leader, first = topic.leader(partition), topic.replicas(partition)[0]
    if election == ElectionType.PREFERRED:
        if leader == first:
            raise ElectionNotNeeded(f"{name}-{partition} is led by its preferred leader {leader}")
        record = PartitionChanges(policy, topic).change(partition, preferred=True)
        if record is None or record.leader < 0:
            raise PreferredLeaderNotAvailable(f"broker {first} is not alive and in sync")
        return record
    if leader != NO_BROKER:
        raise ElectionNotNeeded(f"{name}-{partition} has leader {leader}")
    record = PartitionChanges(policy, topic, unclean=True, longest_first=longest_first).change(partition)
    if record is None or record.leader < 0:
        raise EligibleLeadersNotAvailable(f"no replica of {name}-{partition} is alive and has its files")
    return record


def balance_leaders(policy: ReplicationPolicy, *, most: int = MOST_ELECTIONS) -> Result[Balanced]:
    """Give leaderships back to the preferred replicas that are alive and in sync, `most` at a time."""
    groups: list[RecordGroup] = []
    for topic in policy.image.topics_by_name.values():
        unbalanced = topic.partitions_led_by_another()
        if not unbalanced:
            continue
        changes = PartitionChanges(policy, topic)
        for partition in unbalanced:
            first = topic.replicas(partition)[0]
            if first not in topic.isr(partition) or not policy.may_lead(topic, partition, first):
                continue
            if len(groups) >= most:
                return Result(groups, Balanced(len(groups), more=True))
            record = changes.change(partition, preferred=True)
            if record is not None:
                groups.append([record])
    return Result(groups, Balanced(len(groups), more=False))


def elect_leaderless(policy: ReplicationPolicy) -> Result[int]:
    """Leaders for partitions that have none and could: after a topic was told to allow unclean elections."""
    groups: list[RecordGroup] = [[record] for record in elections_of_leaderless(policy)]
    return Result(groups, len(groups))


def renew_leaderships(policy: ReplicationPolicy, broker_id: BrokerId) -> Result[int]:
    """A new epoch for each partition that a restarted broker led, and for leaderless ones that it may lead.

    An epoch belongs to the process that was given it, so a leadership is never resumed. The answer is
    how many there are.
    """
    groups: list[RecordGroup] = []
    others = {each for each in policy.image.brokers if each != broker_id}
    for topic in policy.image.topics_by_name.values():
        groups += [
            [PartitionChangeRecord(partition_id=partition, topic_id=topic.topic_id, leader=broker_id)]
            for partition in topic.partitions_led_by(broker_id)
        ]
        leaderless = topic.leaderless_partitions()
        if leaderless:
            changes = PartitionChanges(policy, topic, unfit=others)
            records = [changes.change(partition) for partition in leaderless]
            groups += [[record] for record in records if record is not None]
    return Result(groups, len(groups))
