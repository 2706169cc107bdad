"""The state of one consumer group. It changes only in replay, by the methods at the end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from enum import Enum
from typing import Final
from uuid import UUID

from headrace.coordinators.decision import CoordinatorRecord
from headrace.core.errors import (
    IllegalGeneration,
    NonEmptyGroup,
    StaleMemberEpoch,
    UnknownMember,
    UnsupportedVersion,
)
from headrace.groups.consumer import records
from headrace.groups.consumer.member import ConsumerMember, Held
from headrace.groups.consumer.resolved_regex import ResolvedRegex
from headrace.groups.group import GroupType, PartitionCheck

Target = Mapping[UUID, Set[int]]

NO_TARGET: Final[Target] = {}
FIRST_EPOCH: Final = 1
"""Of a group that nobody has subscribed to anything in. 0 is what members join with."""
_FIRST_COMMIT_WITH_EPOCH: Final = 9


class GroupState(Enum):
    """The values are Kafka's names on the wire."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ConsumerGroup:
    """Implements groups.group.Group."""

    __slots__ = (
        "assignment_epoch",
        "assignment_timestamp_ms",
        "classic_members",
        "classic_protocols",
        "epoch",
        "epoch_written_ms",
        "group_id",
        "has_partition_metadata",
        "members",
        "metadata_hash",
        "owners",
        "regex_counts",
        "regexes_checked_ms",
        "regexes_version",
        "resolved",
        "server_assignors",
        "static_members",
        "targets",
        "topic_counts",
        "topics_version",
        "unheard",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.epoch_written_ms = 0
        """When the epoch last changed; of a group without members, when the last one went."""
        self.metadata_hash = 0
        self.assignment_epoch = 0
        self.assignment_timestamp_ms = 0
        self.has_partition_metadata = False
        self.members: dict[str, ConsumerMember] = {}
        self.static_members: dict[str, str] = {}
        self.targets: dict[str, Target] = {}
        self.resolved: dict[str, ResolvedRegex] = {}
        # All that follows is counted from the above.
        self.owners: dict[UUID, dict[int, str]] = {}
        self.topic_counts: dict[str, int] = {}
        self.regex_counts: dict[str, int] = {}
        self.server_assignors: dict[str, int] = {}
        self.classic_members = 0
        self.classic_protocols: dict[str, int] = {}
        # What is not in the log: who has yet to show that it has heard what it holds...
        self.unheard: set[str] = set()
        # ...and which metadata this group has been compared with.
        self.topics_version = -1
        self.regexes_version = -1
        self.regexes_checked_ms = -1

    # What every group can be asked

    @property
    def type(self) -> GroupType:
        return GroupType.CONSUMER

    @property
    def protocol_type(self) -> str:
        return "consumer"

    @property
    def state(self) -> GroupState:
        if not self.members:
            return GroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        epoch = self.assignment_epoch
        if all(member.is_reconciled_to(epoch) for member in self.members.values()):
            return GroupState.STABLE
        return GroupState.RECONCILING

    @property
    def state_name(self) -> str:
        return self.state.value

    def is_empty(self) -> bool:
        return not self.members

    def validate_offset_commit(
        self, member_id: str, instance_id: str | None, generation: int, version: int, *, transactional: bool
    ) -> PartitionCheck | None:
        if generation < 0 and not self.members:
            return None
        if transactional and generation == -1 and not member_id and instance_id is None:
            return None
        member = self.member(member_id)
        if not transactional and member.classic is None and version < _FIRST_COMMIT_WITH_EPOCH:
            raise UnsupportedVersion(
                "OffsetCommit version 9 or above must be used by members using the consumer group protocol"
            )
        if generation == member.epoch:
            return None
        if generation > member.epoch:
            raise _stale(member, f"is newer than current member epoch {member.epoch}.", generation)
        return _check_of_older_epoch(member, generation)

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.epoch:
            raise _stale(member, f"does not match the expected member epoch {member.epoch}.", member_epoch)

    def validate_offset_delete(self) -> None:
        """Always allowed; the offsets of subscribed topics are kept by `is_subscribed_to`."""

    def validate_deletion(self) -> None:
        if self.members:
            raise NonEmptyGroup("The group is not empty.")

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.topic_counts or any(topic in found.topics for found in self.resolved.values())

    def offsets_expire_from(self, now_ms: int, committed_at_ms: int, topic: str) -> int | None:  # noqa: ARG002 - part of the interface; no topic and no time is special here
        """While there are members, the offsets of what they subscribe to are kept by `is_subscribed_to`."""
        return committed_at_ms if self.members else max(committed_at_ms, self.epoch_written_ms)

    def tombstones(self) -> list[CoordinatorRecord]:
        return self.tombstones_with(self.members)

    # What its own operations ask

    def tombstones_with(self, member_ids: Iterable[str]) -> list[CoordinatorRecord]:
        return records.without_group(
            self.group_id, member_ids, self.resolved, with_partition_metadata=self.has_partition_metadata
        )

    def member(self, member_id: str) -> ConsumerMember:
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMember(f"Member {member_id} is not a member of group {self.group_id}.")
        return member

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target_of(self, member: ConsumerMember) -> Target:
        """A static member has the one of the member whose place it takes."""
        if member.instance_id is not None:
            member_id = self.static_members.get(member.instance_id)
            return NO_TARGET if member_id is None else self.targets.get(member_id, NO_TARGET)
        return self.targets.get(member.member_id, NO_TARGET)

    def is_owned(self, topic_id: UUID, partition: int) -> bool:
        """By anybody, also while it is to be given up."""
        partitions = self.owners.get(topic_id)
        return partitions is not None and partition in partitions

    def preferred_assignor(self, old: ConsumerMember | None, new: ConsumerMember | None) -> str | None:
        """What most members name, once `new` stands in the place of `old`; of several, the first by name."""
        counts = dict(self.server_assignors)
        _count(counts, None if old is None else old.server_assignor, -1)
        _count(counts, None if new is None else new.server_assignor, 1)
        return min(counts, key=lambda name: (-counts[name], name)) if counts else None

    # Changes, by replay alone

    def put_member(self, member: ConsumerMember) -> None:
        old = self.members.get(member.member_id)
        if old is not None:
            self._uncount(old)
        self.members[member.member_id] = member
        for held in (member.assigned, member.pending_revocation):
            self._own(member.member_id, held)
        self._count_subscription(member, 1)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def remove_member(self, member_id: str) -> None:
        old = self.members.pop(member_id, None)
        if old is None:
            return
        self.unheard.discard(member_id)
        self._uncount(old)
        if old.instance_id is not None and self.static_members.get(old.instance_id) == member_id:
            del self.static_members[old.instance_id]

    def _uncount(self, member: ConsumerMember) -> None:
        for held in (member.assigned, member.pending_revocation):
            self._disown(member.member_id, held)
        self._count_subscription(member, -1)

    def _own(self, member_id: str, held: Held) -> None:
        for topic_id, partitions in held.items():
            self.owners.setdefault(topic_id, {}).update(dict.fromkeys(partitions, member_id))

    def _disown(self, member_id: str, held: Held) -> None:
        """Only what it still owns: while a compacted log is read, another may have come first."""
        for topic_id, partitions in held.items():
            owners = self.owners.get(topic_id, {})
            for partition in partitions:
                if owners.get(partition) == member_id:
                    del owners[partition]
            if not owners:
                self.owners.pop(topic_id, None)

    def _count_subscription(self, member: ConsumerMember, change: int) -> None:
        for name in member.subscribed_names:
            _count(self.topic_counts, name, change)
        _count(self.regex_counts, member.subscribed_regex, change)
        _count(self.server_assignors, member.server_assignor, change)
        if member.classic is not None:
            self.classic_members += change
            for protocol in member.classic.supported_protocols:
                _count(self.classic_protocols, protocol.name, change)


def _count(counts: dict[str, int], name: str | None, change: int) -> None:
    if not name:
        return
    count = counts.get(name, 0) + change
    if count > 0:
        counts[name] = count
    else:
        counts.pop(name, None)


def _check_of_older_epoch(member: ConsumerMember, epoch: int) -> PartitionCheck:
    def check(topic: str, topic_id: UUID, partition: int) -> None:
        since = member.held_since(topic_id, partition)
        if since is None:
            raise _refusal(member)(
                f"Partition {topic}-{partition} is not assigned or pending revocation for member."
            )
        if epoch < since:
            raise _stale(
                member, f"is older than assignment epoch {since} for partition {topic}-{partition}.", epoch
            )

    return check


def _refusal(member: ConsumerMember) -> type[StaleMemberEpoch] | type[IllegalGeneration]:
    return StaleMemberEpoch if member.classic is None else IllegalGeneration


def _stale(member: ConsumerMember, complaint: str, epoch: int) -> StaleMemberEpoch | IllegalGeneration:
    kind = "member epoch" if member.classic is None else "generation id"
    return _refusal(member)(f"Received {kind} {epoch} {complaint}")
