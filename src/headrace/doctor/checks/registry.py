"""The one list of checks: those that look at what works now come first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headrace.client.errors import ClientFailure
from headrace.doctor.checks import (
    balance,
    brokers,
    disks,
    groups,
    health,
    links,
    security,
    tier,
    topics,
    zookeeper,
)
from headrace.doctor.model import Check

CHECKS: Final[tuple[Check, ...]] = (
    *health.CHECKS,
    *zookeeper.CHECKS,
    *disks.CHECKS,
    *brokers.CHECKS,
    *topics.CHECKS,
    *links.CHECKS,
    *tier.CHECKS,
    *balance.CHECKS,
    *groups.CHECKS,
    *security.CHECKS,
)


def chosen(names: Iterable[str]) -> list[Check]:
    """Checks by their names or those of their groups; all of them where none is named."""
    wanted = list(names)
    for name in wanted:
        if not any(name in (check.name, check.group) for check in CHECKS):
            raise ClientFailure(f"there is no check {name}", "`headrace doctor check --list` shows them")
    return [each for each in CHECKS if not wanted or each.name in wanted or each.group in wanted]
