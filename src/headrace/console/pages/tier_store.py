"""What brokers say of the object store: whether their calls fail, and who says nothing of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headrace.client.health import Health
from headrace.config.health import TIER_FAILURE
from headrace.console.words import counted
from headrace.observe.snapshot import Snapshot


class StoreFailure(NamedTuple):
    reason: str
    brokers: Sequence[int]


class Silence(NamedTuple):
    """Of a broker that leads tiered partitions, or would."""

    broker: int
    reason: str


class StoreState(NamedTuple):
    is_shown: bool
    """The viewer may see what brokers say."""
    brokers: Sequence[int]
    """Those that have a store, and tell."""
    failures: Sequence[StoreFailure]
    silent: Sequence[Silence]
    """Brokers that tell nothing, or not how much lies where."""

    @property
    def word(self) -> str:
        if self.failures:
            return "fails"
        return "no call fails" if self.brokers else "not known"

    @property
    def note(self) -> str:
        whole = counted(len(self.brokers), "broker")
        failing = sum(len(each.brokers) for each in self.failures)
        if failing:
            return f"at {failing} of {whole}"
        return f"told by {whole}" if self.brokers else "no broker tells"


def store_state(seen: Snapshot) -> StoreState:
    if seen.is_partial and not seen.brokers:
        return StoreState(False, [], [], [])
    told = {number: each.figures for number, each in seen.brokers.items()}
    by_reason: dict[str, list[int]] = {}
    for number, figures in told.items():
        if figures.get(TIER_FAILURE):
            by_reason.setdefault(figures[TIER_FAILURE], []).append(number)
    return StoreState(
        True,
        [number for number, figures in told.items() if TIER_FAILURE in figures],
        [StoreFailure(reason, brokers) for reason, brokers in by_reason.items()],
        _silences(seen),
    )


def _silences(seen: Snapshot) -> list[Silence]:
    """Those that do not answer, whatever they lead, and those of whose topics something is not known."""
    reasons = {**seen.untold_tiers, **seen.silent}
    if isinstance(seen.health, Health):
        for number, each in seen.health.brokers.items():
            if not each.answers:
                reasons.setdefault(number, "it does not answer")
    return [Silence(number, reason) for number, reason in sorted(reasons.items())]
