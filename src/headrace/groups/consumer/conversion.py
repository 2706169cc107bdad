"""Groups that change their protocol: when a first member speaks the server-side one, and when the last is
gone.

A group without members always may. One with members may as far as group.consumer.migration.policy says.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from headrace.coordinators.decision import CoordinatorRecord, Decision
from headrace.core.completion import Completion
from headrace.core.errors import GroupNotFound
from headrace.groups.classic.answers import join_refused, sync_refused
from headrace.groups.classic.draft import Draft
from headrace.groups.classic.group import ClassicGroup
from headrace.groups.classic.groups import ClassicGroups
from headrace.groups.classic.member import NO_ASSIGNMENT, ClassicMember
from headrace.groups.classic.states import STABLE
from headrace.groups.classic.stored import group_record
from headrace.groups.consumer import records
from headrace.groups.consumer.context import Context
from headrace.groups.consumer.embedded_protocol import (
    Malformed,
    by_id,
    read_assignment,
    read_subscription,
    write_assignment,
)
from headrace.groups.consumer.group import ConsumerGroup
from headrace.groups.consumer.member import ConsumerMember, Held
from headrace.groups.consumer.replaying import replay
from headrace.groups.group_table import GroupTable
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.stored.consumer_group_member_metadata_value import (
    ClassicMemberMetadata,
    ClassicProtocol,
)


class Conversion:
    __slots__ = ("_classic", "_context", "_forget")

    def __init__(self, context: Context, classic: ClassicGroups, forget: Callable[[str, str], None]) -> None:
        """`forget` ends the deadlines of a member of the consumer group, by the ids of both."""
        self._context = context
        self._classic = classic
        self._forget = forget

    # To a consumer group

    def upgrade(
        self,
        classic: ClassicGroup,
        written: list[CoordinatorRecord],
        answers: list[tuple[Completion[Any], object]],
    ) -> ConsumerGroup:
        """The consumer group that a classic one becomes by `written`. It is not in the table before these are
        replayed. Whoever waits for the classic group is told to join again."""
        if classic.is_empty():
            written.extend(classic.tombstones())
            return ConsumerGroup(classic.group_id)
        self._check_upgrade(classic)
        try:
            made = [*self._members_of(classic)]
        except Malformed as error:
            raise _refused(classic, "the embedded consumer protocol is malformed.") from error
        written.extend(classic.tombstones())
        copied = self._records_of(classic, made)
        written.extend(copied)
        answers.extend(_sent_away(classic))
        # The same records make the group here, and when they are replayed. Only then they have a time, which
        # matters when the last member has gone.
        table = GroupTable()
        for record in copied:
            replay(table, record, 0)
        group = table.require(classic.group_id)
        assert isinstance(group, ConsumerGroup)
        return group

    def _check_upgrade(self, classic: ClassicGroup) -> None:
        config = self._context.config
        if config.group_consumer_migration_policy.lower() not in ("upgrade", "bidirectional"):
            raise _refused(classic, "online upgrade is disabled.")
        if not classic.is_of_consumers:
            raise _refused(classic, "the group does not use the consumer embedded protocol.")
        if len(classic.members) > config.group_consumer_max_size:
            raise _refused(classic, "the group size exceeds the consumer group maximum size.")

    def _members_of(self, classic: ClassicGroup) -> list[ConsumerMember]:
        return [self._as_consumer(classic, member) for member in classic.members.values()]

    def _as_consumer(self, classic: ClassicGroup, member: ClassicMember) -> ConsumerMember:
        """It holds what it was last assigned, since the generation that is now its epoch."""
        assigned: Held = {}
        if member.assignment != NO_ASSIGNMENT:
            given = read_assignment(member.assignment)
            if given.user_data:
                raise _refused(
                    classic,
                    "an unsupported custom assignor is in use. Please refer to the documentation or switch "
                    "to a default assignor before re-attempting the upgrade.",
                )
            named = {each.topic: each.partitions for each in given.assigned_partitions}
            assigned = {
                topic_id: dict.fromkeys(numbers, classic.generation)
                for topic_id, numbers in by_id(named, self._context.topics).items()
            }
        # Before its first generation a group has agreed on nothing. All of a member's protocols say the same.
        subscription = read_subscription(member.protocols[0][1])
        return ConsumerMember(member.member_id).changed(
            instance_id=member.instance_id,
            rack_id=subscription.rack_id or None,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            subscribed_names=frozenset(subscription.topics),
            classic=ClassicMemberMetadata(
                session_timeout_ms=member.session_timeout_ms,
                supported_protocols=[
                    ClassicProtocol(name=name, metadata=metadata) for name, metadata in member.protocols
                ],
            ),
            epoch=classic.generation,
            previous_epoch=classic.generation,
            assigned=assigned,
        )

    def _records_of(
        self, classic: ClassicGroup, members: Sequence[ConsumerMember]
    ) -> list[CoordinatorRecord]:
        group_id, epoch = classic.group_id, classic.generation
        topics = {name for member in members for name in member.subscribed_names}
        return [
            *(records.subscription(group_id, member) for member in members),
            records.group_epoch(group_id, epoch, self._context.hashes.of(topics)),
            *(
                records.target(
                    group_id,
                    member.member_id,
                    {topic_id: frozenset(held) for topic_id, held in member.assigned.items()},
                )
                for member in members
            ),
            records.target_epoch(group_id, epoch, 0),
            *(records.current(group_id, member) for member in members),
        ]

    # To a classic group

    def may_downgrade(self, staying: Collection[ConsumerMember]) -> bool:
        """Only members of the classic protocol are left, and the configuration allows it."""
        config = self._context.config
        return (
            bool(staying)
            and all(member.classic is not None for member in staying)
            and config.group_consumer_migration_policy.lower() in ("downgrade", "bidirectional")
            and len(staying) <= config.group_max_size
        )

    def downgrade(
        self, group: ConsumerGroup, staying: Collection[ConsumerMember], now_ms: int
    ) -> tuple[ClassicGroup, list[CoordinatorRecord]]:
        """The classic group at the present epoch, and what makes it one when it is replayed. To be followed
        by `begin_as_classic`: until then it has no timers."""
        classic = ClassicGroup(group.group_id, now_ms)
        classic.generation = group.epoch
        for member in staying:
            classic.add(_as_classic(member), group.protocol_type)
        classic.protocol_name = classic.select_protocol()
        for member in staying:
            each = classic.members[member.member_id]
            target = group.target_of(member)
            each.assignment = write_assignment(
                target, each.metadata(classic.protocol_name), self._context.topics
            )
        assignments = {each.member_id: each.assignment for each in classic.members.values()}
        return classic, [*group.tombstones(), group_record(classic, assignments)]

    def begin_as_classic(self, group: ConsumerGroup, *, rebalance: bool) -> None:
        """As an operation of its own, when the records are replayed: if they were refused, it finds no
        classic group and does nothing."""
        name = ("downgraded", group.group_id)
        self._context.timers.set(
            name, 0, partial(self._begin, group.group_id, list(group.members), rebalance)
        )

    def _begin(self, group_id: str, member_ids: list[str], rebalance: bool, now_ms: int) -> Decision[None]:
        """What members that left have held is given to others by the classic members themselves."""
        draft = Draft(now_ms)
        classic = self._context.groups.of_class(group_id, ClassicGroup)
        if classic is not None:
            for member_id in member_ids:
                self._forget(group_id, member_id)
            for member in classic.members.values():
                self._classic.sessions.extend(classic, member, now_ms)
            if rebalance and classic.state is STABLE:
                self._classic.rebalances.begin(draft, classic)
        return draft.decide(None)


def _as_classic(member: ConsumerMember) -> ClassicMember:
    assert member.classic is not None
    return ClassicMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.classic.session_timeout_ms,
        tuple((each.name, each.metadata) for each in member.classic.supported_protocols),
    )


def _sent_away(classic: ClassicGroup) -> list[tuple[Completion[Any], object]]:
    answers: list[tuple[Completion[Any], object]] = []
    for member in classic.members.values():
        if member.awaiting_join is not None:
            answers.append(
                (member.awaiting_join, join_refused(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
            )
        if member.awaiting_sync is not None:
            answers.append((member.awaiting_sync, sync_refused(ErrorCode.REBALANCE_IN_PROGRESS)))
    return answers


def _refused(classic: ClassicGroup, why: str) -> GroupNotFound:
    return GroupNotFound(f"Cannot upgrade classic group {classic.group_id} to consumer group because {why}")
