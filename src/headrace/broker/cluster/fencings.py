"""Why and when this process, as the active controller, has fenced each broker.

The metadata says that a broker is fenced, not why. What is kept here is lost with the process: `cluster
status` asks all brokers, and takes the latest that any of them knows.
"""

from __future__ import annotations

import json

from headrace.broker.runtime.health_report import HealthReport
from headrace.config.health import FENCED


class Fencings:
    """At most one for each broker id."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[int, str]] = {}

    def note(self, broker_id: int, wall_ms: int, reason: str) -> None:
        self._last[broker_id] = (wall_ms, reason)

    def report_to(self, report: HealthReport) -> None:
        report.add(FENCED, self._told, "Brokers that this one, as controller, has fenced: when, and why.")

    def _told(self) -> str | None:
        return json.dumps(self._last) if self._last else None
