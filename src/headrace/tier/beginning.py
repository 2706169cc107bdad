"""Rule 14: how a leader begins that may lack committed records.

What is in the store is committed. A leader that was in sync has all of it. One that was not may be shorter,
or may have other records at the same offsets. It first writes the manifest as its own, so that no leader
before it adds anything any more, and then compares.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.tier.knowledge import Known, Unread
from headrace.tier.local import LocalLog, agree, epochs_within
from headrace.tier.safeguards import TierSafeguards
from headrace.tier.segments import EpochStart


@dataclass(frozen=True, slots=True)
class Wait:
    """Append nothing yet."""


@dataclass(frozen=True, slots=True)
class LocalLogStays:
    """It holds what the store holds, and perhaps more."""


@dataclass(frozen=True, slots=True)
class BeginAt:
    """The local log goes, and begins anew at this offset: all that is before it is in the store."""

    offset: int
    start: int
    """Where the log starts, in the store."""
    epochs: tuple[EpochStart, ...]


Begin = Wait | LocalLogStays | BeginAt


def begin(known: Known | Unread, is_claimed: bool, local: LocalLog, safeguards: TierSafeguards) -> Begin:
    if isinstance(known, Unread) or (safeguards.claim_before_begin and not is_claimed):
        return Wait()
    manifest = known.manifest
    if manifest is None or not safeguards.begin_at_tier_end:
        return LocalLogStays()
    end = manifest.next_offset
    if local.end >= end:
        first = max(local.start, manifest.start)
        if not safeguards.epochs_compared or agree(local.epochs, manifest.epochs, first, end):
            return LocalLogStays()
    return BeginAt(end, manifest.start, manifest.epochs)


def may_begin_at(known: Known | Unread, offset: int, log_start: int, epoch_before: int) -> bool:
    """Whether a follower may leave everything before `offset` to the store (rule 5): a manifest that it has
    read itself goes so far, with records of the epoch that the leader has before that offset."""
    if offset <= log_start:
        return True
    manifest = known.manifest if isinstance(known, Known) else None
    if manifest is None or manifest.is_deleted or not offset <= manifest.next_offset:
        return False
    last = epochs_within(manifest.epochs, offset - 1, offset)
    return offset <= manifest.start or [each.epoch for each in last] == [epoch_before]
