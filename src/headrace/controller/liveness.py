"""Which brokers the controller takes for dead. Pure: time is an argument, and every answer is a proposal.

Three witnesses. The coordination service: a member whose session ended is gone. The network: a broker whose
connection broke and whose port refuses is gone at once. Silence: a broker that has not asked for metadata for
a session timeout does not run, even if a thread of it keeps its session alive.

A wrong suspicion costs an election and never a record, because epochs fence. But when more than a third of
the brokers are suspect at once, it is more likely that the controller is the one who cannot see, and the
sessions decide alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple


class FencedBroker(NamedTuple):
    broker_id: int
    reason: str


class Liveness:
    """Of one term."""

    __slots__ = ("_began", "_calm_since", "_heard", "_local_id", "_members", "_session", "_suspects")

    def __init__(self, local_id: int, session_seconds: float, now: float) -> None:
        self._local_id = local_id
        self._session = session_seconds
        self._began = now
        self._calm_since = now - session_seconds
        """When the coordination service was last known to have come back from an outage."""
        self._heard: dict[int, float] = {}
        self._suspects: dict[int, None] = {}
        self._members: Mapping[int, int] | None = None

    def members(self, epochs: Mapping[int, int]) -> None:
        """Who is registered with the service now: broker ids and their epochs."""
        self._members = dict(epochs)

    def coordination_back(self, now: float) -> None:
        """Sessions may have ended during an outage without a fault of their brokers: give them time."""
        self._calm_since = now

    def heard(self, broker_id: int, now: float) -> None:
        self._heard[broker_id] = now
        self._suspects.pop(broker_id, None)

    def suspect(self, broker_id: int) -> None:
        """Its connection broke, and its port refuses."""
        self._suspects[broker_id] = None

    def is_member(self, broker_id: int, epoch: int) -> bool:
        return self._members is not None and self._members.get(broker_id) == epoch

    def to_fence(self, alive: Collection[int], now: float) -> list[FencedBroker]:
        """Of the brokers that are not fenced, those that should be."""
        to_fence = {}
        if self._members is not None and now - self._calm_since >= self._session:
            for broker_id in alive:
                if broker_id not in self._members:
                    to_fence[broker_id] = "its session has ended"
        doubted = self._doubted(alive, now)
        if len(doubted) * 3 <= len(alive):
            for broker_id, reason in doubted.items():
                to_fence.setdefault(broker_id, reason)
        return [FencedBroker(broker_id, reason) for broker_id, reason in to_fence.items()]

    def _doubted(self, alive: Collection[int], now: float) -> dict[int, str]:
        doubted = {}
        for broker_id in alive:
            if broker_id in self._suspects:
                doubted[broker_id] = "its connection broke and its port refuses"
            elif broker_id != self._local_id and self._is_silent(broker_id, now):
                doubted[broker_id] = f"it has not asked for metadata for {self._session:g} s"
        return doubted

    def _is_silent(self, broker_id: int, now: float) -> bool:
        return now - self._heard.get(broker_id, self._began) > self._session
