"""What a heartbeat and a classic join have in common: a member that is new, or says something new, and what
follows from it for the epoch, the target and the member itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from headrace.coordinators.decision import CoordinatorRecord
from headrace.groups.consumer import records
from headrace.groups.consumer.context import Context
from headrace.groups.consumer.group import ConsumerGroup, Target
from headrace.groups.consumer.member import ConsumerMember
from headrace.groups.consumer.reconciliation import Owned, Step, reconcile
from headrace.groups.consumer.regexes import RegexUpdate
from headrace.groups.consumer.resolved_regex import ResolvedRegex
from headrace.groups.consumer.subscriptions import SubscribedIds, topics_of, topics_of_all
from headrace.groups.consumer.targets import compute_target, may_compute


class Update(NamedTuple):
    old: ConsumerMember
    """As the group has it, or an empty one."""
    new: ConsumerMember
    """As the request wants it."""
    owned: Owned | None
    now_ms: int
    sees: Callable[[str], bool] | None
    """Whether the client that asks may know of a topic; None: of every one."""


def update_member(
    context: Context, group: ConsumerGroup, update: Update, written: list[CoordinatorRecord]
) -> ConsumerMember:
    """The member after its next step. Everything that changes is added to `written`."""
    old, new, owned, now_ms, sees = update
    if new is not old:
        written.append(records.subscription(group.group_id, new))
    regexes = context.patterns.update(
        group, old, new, context.config.group_consumer_regex_refresh_interval_ms, now_ms, sees
    )
    written.extend(regexes.records)
    resubscribed = new.subscribed_names != old.subscribed_names or regexes.changed
    epoch = group.epoch
    if resubscribed or group.topics_version != context.topics.version:
        epoch = _next_epoch(context, group, update, regexes, written, bump=resubscribed)
    target_epoch, target = _target(context, group, epoch, update, regexes.resolved, written)
    if new.is_reconciled_to(target_epoch) and not resubscribed:
        return new
    step = Step(
        target_epoch=target_epoch,
        target=target,
        subscribed=SubscribedIds(topics_of(new, regexes.resolved), context.topics),
        is_owned=group.is_owned,
        owned=owned,
        subscription_changed=resubscribed,
    )
    moved = reconcile(new, step)
    if moved is not new:
        written.append(records.current(group.group_id, moved))
    return moved


def _next_epoch(
    context: Context,
    group: ConsumerGroup,
    update: Update,
    regexes: RegexUpdate,
    written: list[CoordinatorRecord],
    *,
    bump: bool,
) -> int:
    """The group's epoch, one higher if the members' wishes or the topics that they mean have changed."""
    leaving = (update.old,) if update.old.member_id in group.members else ()
    replaced = group.static_member(update.new.instance_id)
    if replaced is not None and replaced.member_id != update.old.member_id:
        leaving = (*leaving, replaced)
    topics = topics_of_all(group, regexes.resolved, leaving=leaving, joining=update.new)
    metadata_hash = context.hashes.of(topics)
    if group.has_partition_metadata:
        written.append(records.without_partition_metadata(group.group_id))
    if metadata_hash == group.metadata_hash:
        # Only now: if the records of another hash were refused, the next heartbeat has to see it again.
        group.topics_version = context.topics.version
        if not bump:
            return group.epoch
    written.append(records.group_epoch(group.group_id, group.epoch + 1, metadata_hash))
    return group.epoch + 1


def _target(
    context: Context,
    group: ConsumerGroup,
    epoch: int,
    update: Update,
    resolved: Mapping[str, ResolvedRegex],
    written: list[CoordinatorRecord],
) -> tuple[int, Target]:
    interval_ms = context.config_of(group.group_id).group_consumer_assignment_interval_ms
    if epoch <= group.assignment_epoch or not may_compute(group, interval_ms, update.now_ms):
        return group.assignment_epoch, group.target_of(update.new)
    assignor = group.preferred_assignor(update.old, update.new) or context.default_assignor
    target = compute_target(group, epoch, update.new, assignor, resolved, context.topics, update.now_ms)
    written.extend(target.records)
    return epoch, target.of_member
