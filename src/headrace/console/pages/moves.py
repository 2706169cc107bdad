"""Moves: partitions on their way from some brokers to others, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headrace.client.health import Health
from headrace.client.reassignments import Reassignment
from headrace.console.pages.page import Page, Scene
from headrace.core.ids import TopicPartition
from headrace.doctor.model import Unknown
from headrace.observe.snapshot import Snapshot


class Arriving(NamedTuple):
    broker: int
    is_in_sync: bool
    lag: int | None
    """Records that it lacks; None where nobody tells."""


class MoveRow(NamedTuple):
    partition: TopicPartition
    before: Sequence[int]
    after: Sequence[int]
    arriving: Sequence[Arriving]
    size_bytes: int | None


class MovesView(NamedTuple):
    rows: Sequence[MoveRow]
    not_known: str
    arrived: int
    """Copies that are in sync, of all that are being made."""
    copies: int


def moves(scene: Scene) -> Page:
    seen = scene.snapshot
    if isinstance(seen.health, Unknown):
        return Page("moves.html", "Moves", "moves", MovesView([], seen.health.reason, 0, 0))
    rows = [
        _row(partition, move, seen, seen.health) for partition, move in sorted(seen.health.moving.items())
    ]
    copies = [each for row in rows for each in row.arriving]
    view = MovesView(rows, "", sum(each.is_in_sync for each in copies), len(copies))
    return Page("moves.html", "Moves", "moves", view)


def _row(partition: TopicPartition, move: Reassignment, seen: Snapshot, health: Health) -> MoveRow:
    topic = seen.topics.get(partition.topic)
    found = (
        next((each for each in topic.partitions if each.state.partition == partition.partition), None)
        if topic is not None
        else None
    )
    in_sync = () if found is None else found.state.isr
    return MoveRow(
        partition,
        [broker for broker in move.replicas if broker not in move.adding],
        [broker for broker in move.replicas if broker not in move.removing],
        [
            Arriving(
                broker, broker in in_sync, 0 if broker in in_sync else health.lagging.get((partition, broker))
            )
            for broker in move.adding
        ],
        None if found is None else found.size_bytes,
    )
