"""Transactions: where open ones keep records from readers of committed ones, and who waits there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from headrace.console.pages.page import Page, Scene
from headrace.core.ids import TopicPartition
from headrace.doctor.model import Unknown
from headrace.observe.snapshot import PartitionSeen, Snapshot, TopicSeen

MOST: Final = 200


class HeldRow(NamedTuple):
    partition: TopicPartition
    stable: int
    """Where the first open transaction begins: readers of committed records stop there."""
    end: int
    waiting: Sequence[str]
    """Groups that have committed up to there."""

    @property
    def held(self) -> int:
        return self.end - self.stable


class TransactionsView(NamedTuple):
    rows: Sequence[HeldRow]
    more: int
    unknown: int
    """Partitions that could not be asked."""
    reads: str
    """Why nobody knows who waits; empty where it is known."""


def transactions(scene: Scene) -> Page:
    seen = scene.snapshot
    places = [(topic, each) for topic in seen.topics.values() for each in topic.partitions]
    held = [
        _row(seen, topic, each)
        for topic, each in places
        if each.ends is not None and each.ends.stable < each.ends.end
    ]
    held.sort(key=lambda row: (-row.held, row.partition))
    view = TransactionsView(
        held[:MOST],
        max(0, len(held) - MOST),
        sum(each.ends is None for _, each in places),
        "" if seen.commits is None else seen.commits.reason,
    )
    return Page("transactions.html", "Transactions", "transactions", view)


def _row(seen: Snapshot, topic: TopicSeen, each: PartitionSeen) -> HeldRow:
    assert each.ends is not None, "it is held somewhere"
    partition = TopicPartition(topic.name, each.state.partition)
    waiting = []
    groups = {} if isinstance(seen.groups, Unknown) else seen.groups
    for name in topic.groups:
        rails = groups[name].rails if name in groups else ()
        for rail in () if isinstance(rails, Unknown) else rails:
            if rail.partition == partition and (rail.committed or 0) >= each.ends.stable:
                waiting.append(name)
    return HeldRow(partition, each.ends.stable, each.ends.end, waiting)
