"""Tier: how much of the history of topics lies in the object store, on disks, and on its way between them."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from headrace.console.pages.page import Listing, NotThere, Page, Scene, listing, number_in
from headrace.console.pages.tier_rows import TierPartitionRow, TierRow, partition_row, tier_row
from headrace.console.pages.tier_store import StoreState, store_state
from headrace.console.pages.topic import topic_in
from headrace.doctor.model import Unknown
from headrace.observe.building import total

ROWS: Final = 200


class Sums(NamedTuple):
    remote_bytes: int | None
    local_bytes: int | None
    waiting_bytes: int | None
    waiting_ms: int | None
    known_wait_ms: int
    """Of those partitions whose leaders tell."""


class TierView(NamedTuple):
    listing: Listing[TierRow]
    not_known: str
    """Why nobody knows which topics are tiered; empty where it is known."""
    others: int
    """Topics without history in the store, internal ones left out."""
    sums: Sums
    forks: int
    is_late: bool
    """Something waits for the store for longer than `headrace cluster status` calls well."""
    store: StoreState
    is_partial: bool
    """Only of topics that the viewer may see."""


class TierTopicView(NamedTuple):
    row: TierRow
    name: str
    rows: Sequence[TierPartitionRow]
    number: int
    pages: int
    store: StoreState


KEYS: Final = {
    name: attrgetter(field)
    for name, field in (
        ("trouble", "trouble"),
        ("name", "name"),
        ("bucket", "remote_bytes"),
        ("disks", "local_bytes"),
        ("waiting", "known_wait_ms"),
    )
}


def tier(scene: Scene) -> Page:
    seen = scene.snapshot
    users = sum(not topic.internal for topic in seen.topics.values())
    if isinstance(seen.tiers, Unknown):
        none: Listing[TierRow] = Listing([], 0, 0, 1, 1, "trouble", True, "")
        sums = Sums(None, None, None, None, 0)
        view = TierView(none, seen.tiers.reason, users, sums, 0, False, store_state(seen), seen.is_partial)
        return Page("tier.html", "Tier", "tier", view)
    rows = [tier_row(seen, name, each) for name, each in seen.tiers.items()]
    view = TierView(
        listing(rows, scene.query, KEYS, "-trouble", attrgetter("name")),
        "",
        users - len(rows),
        _sums(rows),
        sum(row.is_fork for row in rows),
        any(row.is_late for row in rows),
        store_state(seen),
        seen.is_partial,
    )
    return Page("tier.html", "Tier", "tier", view)


def tier_topic(scene: Scene, name: str) -> Page:
    """One topic, by partitions."""
    seen = scene.snapshot
    topic_in(seen, name)
    if isinstance(seen.tiers, Unknown) or name not in seen.tiers:
        raise NotThere(f"Topic {name} has no history in an object store, or nobody tells.")
    found = seen.tiers[name]
    pages = max(1, -(-len(found.partitions) // ROWS))
    number = min(number_in(scene.query, "page", 1, least=1), pages)
    shown = found.partitions[(number - 1) * ROWS : number * ROWS]
    rows = [partition_row(each) for each in shown]
    view = TierTopicView(tier_row(seen, name, found), name, rows, number, pages, store_state(seen))
    return Page("tier_topic.html", f"Tier of {name}", "tier", view)


def _sums(rows: Sequence[TierRow]) -> Sums:
    longest = max((row.known_wait_ms for row in rows), default=0)
    return Sums(
        total(row.remote_bytes for row in rows),
        total(row.local_bytes for row in rows),
        total(row.waiting_bytes for row in rows),
        None if any(row.waiting_ms is None for row in rows) else longest,
        longest,
    )
