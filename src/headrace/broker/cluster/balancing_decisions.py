"""What self-balancing has decided while this process was the controller: each is an event in the log, and the
latest are told with the health report, for `headrace cluster balance` and `headrace cluster status`.

Lost with the process, as `fencings.py` is.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from headrace.broker.runtime.health_report import HealthReport
from headrace.config.health import BALANCING
from headrace.core.ports import Clock

KEPT: Final = 20

Tell = Callable[..., object]


class BalancingDecisions:
    """The latest of them, and what is in the way now."""

    def __init__(self, clock: Clock, tell: Tell) -> None:
        self._clock = clock
        self._tell = tell
        self._latest: deque[tuple[int, str, str]] = deque(maxlen=KEPT)
        self._idle = ""

    def report_to(self, report: HealthReport) -> None:
        report.add(BALANCING, self._told, "What self-balancing has decided here: when, what, and why.")

    def moved(self, event: str, what: str, why: str, **fields: Any) -> None:
        self._idle = ""
        self._note(event, what, why, **fields)

    def idle(self, why: str) -> None:
        """It does nothing. Said once as long as the reason is the same."""
        if why != self._idle:
            self._idle = why
            self._note("self-balancing does nothing", "nothing", why)

    def forget(self) -> None:
        """It was turned off, or this is not the controller any more."""
        self._idle = ""

    def _note(self, event: str, what: str, why: str, **fields: Any) -> None:
        self._latest.append((self._clock.wall_ms(), what, why))
        self._tell(event, reason=why, **fields)

    def _told(self) -> str | None:
        return json.dumps(list(self._latest)) if self._latest else None
