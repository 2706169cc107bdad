"""The heartbeat of the server-side protocol: joining, staying, changing one's mind, leaving."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import Any
from uuid import UUID

from headrace.coordinators.decision import CoordinatorRecord, Decision
from headrace.core.completion import Completion
from headrace.core.errors import FencedMemberEpoch, GroupMaxSizeReached, GroupNotFound
from headrace.groups.classic.group import ClassicGroup
from headrace.groups.classic.joins import Client
from headrace.groups.consumer.answers import heartbeat_answer
from headrace.groups.consumer.context import Context
from headrace.groups.consumer.group import ConsumerGroup
from headrace.groups.consumer.heartbeat_request import check_request, is_full, owned_of
from headrace.groups.consumer.leaving import Leaving
from headrace.groups.consumer.member import ConsumerMember, Held
from headrace.groups.consumer.reconciliation import Owned
from headrace.groups.consumer.static_members import joining_static, known_static
from headrace.groups.consumer.updating import Update, update_member
from headrace.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from headrace.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse


class Heartbeats:
    __slots__ = ("_context", "_leaving")

    def __init__(self, context: Context, leaving: Leaving) -> None:
        self._context = context
        self._leaving = leaving

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: Client, now_ms: int
    ) -> Decision[ConsumerGroupHeartbeatResponse]:
        config = self._context.config_of(request.group_id)
        check_request(request, client.version, config.group_consumer_assignors)
        if request.member_epoch < 0:
            return self._leaving.leave(request, now_ms)
        written: list[CoordinatorRecord] = []
        answers: list[tuple[Completion[Any], object]] = []
        group = self._group(request, written, answers, now_ms)
        require_room(group, request.member_id, config.group_consumer_max_size)
        member_id = request.member_id or new_member_id(self._context)
        owned = owned_of(request)
        member = self._member(group, request, member_id, owned, written)
        wanted = _as_wanted(member, request, client)
        moved = update_member(
            self._context, group, Update(member, wanted, owned, now_ms, client.sees), written
        )
        self._leaving.deadlines.session(
            group.group_id, member_id, config.group_consumer_session_timeout_ms, now_ms
        )
        if moved is not wanted:
            self._leaving.deadlines.rebalance(group.group_id, moved, now_ms)
        is_news = _is_news(group, member, moved, request.member_epoch, owned)
        answer = heartbeat_answer(
            moved,
            config.group_consumer_heartbeat_interval_ms,
            with_assignment=is_news or is_full(request),
        )
        return Decision(written, answer, answers)

    def _group(
        self,
        request: ConsumerGroupHeartbeatRequest,
        written: list[CoordinatorRecord],
        answers: list[tuple[Completion[Any], object]],
        now_ms: int,
    ) -> ConsumerGroup:
        """The group, or one that is to be: a join makes it, or makes it of a classic group."""
        group_id = request.group_id
        group = self._context.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if group is None:
            if request.member_epoch != 0:
                raise GroupNotFound(f"Consumer group {group_id} not found.")
            return ConsumerGroup(group_id)
        if request.member_epoch == 0 and isinstance(group, ClassicGroup):
            upgraded = self._leaving.conversion.upgrade(group, written, answers)
            self._leaving.deadlines.resume(upgraded, now_ms)
            return upgraded
        raise GroupNotFound(f"Group {group_id} is not a consumer group.")

    def _member(
        self,
        group: ConsumerGroup,
        request: ConsumerGroupHeartbeatRequest,
        member_id: str,
        owned: Owned | None,
        written: list[CoordinatorRecord],
    ) -> ConsumerMember:
        joins, instance_id = request.member_epoch == 0, request.instance_id
        if instance_id is None:
            member = group.members.get(member_id) if joins else group.member(member_id)
            member = member or ConsumerMember(member_id)
        elif joins:
            return joining_static(group, instance_id, member_id, written)
        else:
            member = known_static(group, instance_id, member_id)
        _check_epoch(member, request.member_epoch, owned)
        return member


def require_room(group: ConsumerGroup, member_id: str, max_size: int) -> None:
    if len(group.members) >= max_size and member_id not in group.members:
        raise GroupMaxSizeReached(
            f"The consumer group has reached its maximum capacity of {max_size} members."
        )


def new_member_id(context: Context) -> str:
    """Random, in the form of Kafka's ids; one that began with a dash could be taken for an option."""
    while True:
        member_id = urlsafe_b64encode(context.random.randbytes(16)).decode().rstrip("=")
        if not member_id.startswith("-"):
            return member_id


def _check_epoch(member: ConsumerMember, epoch: int, owned: Owned | None) -> None:
    """A member may begin anew at any time. It may also lag by one epoch, if it has nothing that it should not
    have: the answer that told it may have been lost."""
    if epoch == 0 or epoch == member.epoch:
        return
    if epoch < member.epoch and epoch == member.previous_epoch and _is_within(owned, member.assigned):
        return
    than = "greater" if epoch > member.epoch else "smaller"
    raise FencedMemberEpoch(
        f"The consumer group member has a {than} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin."
    )


def _is_news(
    group: ConsumerGroup, member: ConsumerMember, moved: ConsumerMember, epoch: int, owned: Owned | None
) -> bool:
    """Whether the member may not know what it holds: it changes now, or the answer that told it was lost.

    librdkafka sends a heartbeat that was not answered in time once more, as it was. Who is not told again
    keeps what it should give up, and never reads what it was given: its partitions are nobody's.
    """
    if moved.assigned != member.assigned:
        # Who comes with a new epoch has heard the answer that told it. Otherwise it has to say what it owns.
        if moved.epoch == epoch:
            group.unheard.add(moved.member_id)
        return True
    if owned is not None and _all_of(owned) == _all_of(moved.assigned):
        group.unheard.discard(moved.member_id)
    return epoch < member.epoch or moved.member_id in group.unheard


def _all_of(partitions: Owned) -> dict[UUID, frozenset[int]]:
    return {topic_id: frozenset(numbers) for topic_id, numbers in partitions.items()}


def _is_within(owned: Owned | None, held: Held) -> bool:
    return owned is not None and all(
        topic_id in held and all(partition in held[topic_id] for partition in partitions)
        for topic_id, partitions in owned.items()
    )


def _as_wanted(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, client: Client
) -> ConsumerMember:
    """What the request leaves out stays as it is. Nearly all of them leave out everything. Only who joins
    says all that it wants: what the process before it wanted, or it itself before it was fenced, is over."""
    if request.member_epoch == 0:
        return _as_joined(member, request, client)
    if _says_nothing(request) and _is_from(member, client):
        return member
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout_ms, assignor = request.rebalance_timeout_ms, request.server_assignor
    return member.changed(
        instance_id=request.instance_id or member.instance_id,
        rack_id=request.rack_id or member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        server_assignor=member.server_assignor if assignor is None else assignor,
        subscribed_names=member.subscribed_names if names is None else frozenset(names),
        subscribed_regex=member.subscribed_regex if regex is None else regex,
        client_id=client.client_id,
        client_host=client.host,
        classic=None,
    )


def _as_joined(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, client: Client
) -> ConsumerMember:
    return member.changed(
        instance_id=request.instance_id or member.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        server_assignor=request.server_assignor,
        subscribed_names=frozenset(request.subscribed_topic_names or ()),
        subscribed_regex=request.subscribed_topic_regex or "",
        client_id=client.client_id,
        client_host=client.host,
        classic=None,
    )


def _says_nothing(request: ConsumerGroupHeartbeatRequest) -> bool:
    return (
        request.instance_id is None
        and request.rack_id is None
        and request.rebalance_timeout_ms == -1
        and request.server_assignor is None
        and request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
    )


def _is_from(member: ConsumerMember, client: Client) -> bool:
    return (
        member.client_id == client.client_id and member.client_host == client.host and member.classic is None
    )
