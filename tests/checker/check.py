"""The verdict on a history: every anomaly that the settings do not allow.

verdict = check(history, Settings())
assert verdict.valid, verdict
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tests.checker.anomalies import Anomaly, Kind
from tests.checker.history import History, Outcome
from tests.checker.order import orders_of
from tests.checker.reads import (
    consumed_twice,
    precommitted_reads,
    read_cycles,
    reading_order,
    wrong_values,
)
from tests.checker.writes import duplicates, inconsistent_offsets, losses, sends_out_of_order

SHOWN: Final = 20
"""Anomalies that a verdict prints; one fault often makes thousands."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the clients asked for. The defaults are the safe settings, for which nothing is forgiven."""

    idempotent: bool = True
    """Otherwise a retry may store a value twice, and change the order of sends."""
    final_reads: bool = True
    """The history ends with reads of every key to its end, so what they lack is gone."""
    read_committed: bool = True
    """Otherwise what was refused or aborted may be read."""
    deleted_before: Mapping[str, int] = field(default_factory=dict)
    """By key, the offset below which somebody has had everything deleted: it need not be seen."""
    acknowledged_by_all: bool = True
    """Otherwise (acks=1, acks=0) an acknowledged value may be lost."""

    def allowed(self) -> frozenset[Kind]:
        kinds: set[Kind] = set()
        if not self.idempotent:
            kinds |= {Kind.DUPLICATE, Kind.SEND_ORDER, Kind.SEND_ORDER_INSIDE}
        if not self.read_committed:
            kinds |= {Kind.ABORTED_READ, Kind.PRECOMMITTED_READ, Kind.READ_CYCLE}
        if not self.acknowledged_by_all:
            # A value that was lost frees its offset for another one.
            kinds |= {Kind.LOST_WRITE, Kind.UNSEEN, Kind.SEND_ORDER, Kind.INCONSISTENT_OFFSET, Kind.SKIP}
            kinds |= {Kind.POLL_SKIP}
        return frozenset(kinds)


@dataclass(frozen=True, slots=True)
class Verdict:
    anomalies: list[Anomaly]
    tolerated: list[Anomaly] = field(default_factory=list)
    """Found, and allowed by the settings."""
    acknowledged: int = 0
    refused: int = 0
    unknown: int = 0
    read: int = 0
    """Sends by their outcome, and values that somebody read: a verdict over nothing proves nothing."""
    transactions: Counter[Outcome] = field(default_factory=Counter)

    @property
    def valid(self) -> bool:
        return not self.anomalies

    def count(self, kind: Kind) -> int:
        return sum(anomaly.kind is kind for anomaly in self.anomalies)

    def __str__(self) -> str:
        lines = [
            f"{self.acknowledged} sends acknowledged, {self.refused} refused, {self.unknown} unknown;"
            f" {self.read} values read"
        ]
        if self.transactions:
            committed, aborted, open_ended = (self.transactions[outcome] for outcome in Outcome)
            lines.append(f"{committed} transactions committed, {aborted} aborted, {open_ended} unknown")
        if self.valid:
            lines.append("no anomaly")
        for kind, count in Counter(anomaly.kind for anomaly in self.anomalies).items():
            lines.append(f"{count} x {kind.value}")
        lines += [f"  {anomaly}" for anomaly in self.anomalies[:SHOWN]]
        if len(self.anomalies) > SHOWN:
            lines.append(f"  and {len(self.anomalies) - SHOWN} more")
        return "\n".join(lines)


DEFAULTS: Final = Settings()


def check(history: History, settings: Settings = DEFAULTS) -> Verdict:
    orders = orders_of(history)
    found = [
        *inconsistent_offsets(orders),
        *duplicates(orders),
        *losses(history, orders, final_reads=settings.final_reads, deleted_before=settings.deleted_before),
        *wrong_values(orders),
        *precommitted_reads(history),
        *reading_order(history, orders),
        *sends_out_of_order(history, orders),
        *read_cycles(history, orders),
        *consumed_twice(history),
    ]
    allowed = settings.allowed()
    sends = Counter(operation.outcome for operation in history.operations for _ in operation.sends())
    return Verdict(
        [anomaly for anomaly in found if anomaly.kind not in allowed],
        [anomaly for anomaly in found if anomaly.kind in allowed],
        acknowledged=sends[Outcome.OK],
        refused=sends[Outcome.FAIL],
        unknown=sends[Outcome.UNKNOWN],
        read=sum(len(order.readers) for order in orders.values()),
        transactions=Counter(one.outcome for one in history.operations if one.kind == "transaction"),
    )
