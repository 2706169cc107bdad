"""How leaders and replicas lie on the brokers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from headrace.doctor.facts import Facts
from headrace.doctor.model import Check, Finding, Level, known

GROUP: Final = "balance"
MUCH_MORE: Final = 1.3
"""Times the mean."""
SLACK: Final = 2
"""And so many more, so that small clusters are not called uneven."""
MANY_REPLICAS: Final = 10_000
"""On one broker. Campaigns have tried that many; a start and a fail-over take longer with each."""
_REBALANCE: Final = ("headrace cluster rebalance --plan", "headrace cluster rebalance --throttle 50MB")


def _leaders(facts: Facts) -> Iterator[Finding]:
    seen = known(facts.health)
    counts = {number: seen.leaders.get(number, 0) for number in facts.alive}
    if _is_even(counts):
        return
    if seen.not_preferred:
        yield Finding(
            Level.NOTICE,
            "leaders are spread unevenly",
            _told(counts, "partitions led"),
            ["headrace topic elect-leaders"],
            "they come back by themselves within leader.imbalance.check.interval.seconds, unless"
            " auto.leader.rebalance.enable is false",
        )
    else:
        yield Finding(
            Level.WARNING, "leaders are spread unevenly", _told(counts, "partitions led"), _REBALANCE
        )


def _replicas(facts: Facts) -> Iterator[Finding]:
    seen = known(facts.health)
    counts = {number: seen.replicas.get(number, 0) for number in facts.alive}
    if not _is_even(counts):
        yield Finding(Level.WARNING, "replicas are spread unevenly", _told(counts, "replicas"), _REBALANCE)


def _is_even(counts: Mapping[int, int]) -> bool:
    if len(counts) < 2:
        return True
    mean = sum(counts.values()) / len(counts)
    return max(counts.values()) <= MUCH_MORE * mean + SLACK and min(counts.values()) >= mean / 2 - SLACK


def _told(counts: Mapping[int, int], what: str) -> list[str]:
    return [f"broker {number}: {count:,} {what}" for number, count in counts.items()]


def _too_many(facts: Facts) -> Iterator[Finding]:
    counts: dict[int, int] = {}
    for topic in facts.topics:
        for state in topic.partitions:
            for number in state.replicas:
                counts[number] = counts.get(number, 0) + 1
    full = {number: count for number, count in sorted(counts.items()) if count > MANY_REPLICAS}
    if full:
        yield Finding(
            Level.WARNING,
            f"brokers with more than {MANY_REPLICAS:,} replicas",
            _told(full, "replicas"),
            ["headrace cluster rebalance --plan"],
            "add a broker and rebalance, or make topics with fewer partitions",
        )


CHECKS: Final = (
    Check(
        "leaders-uneven",
        GROUP,
        "a broker that leads far more or far fewer partitions than the mean",
        "its core is busy while others rest",
        "`headrace topic elect-leaders`, or `headrace cluster rebalance`",
        _leaders,
    ),
    Check(
        "replicas-uneven",
        GROUP,
        "a broker that holds far more or far fewer replicas than the mean",
        "its disk fills first; a new broker stays empty until something is moved to it",
        "`headrace cluster rebalance --throttle 50MB`",
        _replicas,
    ),
    Check(
        "replicas-many",
        GROUP,
        f"a broker with more than {MANY_REPLICAS:,} replicas",
        "starts, fail-overs and metadata take longer with each",
        "add brokers, then `headrace cluster rebalance`",
        _too_many,
    ),
)
