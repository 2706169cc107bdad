"""Brokers: who carries how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from headrace.client.log_dirs import LogDirectory
from headrace.console.pages.page import Page, Scene
from headrace.observe.snapshot import BrokerSeen


class Directory(NamedTuple):
    path: str
    failed: bool
    total_bytes: int
    usable_bytes: int
    days_left: float | None

    @property
    def used(self) -> float | None:
        """From 0 to 1; None where the broker does not tell."""
        if self.total_bytes <= 0 or self.usable_bytes < 0:
            return None
        return 1 - self.usable_bytes / self.total_bytes


class BrokerRow(NamedTuple):
    broker_id: int
    address: str
    rack: str | None
    state: str
    is_controller: bool
    leaders: int
    replicas: int
    out_of_sync: int
    size_bytes: int | None
    rate_in: float | None
    directories: Sequence[Directory]
    loop_lag_ms: int | None
    uptime_ms: int | None
    version: str
    build: str
    silent: str
    """Why it could not be asked for offsets; empty where it answered."""


class Largest(NamedTuple):
    """What fills a bar."""

    leaders: int
    replicas: int
    size_bytes: int
    rate_in: float


class BrokersView(NamedTuple):
    rows: Sequence[BrokerRow]
    largest: Largest
    alive: int
    is_sized: bool


def brokers(scene: Scene) -> Page:
    seen = scene.snapshot
    rows = [_row(broker, seen.silent) for broker in seen.brokers.values()]
    largest = Largest(
        max((row.leaders for row in rows), default=0),
        max((row.replicas for row in rows), default=0),
        max((row.size_bytes or 0 for row in rows), default=0),
        max((row.rate_in or 0.0 for row in rows), default=0.0),
    )
    alive = sum(row.state == "alive" for row in rows)
    return Page(
        "brokers.html", "Brokers", "brokers", BrokersView(rows, largest, alive, bool(seen.files_at_ms))
    )


def _row(broker: BrokerSeen, silent: Mapping[int, str]) -> BrokerRow:
    figures = broker.figures
    uptime = _number(figures.get("uptime.seconds"))
    return BrokerRow(
        broker.broker_id,
        broker.address,
        broker.rack,
        broker.state,
        broker.is_controller,
        broker.leaders,
        broker.replicas,
        broker.out_of_sync,
        broker.size_bytes,
        broker.rate_in,
        [
            _directory(directory, days)
            for directory, days in zip(broker.directories, broker.days_left, strict=True)
        ],
        _number(figures.get("loop.lag.p99.ms")),
        None if uptime is None else uptime * 1000,
        figures.get("version", ""),
        figures.get("build", ""),
        silent.get(broker.broker_id, ""),
    )


def _directory(directory: LogDirectory, days: float | None) -> Directory:
    return Directory(directory.path, directory.failed, directory.total_bytes, directory.usable_bytes, days)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
