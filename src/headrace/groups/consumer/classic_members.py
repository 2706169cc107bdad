"""Members of a consumer group that speak the classic protocol.

The broker assigns to them as to all others. JoinGroup takes the part of the heartbeat that changes something,
SyncGroup fetches the assignment, and Heartbeat says when it is time to join again.
"""

from __future__ import annotations

from typing import Final

from headrace.coordinators.decision import CoordinatorRecord, Decision
from headrace.core.errors import (
    HeadraceError,
    IllegalGeneration,
    InconsistentGroupProtocol,
    RebalanceInProgress,
    UnknownMember,
)
from headrace.groups.classic.answers import join_refused
from headrace.groups.classic.joins import Client
from headrace.groups.classic.subscriptions import CONSUMER_PROTOCOL_TYPE
from headrace.groups.consumer.classic_leaving import leave_response, leaving_classic
from headrace.groups.consumer.context import Context
from headrace.groups.consumer.embedded_protocol import owned_of, read_subscription, write_assignment
from headrace.groups.consumer.group import ConsumerGroup
from headrace.groups.consumer.heartbeats import new_member_id, require_room
from headrace.groups.consumer.leaving import Leaving, require_consumer_group
from headrace.groups.consumer.member import ConsumerMember, MemberState
from headrace.groups.consumer.static_members import joining_static, known_static
from headrace.groups.consumer.updating import Update, update_member
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.heartbeat_request import HeartbeatRequest
from headrace.protocol.messages.heartbeat_response import HeartbeatResponse
from headrace.protocol.messages.join_group_request import JoinGroupRequest
from headrace.protocol.messages.join_group_response import JoinGroupResponse
from headrace.protocol.messages.leave_group_request import LeaveGroupRequest
from headrace.protocol.messages.leave_group_response import LeaveGroupResponse
from headrace.protocol.messages.sync_group_request import SyncGroupRequest
from headrace.protocol.messages.sync_group_response import SyncGroupResponse
from headrace.protocol.stored.consumer_group_member_metadata_value import (
    ClassicMemberMetadata,
    ClassicProtocol,
)

_ID_IS_REQUIRED_FROM: Final = 4


class ClassicMembers:
    __slots__ = ("_context", "_leaving")

    def __init__(self, context: Context, leaving: Leaving) -> None:
        self._context = context
        self._leaving = leaving

    def join(self, request: JoinGroupRequest, client: Client, now_ms: int) -> Decision[JoinGroupResponse]:
        group = require_consumer_group(self._context, request.group_id)
        member_id = request.member_id or new_member_id(self._context)
        self._check_join(group, request, member_id)
        instance_id = request.group_instance_id
        if not request.member_id and instance_id is None and client.version >= _ID_IS_REQUIRED_FROM:
            return Decision((), join_refused(ErrorCode.MEMBER_ID_REQUIRED, member_id))
        written: list[CoordinatorRecord] = []
        member = self._joining(group, request, member_id, written)
        subscription = read_subscription(request.protocols[0].metadata)
        wanted = _as_wanted(member, request, client, frozenset(subscription.topics), subscription.rack_id)
        replaced = group.static_member(instance_id)
        if replaced is not None and replaced.classic is None:
            downgraded = self._replace_last(group, replaced, wanted, now_ms)
            if downgraded is not None:
                return downgraded
        owned = owned_of(subscription, self._context.topics)
        moved = update_member(
            self._context, group, Update(member, wanted, owned, now_ms, client.sees), written
        )
        deadlines = self._leaving.deadlines
        deadlines.session(group.group_id, member_id, request.session_timeout_ms, now_ms)
        deadlines.joined(group.group_id, moved, now_ms)
        return Decision(written, _joined(moved, moved.epoch, request.protocols[0].name))

    def _check_join(self, group: ConsumerGroup, request: JoinGroupRequest, member_id: str) -> None:
        config = self._context.config
        if config.group_consumer_migration_policy.lower() == "disabled":
            raise InconsistentGroupProtocol(
                f"Cannot join the consumer group {group.group_id} with the classic protocol because the "
                "group migration is disabled."
            )
        require_room(group, member_id, config.group_consumer_max_size)
        shared = any(
            group.classic_protocols.get(each.name, 0) == group.classic_members for each in request.protocols
        )
        if request.protocol_type != group.protocol_type or not shared:
            raise InconsistentGroupProtocol(f"Member {member_id}'s protocols are not supported.")

    def _joining(
        self,
        group: ConsumerGroup,
        request: JoinGroupRequest,
        member_id: str,
        written: list[CoordinatorRecord],
    ) -> ConsumerMember:
        instance_id = request.group_instance_id
        if instance_id is None:
            return group.members.get(member_id) or ConsumerMember(member_id)
        if request.member_id:
            return known_static(group, instance_id, member_id)
        return joining_static(group, instance_id, member_id, written, classic=True)

    def _replace_last(
        self,
        group: ConsumerGroup,
        replaced: ConsumerMember,
        wanted: ConsumerMember,
        now_ms: int,
    ) -> Decision[JoinGroupResponse] | None:
        """A static member is restarted with the classic protocol. If it was the last of the server-side one,
        the group becomes a classic one. If nothing was about to change, everybody has the partitions that
        they had. Otherwise the target may name what others have not given up, so a rebalance comes first."""
        others = [member for member in group.members.values() if member is not replaced]
        conversion = self._leaving.conversion
        if not conversion.may_downgrade([*others, wanted]):
            return None
        classic, written = conversion.downgrade(group, [*others, wanted], now_ms)
        at_rest = _wants_the_same(replaced, wanted) and all(
            member.is_reconciled_to(group.epoch) for member in others
        )
        conversion.begin_as_classic(group, rebalance=not at_rest)
        return Decision(written, _joined(wanted, classic.generation, classic.protocol_name or ""))

    def sync(self, request: SyncGroupRequest, now_ms: int) -> Decision[SyncGroupResponse]:
        group, member, classic = self._known(
            request.group_id, request.member_id, request.group_instance_id, request.generation_id
        )
        protocol = classic.supported_protocols[0]
        _check_protocol(member, protocol.name, request)
        if group.epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._leaving.deadlines.join(group.group_id, member, now_ms)
            raise RebalanceInProgress(
                f"A new rebalance is triggered in group {group.group_id} and member {member.member_id} "
                "should rejoin to catch up."
            )
        self._leaving.deadlines.synced(group.group_id, member.member_id)
        self._leaving.deadlines.session(group.group_id, member.member_id, classic.session_timeout_ms, now_ms)
        assignment = write_assignment(member.assigned, protocol.metadata, self._context.topics)
        answer = SyncGroupResponse(
            protocol_type=request.protocol_type, protocol_name=request.protocol_name, assignment=assignment
        )
        return Decision((), answer)

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> Decision[HeartbeatResponse]:
        group, member, classic = self._known(
            request.group_id, request.member_id, request.group_instance_id, request.generation_id
        )
        self._leaving.deadlines.session(group.group_id, member.member_id, classic.session_timeout_ms, now_ms)
        if not _has_to_join(group, member):
            return Decision((), HeartbeatResponse())
        self._leaving.deadlines.join(group.group_id, member, now_ms)
        return Decision((), HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))

    def leave(self, request: LeaveGroupRequest, now_ms: int) -> Decision[LeaveGroupResponse]:
        group = require_consumer_group(self._context, request.group_id)
        members: dict[str, ConsumerMember] = {}
        outcomes: list[ConsumerMember | HeadraceError] = []
        for identity in request.members:
            try:
                member = leaving_classic(group, identity)
                members[member.member_id] = member
                outcomes.append(member)
            except HeadraceError as error:
                outcomes.append(error)
        answer = leave_response(request, outcomes)
        if not members:
            return Decision((), answer)
        return self._leaving.remove(group, list(members.values()), answer, now_ms)

    def _known(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int
    ) -> tuple[ConsumerGroup, ConsumerMember, ClassicMemberMetadata]:
        group = require_consumer_group(self._context, group_id)
        if instance_id is None:
            member = group.member(member_id)
        else:
            member = known_static(group, instance_id, member_id)
        if member.classic is None:
            raise UnknownMember(f"Member {member_id} does not use the classic protocol.")
        if generation != member.epoch:
            raise IllegalGeneration(
                f"The request generation id {generation} is not equal to the member epoch {member.epoch} of "
                f"member {member_id}."
            )
        return group, member, member.classic


def _wants_the_same(before: ConsumerMember, after: ConsumerMember) -> bool:
    return (before.subscribed_names, before.subscribed_regex) == (
        after.subscribed_names,
        after.subscribed_regex,
    )


def _joined(member: ConsumerMember, generation: int, protocol: str) -> JoinGroupResponse:
    """Nobody is the leader: the broker assigns."""
    return JoinGroupResponse(
        member_id=member.member_id,
        generation_id=generation,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=protocol,
    )


def _has_to_join(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Its group has moved on, or it has to confirm that it gave something up, or what it waits for is
    free."""
    if member.epoch < group.epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    return member.state is MemberState.UNRELEASED_PARTITIONS and not any(
        number not in member.assigned.get(topic_id, {}) and group.is_owned(topic_id, number)
        for topic_id, numbers in group.target_of(member).items()
        for number in numbers
    )


def _check_protocol(member: ConsumerMember, name: str, request: SyncGroupRequest) -> None:
    if request.protocol_type is not None and request.protocol_type != "consumer":
        raise InconsistentGroupProtocol(
            f"The protocol type {request.protocol_type} from member {member.member_id} request is not equal "
            "to the group protocol type consumer."
        )
    if request.protocol_name is not None and request.protocol_name != name:
        raise InconsistentGroupProtocol(
            f"The protocol name {request.protocol_name} from member {member.member_id} request is not equal "
            f"to the protocol name {name} returned in the join response."
        )


def _classic_metadata(request: JoinGroupRequest) -> ClassicMemberMetadata:
    return ClassicMemberMetadata(
        session_timeout_ms=request.session_timeout_ms,
        supported_protocols=[
            ClassicProtocol(name=each.name, metadata=each.metadata) for each in request.protocols
        ],
    )


def _as_wanted(
    member: ConsumerMember,
    request: JoinGroupRequest,
    client: Client,
    topics: frozenset[str],
    rack_id: str | None,
) -> ConsumerMember:
    """A join says all that the member wants. A pattern and an assignor of the broker it cannot even name."""
    timeout_ms = request.rebalance_timeout_ms
    return member.changed(
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=rack_id or None,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        server_assignor=None,
        subscribed_names=topics,
        subscribed_regex="",
        client_id=client.client_id,
        client_host=client.host,
        classic=_classic_metadata(request),
    )
