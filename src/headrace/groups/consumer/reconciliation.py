"""One step of a member from what it holds towards what it is meant to have.

A partition passes from one member to another only through nobody: the old owner is told to give it up,
confirms that by a heartbeat which no longer names it, and only then is the new owner given it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple
from uuid import UUID

from headrace.core.errors import FencedMemberEpoch
from headrace.groups.consumer.group import Target
from headrace.groups.consumer.member import NOTHING_HELD, ConsumerMember, Held, MemberState

Owned = Mapping[UUID, Collection[int]]
"""What a member says that it owns."""


class Step(NamedTuple):
    """What a step depends on, besides the member."""

    target_epoch: int
    target: Target
    subscribed: Callable[[UUID], bool]
    """Whether the member subscribes to a topic now. What it no longer does is not kept."""
    is_owned: Callable[[UUID, int], bool]
    """By anybody, the member itself included."""
    owned: Owned | None
    """None if the member did not say."""
    subscription_changed: bool = False


def reconcile(member: ConsumerMember, step: Step) -> ConsumerMember:
    """The member itself if there is nothing to change."""
    state = member.state
    if state is MemberState.STABLE:
        if member.epoch != step.target_epoch:
            return _next(member, member.epoch, step)
        return _without_unsubscribed(member, step) if step.subscription_changed else member
    if state is MemberState.UNREVOKED_PARTITIONS:
        if _owns_any(step.owned, member.pending_revocation):
            return _without_unsubscribed(member, step) if step.subscription_changed else member
        # It may be here by a changed subscription, before there is a new target. Then its epoch stays.
        return _next(member, min(member.epoch + 1, step.target_epoch), step)
    if state is MemberState.UNRELEASED_PARTITIONS:
        return _next(member, member.epoch, step)
    if step.owned is None or step.owned:
        raise FencedMemberEpoch(
            "The consumer group member is in a unknown state. The member must abandon all its partitions and "
            "rejoin."
        )
    return _next(member, step.target_epoch, step)


def _owns_any(owned: Owned | None, held: Held) -> bool:
    """A member that does not say what it owns is taken to own everything."""
    if owned is None:
        return True
    return any(
        partition in held[topic_id]
        for topic_id, partitions in owned.items()
        if topic_id in held
        for partition in partitions
    )


def _next(member: ConsumerMember, epoch: int, step: Step) -> ConsumerMember:
    kept: dict[UUID, Mapping[int, int]] = {}
    revoked: dict[UUID, Mapping[int, int]] = {}
    for topic_id, partitions in member.assigned.items():
        wanted = step.target.get(topic_id) if step.subscribed(topic_id) else None
        if wanted and partitions.keys() <= wanted:
            kept[topic_id] = partitions
            continue
        staying = {number: since for number, since in partitions.items() if wanted and number in wanted}
        if staying:
            kept[topic_id] = staying
        revoked[topic_id] = {number: since for number, since in partitions.items() if number not in staying}
    if revoked and _owns_any(step.owned, revoked):
        return member.at_epoch(
            epoch, state=MemberState.UNREVOKED_PARTITIONS, assigned=kept, pending_revocation=revoked
        )
    assigned, all_free = _with_what_is_free(member, kept, step)
    return member.at_epoch(
        step.target_epoch,
        state=MemberState.STABLE if all_free else MemberState.UNRELEASED_PARTITIONS,
        assigned=assigned,
        pending_revocation=NOTHING_HELD,
    )


def _with_what_is_free(
    member: ConsumerMember, kept: Mapping[UUID, Mapping[int, int]], step: Step
) -> tuple[Held, bool]:
    """`kept` and all of the target that nobody else holds; and whether that is the whole target."""
    assigned = dict(kept)
    all_free = True
    for topic_id, wanted in step.target.items():
        have = kept.get(topic_id, {})
        if len(have) == len(wanted) or not step.subscribed(topic_id):
            continue
        own = member.pending_revocation.get(topic_id, {})
        given = {}
        for number in sorted(wanted):
            if number in have:
                continue
            # What the member itself was about to give up is as good as free: nobody else can hold it.
            if step.is_owned(topic_id, number) and number not in own:
                all_free = False
            else:
                given[number] = step.target_epoch
        if given:
            assigned[topic_id] = {**have, **given}
    return assigned, all_free


def _without_unsubscribed(member: ConsumerMember, step: Step) -> ConsumerMember:
    """Takes away at once what the member has unsubscribed from, without waiting for a new target."""
    gone = {topic_id: held for topic_id, held in member.assigned.items() if not step.subscribed(topic_id)}
    if not gone:
        return member
    assigned = {topic_id: held for topic_id, held in member.assigned.items() if topic_id not in gone}
    pending = {
        topic_id: {**member.pending_revocation.get(topic_id, {}), **gone.get(topic_id, {})}
        for topic_id in [
            *member.pending_revocation,
            *(id for id in gone if id not in member.pending_revocation),
        ]
    }
    if _owns_any(step.owned, pending):
        return member.changed(
            state=MemberState.UNREVOKED_PARTITIONS, assigned=assigned, pending_revocation=pending
        )
    return member.changed(assigned=assigned)
