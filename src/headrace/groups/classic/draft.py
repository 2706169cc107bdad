"""A decision while it is being made: several steps of a rebalance add to it."""

from __future__ import annotations

from typing import Any, TypeVar

from headrace.coordinators.decision import CoordinatorRecord, Decision, Parked
from headrace.core.completion import Completion

R = TypeVar("R")


class Draft:
    __slots__ = ("answers", "now_ms", "records")

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.records: list[CoordinatorRecord] = []
        self.answers: list[tuple[Completion[Any], object]] = []

    def decide(self, response: R | Parked) -> Decision[R]:
        return Decision(self.records, response, self.answers)
