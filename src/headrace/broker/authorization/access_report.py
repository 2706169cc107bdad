"""The memory of accesses as figures, for whoever asks for `headrace.access`. Long ones are made in slices."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from headrace.broker.runtime.health_report import Figure
from headrace.config.security_report import ACCESS, DENIED, MODE, NO_AUTHORIZER, OVERFLOW, SINCE_MS, USED

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

_MEANS_USED = "a right that a client used"
_MEANS_DENIED = "a right that a client asked for and does not have"


async def tell_access(context: RequestContext) -> list[Figure]:
    security, turns = context.security, context.runtime.turns
    memory, authorizer = security.memory, security.authorizer
    if memory is None or authorizer is None:
        return [_figure(MODE, NO_AUTHORIZER, "everybody may do everything")]
    overflow = memory.used.overflow + memory.denied.overflow
    told = [
        _figure(MODE, authorizer.mode, "whether what is denied is refused, or only noted"),
        _figure(SINCE_MS, str(memory.since_ms), "when the broker began to note accesses"),
        _figure(OVERFLOW, str(overflow), "how often an access was not noted, because there are too many"),
    ]
    for prefix, table, means in ((USED, memory.used, _MEANS_USED), (DENIED, memory.denied, _MEANS_DENIED)):
        for number, (access, seen) in enumerate(table):
            if turns.is_over:
                await turns.next()
            row = (
                access.principal,
                access.operation.name,
                access.resource_type.name,
                access.name,
                seen.last_host,
                seen.count,
                seen.first_ms,
                seen.last_ms,
            )
            told.append(_figure(f"{prefix}{number}", json.dumps(row, ensure_ascii=False), means))
    return told


def _figure(name: str, value: str, means: str) -> Figure:
    return Figure(f"{ACCESS}.{name}", value, means)
