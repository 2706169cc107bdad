"""Who was denied what: a line in the log, a count, and a place in the memory of accesses.

Clients decide how often they are denied and by which names, so everything here has a bound. The counts alone
are complete.
"""

from __future__ import annotations

from collections import OrderedDict
from shlex import quote
from typing import TYPE_CHECKING, Final

from headrace.broker.authorization.access_memory import AccessMemory
from headrace.broker.runtime.peer_log import shortened
from headrace.core.ports import Clock
from headrace.metrics.authorizer import AuthorizerMetrics, By
from headrace.security.acl import Operation, ResourceType
from headrace.security.acl_usage import Access

if TYPE_CHECKING:
    from structlog.stdlib import BoundLogger

AGAIN_AFTER_SECONDS: Final = 60.0
MOST_LINES: Final = 100
"""In any minute."""


class Denials:
    """`on_denial`, `on_shadow_denial` and `on_use` are for the authorizer (security/rights.py)."""

    def __init__(self, log: BoundLogger, metrics: AuthorizerMetrics, clock: Clock) -> None:
        self._log = log
        self._metrics = metrics
        self._clock = clock
        self._told: OrderedDict[tuple[str, Access], float] = OrderedDict()
        """When each line of the last minute was written, the oldest first. At most MOST_LINES."""
        self._untold = 0
        """Denials since the last line that have none of their own."""
        self.memory = AccessMemory(clock.wall_ms())

    def on_denial(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> None:
        _count(self._metrics.denied, operation, resource_type)
        self._deny("authorization denied", Access(principal, operation, resource_type, name), host)

    def on_shadow_denial(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> None:
        _count(self._metrics.shadow_denied, operation, resource_type)
        denied = Access(principal, operation, resource_type, name)
        self._deny("authorization denied in shadow mode", denied, host)

    def on_use(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> None:
        used = Access(principal, operation, resource_type, name)
        self.memory.used.note(used, host, self._clock.wall_ms())

    def _deny(self, event: str, denied: Access, host: str) -> None:
        self.memory.denied.note(denied, host, self._clock.wall_ms())
        self._tell(event, denied, host)

    def _tell(self, event: str, denial: Access, host: str) -> None:
        now, told = self._clock.monotonic(), self._told
        while told and now - next(iter(told.values())) >= AGAIN_AFTER_SECONDS:
            told.popitem(last=False)
        denial = denial._replace(
            principal=shortened(denial.principal) or "", name=shortened(denial.name) or ""
        )
        if (event, denial) in told or len(told) >= MOST_LINES:
            self._untold += 1
            return
        told[event, denial] = now
        untold, self._untold = self._untold, 0
        self._log.warning(
            event,
            principal=denial.principal,
            host=host,
            operation=denial.operation.name,
            resource_type=denial.resource_type.name,
            resource=denial.name,
            untold=untold,
            cure=cure(denial, host),
        )


def cure(denial: Access, host: str) -> str:
    """Says how to find out why. Clients choose names: in a shell they must be nothing but words."""
    words = (denial.principal, denial.operation.name, denial.resource_type.name, denial.name)
    command = " ".join(("headrace acl explain", *map(quote, words), "--host", quote(host)))
    return f"`{command}` names the rule that decides, and the one that would allow it"


def _count(counts: dict[By, int], operation: Operation, resource_type: ResourceType) -> None:
    by = (operation.name, resource_type.name)
    counts[by] = counts.get(by, 0) + 1
