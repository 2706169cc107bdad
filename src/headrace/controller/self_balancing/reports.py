"""What one broker tells of its load, and the figures that it travels as (`config/load_report.py`)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from headrace.config.load_report import DIRECTORY, TOPIC


class DirectorySpace(NamedTuple):
    path: str
    works: bool
    total_bytes: int
    free_bytes: int
    """-1 where it is not known."""

    @property
    def used_percent(self) -> float | None:
        if self.total_bytes <= 0 or self.free_bytes < 0:
            return None
        return 100.0 * (self.total_bytes - self.free_bytes) / self.total_bytes


class LedPartition(NamedTuple):
    number: int
    end_offset: int
    size_bytes: int


class TopicTraffic(NamedTuple):
    """Of one topic at one broker, counted since the broker's start."""

    bytes_in: int
    bytes_out: int
    led: tuple[LedPartition, ...]


@dataclass(slots=True)
class LoadReport:
    directories: list[DirectorySpace] = field(default_factory=list)
    topics: dict[str, TopicTraffic] = field(default_factory=dict)


def directory_figure(space: DirectorySpace, number: int) -> tuple[str, str]:
    return f"{DIRECTORY}{number}", json.dumps(list(space))


def topic_figure(name: str, traffic: TopicTraffic) -> tuple[str, str]:
    told = {"in": traffic.bytes_in, "out": traffic.bytes_out, "led": traffic.led}
    return TOPIC + name, json.dumps(told, separators=(",", ":"))


def read_report(figures: Mapping[str, str]) -> Iterator[LoadReport | None]:
    """Gives None again and again, so that a caller can go on in slices, and at last the report.

    Raises ValueError if it is of a broker that writes it otherwise.
    """
    report = LoadReport()
    try:
        for name, text in figures.items():
            if name.startswith(DIRECTORY):
                path, works, total, free = json.loads(text)
                report.directories.append(DirectorySpace(str(path), bool(works), int(total), int(free)))
            elif name.startswith(TOPIC):
                told = json.loads(text)
                led = tuple(LedPartition(*map(int, each)) for each in told["led"])
                report.topics[name.removeprefix(TOPIC)] = TopicTraffic(int(told["in"]), int(told["out"]), led)
            yield None
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"its report cannot be read, it may be of another version: {error!r}") from None
    if not report.directories:
        raise ValueError("it is of a version that does not tell its load")
    yield report
