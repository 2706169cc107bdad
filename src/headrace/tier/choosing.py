"""What a leader does next, and why it does nothing any more. Pure questions."""

from __future__ import annotations

from typing import NamedTuple

from headrace.tier.collecting import StartJob
from headrace.tier.jobs import Basis, Job, PageJob, Place
from headrace.tier.knowledge import Known, Leadership
from headrace.tier.local import LocalLog, LocalSegment, TierSettings, agree, epochs_within
from headrace.tier.manifest import Manifest
from headrace.tier.retaining import ListedPage, local_bytes, retained
from headrace.tier.safeguards import TierSafeguards
from headrace.tier.segments import EpochStart


class Upload(NamedTuple):
    segment: LocalSegment
    base_offset: int
    """Within it: where the store ends. Segments of one leader end elsewhere than those of another."""
    epochs: tuple[EpochStart, ...]


def reason_to_stop(
    known: Known, leadership: Leadership, is_begun: bool, local: LocalLog, place: Place
) -> str | None:
    manifest = known.manifest
    if manifest is None:
        if is_begun and local.local_start > local.start:
            return f"records from {local.start} to {local.local_start} were in the store; it has no manifest"
        return None
    if manifest.is_deleted:
        return "the topic was deleted"
    if manifest.epoch > leadership.epoch and place.safeguards.higher_epoch_stops:
        return f"a leader of epoch {manifest.epoch} has written"  # rule 4
    if is_begun and place.safeguards.epochs_compared:
        first, until = max(local.start, manifest.start), min(local.end, manifest.next_offset)
        if not agree(local.epochs, manifest.epochs, first, until):
            return "the log and what is in the store have different epochs"
    return None


def start_job(
    basis: Basis,
    manifest: Manifest,
    local: LocalLog,
    page: ListedPage | None,
    settings: TierSettings,
    now_ms: int,
) -> Job | None:
    """Move the start, as DeleteRecords or retention ask for."""
    only_here = local_bytes(manifest, local, basis.place.safeguards)
    found = retained(manifest, page, only_here, settings, now_ms)
    start = max(found.start, local.start)
    if start > manifest.start:
        return StartJob(basis, start, page, now_ms)
    return PageJob(basis) if found.unread_page is not None else None


def upload(manifest: Manifest | None, local: LocalLog, safeguards: TierSafeguards) -> Upload | None:
    """Rules 2 and 3: the first sealed segment that is not in the store, if it is committed and decided."""
    limit = local.last_stable_offset if safeguards.below_last_stable else local.high_watermark
    if not safeguards.below_high_watermark:
        limit = local.end
    end = manifest.next_offset if manifest is not None and manifest.ranges else None
    start = local.start if manifest is None else max(local.start, manifest.start)
    for each in local.sealed:
        if each.next_offset <= (start if end is None else end):
            continue
        base = each.base_offset if end is None else max(each.base_offset, end)
        if each.next_offset > limit or base > (start if end is None else end):
            return None
        return Upload(each, base, epochs_within(local.epochs, base, each.next_offset))
    return None
