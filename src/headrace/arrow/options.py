"""What is asked of a topic, in the types that people write, and what is meant by it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from headrace.arrow.columns import END, FIRST, Bounds
from headrace.client.errors import ClientFailure
from headrace.client.start import parse_time_ms

Offsets = int | Mapping[int, int]
Time = int | str | datetime


class Wish(NamedTuple):
    topic: str
    partitions: tuple[int, ...] | None
    columns: tuple[str, ...] | None
    start: Offsets | None
    end: Offsets | None
    first_ms: int
    next_ms: int
    committed_only: bool

    def bounds(self, partition: int) -> Bounds:
        return Bounds(
            _of(self.start, partition, FIRST), _of(self.end, partition, END), self.first_ms, self.next_ms
        )


def wish(
    topic: str,
    partitions: Iterable[int] | None = None,
    columns: Sequence[str] | None = None,
    start: Offsets | None = None,
    end: Offsets | None = None,
    start_time: Time | None = None,
    end_time: Time | None = None,
    isolation: str = "read_committed",
) -> Wish:
    if isolation not in ("read_committed", "read_uncommitted"):
        raise ClientFailure(f"{isolation!r} is no isolation", "it is read_committed or read_uncommitted")
    return Wish(
        topic,
        None if partitions is None else tuple(dict.fromkeys(partitions)),
        None if columns is None else tuple(columns),
        start,
        end,
        FIRST if start_time is None else time_ms(start_time),
        END if end_time is None else time_ms(end_time),
        isolation == "read_committed",
    )


def time_ms(given: Time) -> int:
    if isinstance(given, str):
        return parse_time_ms(given)
    if isinstance(given, datetime):
        moment = given if given.tzinfo is not None else given.replace(tzinfo=UTC)
        return int(moment.timestamp() * 1000)
    return given


def _of(given: Offsets | None, partition: int, otherwise: int) -> int:
    if given is None:
        return otherwise
    return given if isinstance(given, int) else given.get(partition, otherwise)
