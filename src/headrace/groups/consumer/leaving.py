"""Members that leave, are away for a while, or are fenced because they did not report in time."""

from __future__ import annotations

from typing import Any

from headrace.coordinators.decision import Decision
from headrace.core.errors import GroupNotFound
from headrace.groups.classic.groups import ClassicGroups
from headrace.groups.consumer import records
from headrace.groups.consumer.context import Context
from headrace.groups.consumer.conversion import Conversion
from headrace.groups.consumer.deadlines import Deadlines
from headrace.groups.consumer.group import ConsumerGroup
from headrace.groups.consumer.member import LEFT_FOR_A_WHILE, NOTHING_HELD, ConsumerMember
from headrace.groups.consumer.regexes import regexes_without
from headrace.groups.consumer.static_members import known_static
from headrace.groups.consumer.subscriptions import topics_of_all
from headrace.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from headrace.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse


class Leaving:
    __slots__ = ("_context", "conversion", "deadlines")

    def __init__(self, context: Context, classic: ClassicGroups) -> None:
        self._context = context
        self.deadlines = Deadlines(context, self.fence)
        self.conversion = Conversion(context, classic, self.deadlines.forget)

    def leave(
        self, request: ConsumerGroupHeartbeatRequest, now_ms: int
    ) -> Decision[ConsumerGroupHeartbeatResponse]:
        group = require_consumer_group(self._context, request.group_id)
        answer = ConsumerGroupHeartbeatResponse(
            member_id=request.member_id, member_epoch=request.member_epoch
        )
        if request.instance_id is None:
            member = group.member(request.member_id)
        else:
            member = known_static(group, request.instance_id, request.member_id)
            if request.member_epoch == LEFT_FOR_A_WHILE:
                away = member.changed(epoch=LEFT_FOR_A_WHILE, pending_revocation=NOTHING_HELD)
                return Decision([records.current(group.group_id, away)], answer)
        return self.remove(group, [member], answer, now_ms)

    def fence(self, group: ConsumerGroup, members: list[ConsumerMember], now_ms: int) -> Decision[Any]:
        """By a timer, which has no answer to give."""
        return self.remove(group, members, None, now_ms)

    def remove(
        self, group: ConsumerGroup, members: list[ConsumerMember], answer: Any, now_ms: int
    ) -> Decision[Any]:
        """Others get what they held with their own next heartbeats. If only classic members are left, the
        group becomes a classic one."""
        gone = dict.fromkeys(member.member_id for member in members)
        for member_id in gone:
            self.deadlines.forget(group.group_id, member_id)
        staying = [member for member_id, member in group.members.items() if member_id not in gone]
        if self.conversion.may_downgrade(staying):
            _, written = self.conversion.downgrade(group, staying, now_ms)
            self.conversion.begin_as_classic(group, rebalance=True)
            return Decision(written, answer)
        written = []
        for member in members:
            written.extend(records.without_member(group.group_id, member.member_id))
        regexes = regexes_without(group, members)
        written.extend(regexes.records)
        topics = topics_of_all(group, regexes.resolved, leaving=members)
        written.append(records.group_epoch(group.group_id, group.epoch + 1, self._context.hashes.of(topics)))
        return Decision(written, answer)


def require_consumer_group(context: Context, group_id: str) -> ConsumerGroup:
    group = context.groups.require(group_id)
    if not isinstance(group, ConsumerGroup):
        raise GroupNotFound(f"Group {group_id} is not a consumer group.")
    return group
