"""Static members: an instance keeps its place, whatever process is behind it."""

from __future__ import annotations

from headrace.coordinators.decision import CoordinatorRecord
from headrace.core.errors import FencedInstance, UnknownMember, UnreleasedInstance
from headrace.groups.consumer import records
from headrace.groups.consumer.group import ConsumerGroup
from headrace.groups.consumer.member import LEFT_FOR_A_WHILE, ConsumerMember


def known_static(group: ConsumerGroup, instance_id: str, member_id: str) -> ConsumerMember:
    """The member behind an instance, if it is this one."""
    member = group.static_member(instance_id)
    if member is None:
        raise UnknownMember(f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise FencedInstance(
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{member.member_id}."
        )
    return member


def joining_static(
    group: ConsumerGroup,
    instance_id: str,
    member_id: str,
    written: list[CoordinatorRecord],
    *,
    classic: bool = False,
) -> ConsumerMember:
    """The member that joins as an instance. It takes over all that the process before it had.

    Between two processes that speak the server-side protocol, the first must have left for a while: two of
    them at once are an error of whoever configured them. A classic one cannot say so and is simply replaced.
    A process that begins anew, because it was fenced or an answer to it was lost, is no second one.
    """
    before = group.static_member(instance_id)
    if before is None:
        return group.members.get(member_id) or ConsumerMember(member_id)
    if not classic and before.classic is None and before.epoch != LEFT_FOR_A_WHILE:
        if before.member_id == member_id:
            return before
        raise UnreleasedInstance(
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the "
            f"instance id is owned by {before.member_id} member."
        )
    member = before.changed(member_id=member_id, epoch=0, previous_epoch=0)
    written.extend(records.without_member(group.group_id, before.member_id))
    written.append(records.subscription(group.group_id, member))
    written.append(records.target(group.group_id, member_id, group.target_of(before)))
    written.append(records.current(group.group_id, member))
    return member
