"""A measured quantity, its target, and the verdict over several alternating runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import median


class Goal(Enum):
    """What a target limits."""

    RATIO_AT_MOST = "ratio at most"
    RATIO_AT_LEAST = "ratio at least"
    VALUE_AT_MOST = "at most"
    NONE = "none"


@dataclass(frozen=True)
class Quantity:
    """One number that a case yields on each side."""

    key: str
    label: str
    unit: str
    goal: Goal = Goal.NONE
    target: float = 0.0
    higher_is_better: bool = False

    def describe_target(self) -> str:
        if self.goal is Goal.NONE:
            return ""
        sign = "≥" if self.goal is Goal.RATIO_AT_LEAST else "≤"
        unit = f" {self.unit}" if self.goal is Goal.VALUE_AT_MOST else ""
        return f"{sign} {self.target:g}{unit}"


def cpu_ratio(key: str, unit: str, target: float) -> Quantity:
    return Quantity(key, "broker CPU", unit, Goal.RATIO_AT_MOST, target)


def throughput_ratio(key: str, unit: str, target: float | None = 1.0) -> Quantity:
    goal = Goal.NONE if target is None else Goal.RATIO_AT_LEAST
    return Quantity(key, "throughput", unit, goal, target or 0.0, higher_is_better=True)


@dataclass(frozen=True)
class Comparison:
    """One quantity of one case, both sides, all runs. Run i of one side was next to run i of the other."""

    case: str
    title: str
    quantity: Quantity
    ours: tuple[float, ...]
    theirs: tuple[float, ...]

    @property
    def our_median(self) -> float:
        return median(self.ours)

    @property
    def their_median(self) -> float:
        return median(self.theirs)

    @property
    def ratio(self) -> float:
        return self.our_median / self.their_median if self.their_median else float("nan")

    @property
    def spread(self) -> tuple[float, float]:
        """The smallest and the largest ratio of two neighbouring runs."""
        ratios = [one / other for one, other in zip(self.ours, self.theirs, strict=True) if other]
        return (min(ratios), max(ratios)) if ratios else (float("nan"), float("nan"))

    @property
    def verdict(self) -> str:
        goal, target = self.quantity.goal, self.quantity.target
        if goal is Goal.NONE:
            return ""
        if goal is Goal.VALUE_AT_MOST:
            return "met" if self.our_median <= target else "missed"
        if goal is Goal.RATIO_AT_MOST:
            return "met" if self.ratio <= target else "missed"
        if self.ratio >= target:
            return "met"
        # "As fast as Kafka" can be told no better than the runs agree among themselves.
        return "met within spread" if self.spread[1] >= target else "missed"

    @property
    def change(self) -> str:
        """Better or worse than an earlier build, if every run of one side was better than its neighbour, and
        the median is outside of what the earlier build's runs gave."""
        low, high = self.spread
        if low > 1.0 and self.our_median > max(self.theirs):
            return "better" if self.quantity.higher_is_better else "worse"
        if high < 1.0 and self.our_median < min(self.theirs):
            return "worse" if self.quantity.higher_is_better else "better"
        return "within spread"

    @property
    def relative_target(self) -> float | None:
        """The target as a multiple of Kafka's figure, for the chart."""
        if self.quantity.goal is Goal.NONE:
            return None
        if self.quantity.goal is Goal.VALUE_AT_MOST:
            return self.quantity.target / self.their_median if self.their_median else None
        return self.quantity.target


def compare(
    case: str,
    title: str,
    quantities: Sequence[Quantity],
    ours: Sequence[dict[str, float]],
    theirs: Sequence[dict[str, float]],
) -> list[Comparison]:
    return [
        Comparison(
            case,
            title,
            quantity,
            tuple(sample[quantity.key] for sample in ours),
            tuple(sample[quantity.key] for sample in theirs),
        )
        for quantity in quantities
    ]
