"""Whether this broker reaches ZooKeeper, asked when somebody wants to know.

The state of the session alone does not tell. A server that hangs is noticed by its missing pings, and those
are not sent while somebody keeps asking, as the controller does. So whoever wants to know has it asked: what
is asked after a server began to hang cannot be answered.
"""

from __future__ import annotations

import asyncio
from typing import Final

from headrace.broker.runtime.health_report import HealthReport
from headrace.config.zookeeper_address import ZooKeeperAddress
from headrace.core.ports_coordination import Coordination, CoordinationUnavailable, SessionState
from headrace.core.tasks import spawn

PROBE_SECONDS: Final = 2.0
"""A healthy ensemble answers within milliseconds. A slow one counts as silent until it is asked again."""
NOTICED_AFTER_SESSIONS: Final = 0.8
"""Pings are a third of a session apart."""
CONSEQUENCE: Final = "no elections, no topic changes; do not restart brokers"


class Reachability:
    def __init__(self, coordination: Coordination, address: ZooKeeperAddress | None) -> None:
        self._coordination = coordination
        self._servers = "" if address is None else address.hosts
        self._asking: asyncio.Task[str | None] | None = None
        self._failure: str | None = None

    @property
    def session(self) -> SessionState:
        return self._coordination.session

    @property
    def silent_seconds(self) -> float:
        return self._coordination.silent_seconds

    @property
    def noticed(self) -> str | None:
        """What is known to be wrong without asking: late, but at once."""
        patience = self._coordination.session_timeout_ms / 1000 * NOTICED_AFTER_SESSIONS
        if self.session is SessionState.CONNECTED and self.silent_seconds < patience:
            return None
        return self._silence()

    def _silence(self) -> str:
        return f"ZooKeeper at {self._servers} has not answered for {self.silent_seconds:.0f} s: {CONSEQUENCE}"

    async def look(self) -> str | None:
        """Ask, and tell what is wrong; None if nothing is. Those who come together share one question."""
        if self._asking is None:
            self._asking = spawn("a probe of ZooKeeper", self._ask(), is_awaited=True)
            self._asking.add_done_callback(self._on_asked)
        self._failure = await asyncio.shield(self._asking)
        return self._failure

    def _on_asked(self, _: asyncio.Task[str | None]) -> None:
        self._asking = None

    async def _ask(self) -> str | None:
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                await self._coordination.probe()
        except TimeoutError:
            return self._silence()
        except CoordinationUnavailable as error:
            return f"{error}: {CONSEQUENCE}"
        return None

    def report_to(self, report: HealthReport) -> None:
        report.look_first(self.look)
        report.add(
            "zookeeper.answers",
            lambda: self._failure is None,
            "Whether ZooKeeper has just answered this broker.",
        )
        report.add("zookeeper.problem", lambda: self._failure, "Why it has not.")
        report.add("zookeeper.session", lambda: self.session.value, "connected, suspended or lost.")
        report.add(
            "zookeeper.silence.seconds",
            lambda: round(self.silent_seconds, 1),
            "Since ZooKeeper was last heard of.",
        )
        report.add("zookeeper.servers", lambda: self._servers, "Where it is, as zookeeper.connect says.")
