"""How far the start of the history may move, and what may go from the local disk. Pure questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headrace.tier.knowledge import Known, Unread
from headrace.tier.local import LocalLog, LocalSegment, TierSettings, agree
from headrace.tier.manifest import Manifest
from headrace.tier.names import ObjectName
from headrace.tier.safeguards import TierSafeguards
from headrace.tier.segments import PageRef, RemoteSegment

ListedPage = tuple[ObjectName, tuple[RemoteSegment, ...]]


class Retained(NamedTuple):
    start: int
    """Everything before it may go."""
    unread_page: PageRef | None
    """Perhaps more may go: whoever wants to know reads this page."""


def first_segments(manifest: Manifest, page: ListedPage | None) -> Sequence[RemoteSegment]:
    """The segments that the manifest begins with, as far as they are known without reading another page."""
    if not manifest.pages:
        return (*manifest.oldest, *manifest.segments)
    if page is not None and page[0] == manifest.pages[0].name:
        return (*manifest.oldest, *page[1])
    return manifest.oldest


def retained(
    manifest: Manifest,
    page: ListedPage | None,
    local_bytes: int,
    settings: TierSettings,
    now_ms: int,
) -> Retained:
    """By size and time, segment by segment. `local_bytes`: of what is only on the disk (rule 7)."""
    start = manifest.start
    surplus = manifest.size + local_bytes - settings.retention_bytes
    for each in first_segments(manifest, page):
        is_over = settings.retention_bytes >= 0 and surplus >= each.size
        is_old = settings.retention_ms >= 0 and now_ms - each.max_timestamp > settings.retention_ms
        if not is_over and not is_old:
            return Retained(start, None)
        start = max(start, each.next_offset)
        surplus -= each.size
    if manifest.pages and (page is None or page[0] != manifest.pages[0].name):
        first = manifest.pages[0]
        has_bounds = settings.retention_ms >= 0 or (settings.retention_bytes >= 0 and surplus > 0)
        return Retained(start, first if has_bounds else None)
    return Retained(start, None)


def local_bytes(manifest: Manifest | None, local: LocalLog, safeguards: TierSafeguards) -> int:
    if manifest is None or not safeguards.each_offset_once:
        return local.bytes_from(local.local_start)
    return local.bytes_from(max(local.local_start, manifest.next_offset))


def _is_in_tier(known: Known | Unread, local: LocalLog, first: int, until: int) -> bool:
    """Rule 5: whether a manifest that this replica has read names this range, or nobody asks for it any more.
    It must be of this very log: what disagrees is not the same records."""
    manifest = known.manifest if isinstance(known, Known) else None
    first = max(first, local.start, -1 if manifest is None else manifest.start)
    if first >= until:
        return True
    if manifest is None or manifest.is_deleted or until > manifest.next_offset:
        return False
    return agree(local.epochs, manifest.epochs, first, until)


def local_until(
    known: Known | Unread,
    local: LocalLog,
    settings: TierSettings,
    now_ms: int,
    safeguards: TierSafeguards,
) -> int:
    """Sealed local segments that end at this offset or before it may go from the disk."""
    until = local.local_start
    surplus = local.bytes_from(local.local_start) - settings.local_retention_bytes
    for each in local.sealed:
        is_over = settings.local_retention_bytes >= 0 and surplus >= each.size
        is_old = (
            settings.local_retention_ms >= 0 and now_ms - each.max_timestamp > settings.local_retention_ms
        )
        is_gone = each.next_offset <= local.start
        if not (is_over or is_old or is_gone) or not _may_go(known, local, each, safeguards):
            break
        until = each.next_offset
        surplus -= each.size
    return until


def _may_go(known: Known | Unread, local: LocalLog, each: LocalSegment, safeguards: TierSafeguards) -> bool:
    if each.next_offset > local.high_watermark:
        return False
    if isinstance(known, Unread) and not safeguards.unknown_is_not_empty:
        return True  # nothing in the store: then it is a log like any other
    if isinstance(known, Known) and not safeguards.own_reading:
        return True  # what is committed, the leader will have uploaded
    return _is_in_tier(known, local, each.base_offset, each.next_offset)
