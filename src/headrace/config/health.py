"""The name under which a broker tells how it is, by DescribeConfigs.

Whoever asks a Headrace broker for the setting `headrace.health` of itself gets a few figures, each named
`headrace.health.<figure>`. Whoever asks for all settings, or asks another broker, gets none of them.
"""

from __future__ import annotations

from typing import Final

HEALTH: Final = "headrace.health"
VERSION: Final = "version"
BUILD: Final = "build"
"""compiled or plain."""
STARTED_MS: Final = "started.ms"
"""When this process was ready, in milliseconds since 1970: another process has another."""
CLOCK_MS: Final = "clock.ms"
DESCRIPTORS_OPEN: Final = "descriptors.open"
DESCRIPTORS_LIMIT: Final = "descriptors.limit"

PROBLEM: Final = "problem."
"""A figure whose name begins so is a sentence for operators, and told while it holds: `problem.scrub`."""

SCRUB_PROBLEM: Final = f"{PROBLEM}scrub"
DAMAGE: Final = f"{PROBLEM}damage"
"""Ranges of offsets that cannot be read, because they are damaged and no other replica in sync gives them."""

TIER_PROBLEM: Final = f"{PROBLEM}tier"
TIER_LATE_SECONDS: Final = "tier.late.seconds"
"""For how long the oldest sealed segment has waited for the object store; told by brokers that have one."""
TIER_FAILURE: Final = "tier.failure"
"""Why the last call of the object store failed; empty while none fails."""
TIER_STOPPED: Final = "tier.stopped"
"""Partitions whose history is neither extended nor shortened, and why, as JSON: `{"orders-0": "..."}`."""
TIER_LATE_AFTER_SECONDS: Final = 900.0

QUARANTINED: Final = "partitions.quarantined"
"""Replicas that are not served because they are damaged, `orders-0`; those that a restart may open again with
the end of their logs: `orders-0 epoch 3 offset 5500`."""

FENCED: Final = "brokers.fenced"
"""Broker ids, each with milliseconds since 1970 and a reason, as JSON: `{"3": [0, "it was stopped"]}`."""


def growth_of(directory: str) -> str:
    """The figure that says by how many bytes a day the logs in a directory grow."""
    return f"growth.{directory}"


BALANCING: Final = "balancing.decisions"
"""What self-balancing decided last, the newest at the end, as JSON lists: milliseconds since 1970, what was
done, and why."""
