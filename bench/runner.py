"""Runs cases on both sides in turn, warm, and keeps every sample."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from confluent_kafka import KafkaException

from bench.broker import BrokerFailed
from bench.case import Case, Sample, Side
from bench.load_generator import LoadFailed
from bench.quantity import Comparison, Goal, compare
from bench.warm_up import warm_up, warm_up_cluster

FAILURES = (KafkaException, BrokerFailed, LoadFailed, OSError, RuntimeError, subprocess.SubprocessError)


@dataclass(frozen=True)
class CaseResult:
    case: Case
    ours: list[Sample]
    theirs: list[Sample]
    judged: bool = True

    def noise_cores(self) -> list[float]:
        """How many cores other processes used during each run that could tell."""
        return [sample["noise_cores"] for sample in [*self.ours, *self.theirs] if "noise_cores" in sample]

    def comparisons(self) -> list[Comparison]:
        quantities = self.case.quantities
        if not self.judged:
            quantities = tuple(replace(quantity, goal=Goal.NONE) for quantity in quantities)
        return compare(self.case.name, self.case.title, quantities, self.ours, self.theirs)


@dataclass(frozen=True)
class Settings:
    runs: int
    warm_runs: int
    tell: Callable[[str], None]
    # A load too small to warm the JVM must not end in a verdict.
    judged: bool = True


def run_case(case: Case, ours: Side, theirs: Side, settings: Settings) -> CaseResult:
    """Warm both sides with the same load, then measure them in turn, each first every other time."""
    samples: dict[str, list[Sample]] = {ours.name: [], theirs.name: []}
    sides = [ours, theirs]
    for side in sides:
        case.prepare(side)
    for _ in range(settings.warm_runs if case.warmed else 0):
        for side in sides:
            case.run(side)
    for number in range(settings.runs):
        for side in sides if number % 2 == 0 else reversed(sides):
            sample = case.run(side)
            samples[side.name].append(sample)
            settings.tell(f"  run {number + 1}, {side.name}: {describe(case, sample)}")
    return CaseResult(case, samples[ours.name], samples[theirs.name], settings.judged)


def describe(case: Case, sample: Sample) -> str:
    return ", ".join(f"{one.label} {sample[one.key]:.4g} {one.unit}" for one in case.quantities)


def run_all(
    cases: Iterable[Case], ours: Side, theirs: Side, settings: Settings
) -> tuple[list[CaseResult], dict[str, str]]:
    """Run every case; a case that fails is told by name and does not take the others with it."""
    cases = list(cases)
    for clustered in (False, True):
        if settings.warm_runs and any(case.warmed and case.clustered == clustered for case in cases):
            settings.tell("warming both clusters" if clustered else "warming both sides")
            for side in (ours, theirs):
                warm_up_cluster(side) if clustered else warm_up(side)
    results: list[CaseResult] = []
    failures: dict[str, str] = {}
    for case in cases:
        settings.tell(f"{case.name}: {case.title}")
        began = time.monotonic()
        try:
            results.append(run_case(case, ours, theirs, settings))
        except FAILURES as error:
            failures[case.name] = f"{type(error).__name__}: {error}"
            settings.tell(f"  FAILED: {failures[case.name]}")
        for side in (ours, theirs):
            try:
                case.finish(side)
            except FAILURES as error:
                settings.tell(f"  cleaning up {side.name}: {error}")
        settings.tell(f"  took {time.monotonic() - began:.0f} s")
    return results, failures
