"""For which share of the time the event loop has nothing to do: Kafka's idleness of its threads."""

from __future__ import annotations

from collections.abc import Iterator
from math import nan
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

WINDOW_SECONDS: Final = 60.0
_NAMES: Final = (
    "kafka_network_socketserver_networkprocessoravgidlepercent",
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent",
)


class LoopIdleness:
    """Over what came since one to two windows ago, as long as somebody scrapes."""

    def __init__(self) -> None:
        self._old: tuple[float, float] | None = None
        self._young: tuple[float, float] | None = None

    def families(self, now: float, busy_seconds: float | None) -> Iterator[Metric]:
        """`busy_seconds`: processor time of the loop's thread since its start; None where nobody knows."""
        if busy_seconds is None:
            return
        yield CounterMetricFamily(
            "headrace_event_loop_busy_seconds", "Processor time of the event loop.", value=busy_seconds
        )
        if self._young is None or now - self._young[0] >= WINDOW_SECONDS:
            self._old, self._young = self._young or (now, busy_seconds), (now, busy_seconds)
        assert self._old is not None
        since, before = self._old
        # The first scrape has nothing to compare with: Prometheus knows a number for that.
        idle = nan if now <= since else min(1.0, max(0.0, 1.0 - (busy_seconds - before) / (now - since)))
        for name in _NAMES:
            yield GaugeMetricFamily(
                name,
                "Share of the last one to two minutes, from 0 to 1, in which the event loop did not compute.",
                value=idle,
            )
