"""A classic group: its members, the protocol they agree on, and its generation.

Of this only what the log says survives a change of the coordinator: generation, protocol, leader, and the
members with their assignments, as of the last assignment. Everything about a rebalance that is under way
is lost with its coordinator; its members are told to join again.
"""

from __future__ import annotations

from headrace.coordinators.decision import CoordinatorRecord
from headrace.core.errors import (
    FencedInstance,
    GroupNotFound,
    IllegalGeneration,
    NonEmptyGroup,
    RebalanceInProgress,
    UnknownMember,
)
from headrace.groups.classic.member import ClassicMember, PendingMember, Protocols
from headrace.groups.classic.states import COMPLETING, DEAD, EMPTY, STABLE, ClassicState
from headrace.groups.classic.subscriptions import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from headrace.groups.group import GroupType, PartitionCheck
from headrace.protocol.stored.group_metadata_key import GroupMetadataKey

NOT_KNOWN = -1
"""As `state_since_ms`, before all times: the log was written by a version that did not say."""


class ClassicGroup:
    """Implements groups.group.Group. Compared by identity: a group is the name of its phase's timer."""

    __slots__ = (
        "_topics",
        "_topics_generation",
        "generation",
        "group_id",
        "has_newcomers",
        "joined",
        "leader",
        "members",
        "pending_joins",
        "pending_syncs",
        "previous_state",
        "protocol_name",
        "state",
        "state_since_ms",
        "stated_protocol_type",
        "static_members",
        "supporters",
    )

    def __init__(self, group_id: str, state_since_ms: int = NOT_KNOWN) -> None:
        self.group_id = group_id
        self.state = EMPTY
        self.previous_state = DEAD
        self.state_since_ms = state_since_ms
        self.generation = 0
        self.stated_protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        """By instance id: the id of its member. Exactly those of `members` that have an instance id."""
        self.pending_joins: dict[str, PendingMember] = {}
        """Ids that were given out and did not join yet. None of them is in `members`."""
        self.pending_syncs: dict[str, None] = {}
        """Members of this generation that did not sync yet. A subset of `members`."""
        self.supporters: dict[str, int] = {}
        """By name of a protocol: how many members know it."""
        self.joined = 0
        """How many members have a join completion."""
        self.has_newcomers = False
        """Somebody was added while the first rebalance of the group waits for more."""
        self._topics: frozenset[str] | None = None
        self._topics_generation = -1

    # --- what every group is asked -----------------------------------------------------------------------

    @property
    def type(self) -> GroupType:
        return GroupType.CLASSIC

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def protocol_type(self) -> str:
        return self.stated_protocol_type or ""

    @property
    def is_of_consumers(self) -> bool:
        return self.stated_protocol_type == CONSUMER_PROTOCOL_TYPE

    def is_empty(self) -> bool:
        return self.state is EMPTY

    def validate_member(self, member_id: str, instance_id: str | None) -> ClassicMember:
        if instance_id is not None:
            current = self.static_members.get(instance_id)
            if current is None:
                raise UnknownMember(f"No static member {instance_id} in group {self.group_id}.")
            if current != member_id:
                raise FencedInstance(f"Static member {instance_id} is {current} now, not {member_id}.")
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMember(f"No member {member_id} in group {self.group_id}.")
        return member

    def validate_offset_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation: int,
        version: int,  # noqa: ARG002 - groups of the other protocol answer by version
        *,
        transactional: bool,
    ) -> PartitionCheck | None:
        # Whoever names no generation is an admin, or assigns partitions to itself.
        if generation < 0 and self.state is EMPTY:
            return None
        if generation >= 0 or member_id or instance_id is not None:
            self.validate_member(member_id, instance_id)
            if generation != self.generation:
                raise IllegalGeneration(f"Group {self.group_id} is in generation {self.generation}.")
        elif not transactional and self.state is not EMPTY:
            raise UnknownMember(f"Group {self.group_id} has members, and this is none of them.")
        if not transactional and self.state is COMPLETING:
            # It knows the generation already, and will soon know its assignment.
            raise RebalanceInProgress(f"Group {self.group_id} is about to be assigned.")
        return None

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Anybody may fetch the offsets of a classic group."""

    def validate_offset_delete(self) -> None:
        # Of consumers it is known what they are subscribed to, so their other offsets may go at any time.
        if self.state is not EMPTY and not self.is_of_consumers:
            raise NonEmptyGroup(f"Group {self.group_id} has members.")

    def validate_deletion(self) -> None:
        if self.state is DEAD:
            raise GroupNotFound(f"Group {self.group_id} is in dead state.")
        if self.state is not EMPTY:
            raise NonEmptyGroup(f"Group {self.group_id} has members.")

    def is_subscribed_to(self, topic: str) -> bool:
        """Where that cannot be known, a group of consumers is taken to be."""
        topics = self.topics()
        return self.is_of_consumers if topics is None else topic in topics

    def topics(self) -> frozenset[str] | None:
        """What the members of this generation are subscribed to; None if that is not known."""
        if not self.is_of_consumers:
            return None
        if self._topics_generation != self.generation:
            self._topics = self._find_topics()
            self._topics_generation = self.generation
        return self._topics

    def _find_topics(self) -> frozenset[str] | None:
        if not self.members:
            return frozenset()
        protocol = self.protocol_name
        # Who joins for the next generation need not know the protocol of this one.
        if protocol is None or not all(member.knows(protocol) for member in self.members.values()):
            return None
        return subscribed_topics(member.metadata(protocol) for member in self.members.values())

    def forget_topics(self) -> None:
        self._topics_generation = -1

    def offsets_expire_from(self, now_ms: int, committed_at_ms: int, topic: str) -> int | None:  # noqa: ARG002 - no state is timed by it
        if self.stated_protocol_type is None:
            return committed_at_ms
        if self.state is EMPTY:
            return max(committed_at_ms, self.state_since_ms)
        if self.state is STABLE and self.topics() is not None and not self.is_subscribed_to(topic):
            return committed_at_ms
        return None

    def tombstones(self) -> list[CoordinatorRecord]:
        return [CoordinatorRecord(GroupMetadataKey(group=self.group_id), None)]

    # --- members -----------------------------------------------------------------------------------------

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if not self.members:
            self.stated_protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self._count_protocols(member, 1)
        self.joined += member.awaiting_join is not None
        self.pending_joins.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        """The caller has seen to the member's requests and timer."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count_protocols(member, -1)
            self.joined -= member.awaiting_join is not None
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_joins.pop(member_id, None)
        self.pending_syncs.pop(member_id, None)

    def replace_static(self, old: ClassicMember, new: ClassicMember) -> None:
        """Another process of the same instance takes its place. The requests of the old one are answered."""
        assert old.instance_id is not None
        del self.members[old.member_id]
        self.members[new.member_id] = new
        self.static_members[old.instance_id] = new.member_id
        if self.leader == old.member_id:
            self.leader = new.member_id
        if old.member_id in self.pending_syncs:
            del self.pending_syncs[old.member_id]
            self.pending_syncs[new.member_id] = None

    def change_protocols(self, member: ClassicMember, protocols: Protocols) -> None:
        self._count_protocols(member, -1)
        member.protocols = protocols
        self._count_protocols(member, 1)

    def _count_protocols(self, member: ClassicMember, change: int) -> None:
        supporters = self.supporters
        for name, _ in member.protocols:
            count = supporters.get(name, 0) + change
            if count:
                supporters[name] = count
            else:
                supporters.pop(name, None)

    # --- rebalances --------------------------------------------------------------------------------------

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member like this could be in one generation with those who are here."""
        if self.state is EMPTY:
            return bool(protocol_type) and bool(protocols)
        if protocol_type != self.stated_protocol_type:
            return False
        size = len(self.members)
        return any(self.supporters.get(name, 0) == size for name, _ in protocols)

    def select_protocol(self) -> str:
        """The one with most votes; each member votes for what it likes best of what all know."""
        size = len(self.members)
        candidates = {name: 0 for name, count in self.supporters.items() if count == size}
        for member in self.members.values():
            candidates[member.vote(candidates)] += 1
        return max(candidates, key=candidates.__getitem__)

    @property
    def have_all_joined(self) -> bool:
        return self.joined == len(self.members) and not self.pending_joins

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def elect_joined_leader(self) -> bool:
        """The leader must be one who joined. False if there is no such member."""
        leader = self.members.get(self.leader or "")
        if leader is not None and leader.awaiting_join is not None:
            return True
        for member in self.members.values():
            if member.awaiting_join is not None:
                self.leader = member.member_id
                return True
        return False

    def move_to(self, state: ClassicState, now_ms: int) -> None:
        self.previous_state = self.state
        self.state = state
        self.state_since_ms = now_ms

    def begin_generation(self, now_ms: int) -> None:
        self.generation += 1
        self.pending_syncs.clear()
        if self.members:
            self.protocol_name = self.select_protocol()
            self.move_to(COMPLETING, now_ms)
        else:
            self.protocol_name = None
            self.move_to(EMPTY, now_ms)
