"""Where to begin in a partition, as people write it: beginning, end, 42, -10, @2026-11-01T12:00."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import Enum
from typing import NamedTuple

from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.offsets import EARLIEST, LATEST, ends_of, list_offsets
from headrace.core.ids import TopicPartition


class StartKind(Enum):
    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSET = "offset"
    BEFORE_END = "before-end"
    TIMESTAMP = "timestamp"


class Start(NamedTuple):
    kind: StartKind
    number: int = 0


_WORDS = {
    "beginning": StartKind.EARLIEST,
    "earliest": StartKind.EARLIEST,
    "start": StartKind.EARLIEST,
    "end": StartKind.LATEST,
    "latest": StartKind.LATEST,
}


def parse_start(text: str) -> Start:
    text = text.strip()
    if text in _WORDS:
        return Start(_WORDS[text])
    if text.startswith("@"):
        return Start(StartKind.TIMESTAMP, parse_time_ms(text[1:]))
    if text.removeprefix("-").isdecimal():
        number = int(text)
        return (
            Start(StartKind.BEFORE_END, -number) if text.startswith("-") else Start(StartKind.OFFSET, number)
        )
    if text == "stored":
        raise ClientFailure("stored offsets belong to groups", "name one with --group, or begin at an offset")
    raise ClientFailure(
        f"{text!r} is not a place in a log",
        "write beginning, end, an offset, -N for the last N, or @TIME (milliseconds or an ISO date)",
    )


def parse_time_ms(text: str) -> int:
    """Milliseconds since 1970, or an ISO date and time; without a zone it is UTC."""
    if text.isdecimal():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ClientFailure(
            f"{text!r} is not a time", "write milliseconds since 1970, or 2026-11-01T12:00:00"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)


async def resolve_starts(
    cluster: Cluster, partitions: Sequence[TopicPartition], start: Start
) -> dict[TopicPartition, int]:
    """The offset to begin with in each partition. After the last record of a time is the end."""
    if start.kind is StartKind.OFFSET:
        return dict.fromkeys(partitions, start.number)
    if start.kind is StartKind.BEFORE_END:
        ends = await ends_of(cluster, partitions)
        return {partition: max(first, last - start.number) for partition, (first, last) in ends.items()}
    if start.kind is StartKind.TIMESTAMP:
        found = await list_offsets(cluster, dict.fromkeys(partitions, start.number))
        late = [partition for partition, place in found.items() if place.offset < 0]
        ends_after = await list_offsets(cluster, dict.fromkeys(late, LATEST)) if late else {}
        return {partition: (ends_after.get(partition) or place).offset for partition, place in found.items()}
    time = EARLIEST if start.kind is StartKind.EARLIEST else LATEST
    found = await list_offsets(cluster, dict.fromkeys(partitions, time))
    return {partition: place.offset for partition, place in found.items()}
