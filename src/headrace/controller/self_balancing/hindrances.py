"""Why self-balancing does nothing just now. A cluster that is not whole has other worries than to be even."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from headrace.controller.self_balancing.loads import Settings
from headrace.controller.self_balancing.reports import LoadReport
from headrace.core.ids import TopicPartition

SHOWN = 3


@dataclass(slots=True)
class Circumstances:
    """What stands against any move. Empty: nothing does."""

    down: list[int] = field(default_factory=list)
    """Brokers that are fenced or about to stop, or not registered though they hold something."""
    out_of_sync: list[TopicPartition] = field(default_factory=list)
    """With a replica that is not in sync, and not because it is only just being added."""
    moved_by_others: list[TopicPartition] = field(default_factory=list)
    """On their way, and self-balancing has not begun that."""
    silent: dict[int, str] = field(default_factory=dict)
    """Brokers that do not tell their load, and why."""


def hindrance(
    found: Circumstances, reports: Mapping[int, LoadReport], settings: Settings, brokers: Collection[int]
) -> str | None:
    """The first of them, in a sentence. `brokers`: those that would be balanced."""
    whole = degraded(found)
    if whole is not None:
        return whole
    if found.silent:
        broker_id, why = min(found.silent.items())
        return f"broker {broker_id} does not tell its load: {why}"
    for broker_id, report in sorted(reports.items()):
        for directory in report.directories:
            if not directory.works:
                return f"log directory {directory.path} of broker {broker_id} is offline"
            used = directory.used_percent
            if used is not None and used > settings.max_disk_percent:
                return (
                    f"log directory {directory.path} of broker {broker_id} is {used:.0f}% full, and"
                    f" headrace.balance.max.disk.percent is {settings.max_disk_percent:g}"
                )
    if len(brokers) < 2:
        return "there are fewer than two brokers to balance"
    return None


def degraded(found: Circumstances) -> str | None:
    """What the metadata alone says. It is asked again at the moment in which moves are committed."""
    if found.down:
        return f"{_brokers(found.down)} down or about to stop"
    if found.out_of_sync:
        return f"replicas are not in sync: {_some(found.out_of_sync)}"
    if found.moved_by_others:
        return f"somebody else moves replicas: {_some(found.moved_by_others)}"
    return None


def _brokers(ids: Collection[int]) -> str:
    named = ", ".join(map(str, sorted(ids)))
    return f"broker {named} is" if len(ids) == 1 else f"brokers {named} are"


def _some(partitions: Iterable[TopicPartition]) -> str:
    names = sorted(map(str, partitions))
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
