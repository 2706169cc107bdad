"""Who was denied what: a line in the log, a count, and for shadow mode a list of what would break.

Clients decide how often they are denied and by which names, so everything here has a bound. The counts alone
are complete.
"""

from __future__ import annotations

from collections import OrderedDict
from shlex import quote
from typing import TYPE_CHECKING, Final, NamedTuple

from headrace.broker.runtime.peer_log import shortened
from headrace.core.ports import Clock
from headrace.metrics.authorizer import AuthorizerMetrics, By
from headrace.security.acl import Operation, ResourceType

if TYPE_CHECKING:
    from structlog.stdlib import BoundLogger

AGAIN_AFTER_SECONDS: Final = 60.0
MOST_LINES: Final = 100
"""In any minute."""
MOST_SHADOW_DENIALS: Final = 10_000
LONGEST_KEPT_NAME: Final = 256
"""Of a principal or a resource in that list. Topics have no longer ones."""


class Denial(NamedTuple):
    principal: str
    operation: Operation
    resource_type: ResourceType
    name: str


class ShadowDenial:
    __slots__ = ("count", "denial", "first_ms", "last_host", "last_ms")

    def __init__(self, denial: Denial, now_ms: int) -> None:
        self.denial = denial
        self.count = 0
        self.first_ms = self.last_ms = now_ms
        self.last_host = ""


class Denials:
    """`on_denial` and `on_shadow_denial` are for the authorizer (security/rights.py)."""

    def __init__(self, log: BoundLogger, metrics: AuthorizerMetrics, clock: Clock) -> None:
        self._log = log
        self._metrics = metrics
        self._clock = clock
        self._told: OrderedDict[tuple[str, Denial], float] = OrderedDict()
        """When each line of the last minute was written, the oldest first. At most MOST_LINES."""
        self._untold = 0
        """Denials since the last line that have none of their own."""
        self._shadow: dict[Denial, ShadowDenial] = {}
        self.shadow_overflow = 0
        """Denials in shadow mode that are not in the list, because it is full or their names are long."""

    def on_denial(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> None:
        _count(self._metrics.denied, operation, resource_type)
        self._tell("authorization denied", Denial(principal, operation, resource_type, name), host)

    def on_shadow_denial(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> None:
        _count(self._metrics.shadow_denied, operation, resource_type)
        denial = Denial(principal, operation, resource_type, name)
        self._keep(denial, host)
        self._tell("authorization denied in shadow mode", denial, host)

    def shadow_denials(self) -> list[ShadowDenial]:
        """What the rules would have denied since `forget_shadow_denials`, the most frequent first."""
        return sorted(self._shadow.values(), key=lambda each: -each.count)

    def forget_shadow_denials(self) -> None:
        self._shadow.clear()
        self.shadow_overflow = 0

    def _keep(self, denial: Denial, host: str) -> None:
        kept = self._shadow.get(denial)
        now_ms = self._clock.wall_ms()
        if kept is None:
            if len(self._shadow) >= MOST_SHADOW_DENIALS or not _is_short(denial):
                self.shadow_overflow += 1
                return
            kept = self._shadow[denial] = ShadowDenial(denial, now_ms)
        kept.count += 1
        kept.last_ms = now_ms
        kept.last_host = host

    def _tell(self, event: str, denial: Denial, host: str) -> None:
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


def cure(denial: Denial, host: str) -> str:
    """Says how to find out why. Clients choose names: in a shell they must be nothing but words."""
    words = (denial.principal, denial.operation.name, denial.resource_type.name, denial.name)
    command = " ".join(("headrace acl explain", *map(quote, words), "--host", quote(host)))
    return f"`{command}` names the rule that decides, and the one that would allow it"


def _is_short(denial: Denial) -> bool:
    return len(denial.principal) <= LONGEST_KEPT_NAME and len(denial.name) <= LONGEST_KEPT_NAME


def _count(counts: dict[By, int], operation: Operation, resource_type: ResourceType) -> None:
    by = (operation.name, resource_type.name)
    counts[by] = counts.get(by, 0) + 1
