"""How a producer is audited."""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import dataclass, field
from pathlib import Path

from headrace.audit.event import DEFAULT_TOPIC


def _program() -> str:
    return Path(sys.argv[0]).stem or "python" if sys.argv else "python"


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """`producer` names the application's role, the same at every start; `server` where it runs.

    Processes that run beside each other may share both. A name that changes with every start would leave the
    windows of one that was killed incomplete for ever, since nobody could tell that it was followed by
    another.
    """

    producer: str = field(default_factory=lambda: os.environ.get("HEADRACE_AUDIT_PRODUCER") or _program())
    server: str = field(default_factory=socket.gethostname)
    topic: str = DEFAULT_TOPIC
    window_seconds: float = 60.0
    report_seconds: float = 5.0
    #: How long closing may wait until all records are settled, and then until the last event is stored.
    close_seconds: float = 5.0

    def __post_init__(self) -> None:
        if self.window_ms < 1 or self.report_seconds <= 0:
            raise ValueError(
                "an audit needs windows of a millisecond at least, and an interval for its reports"
            )

    @property
    def window_ms(self) -> int:
        return round(self.window_seconds * 1000)
