"""History in an object store: whether it gets there and can be read. Brokers without one tell nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from headrace.config.health import (
    TIER_FAILURE,
    TIER_LATE_AFTER_SECONDS,
    TIER_LATE_SECONDS,
    TIER_STOPPED,
)
from headrace.core.store_refusals import cure_of
from headrace.doctor.facts import Facts
from headrace.doctor.model import Check, Finding, Level

GROUP: Final = "tier"
_ON_DISKS: Final = "nothing more goes from the disks, and they fill up"


def _told(facts: Facts, name: str) -> Iterator[tuple[int, str]]:
    """By brokers that have a store."""
    for number, each in facts.brokers.items():
        if each.figures.get(name):
            yield number, each.figures[name]


def _late(facts: Facts) -> Iterator[Finding]:
    late = {
        number: int(seconds)
        for number, seconds in _told(facts, TIER_LATE_SECONDS)
        if seconds.isdecimal() and int(seconds) > TIER_LATE_AFTER_SECONDS
    }
    if late:
        yield Finding(
            Level.WARNING,
            f"sealed segments wait for the object store since {max(late.values()) // 60} minutes",
            [f"broker {number}" for number in late],
            ["headrace tier status"],
            "look at the store and the network, and at remote.log.manager.copy.max.bytes.per.second",
        )


def _unreachable(facts: Facts) -> Iterator[Finding]:
    by_reason: dict[str, list[str]] = {}
    for number, reason in _told(facts, TIER_FAILURE):
        by_reason.setdefault(reason, []).append(f"broker {number}")
    for reason, where in by_reason.items():
        yield Finding(
            Level.SERIOUS,
            f"the object store fails: {reason}",
            where,
            ["headrace tier status"],
            cure_of(reason)
            or "`headrace tier check BUCKET_URL` at that broker says what is wrong with the store, or with"
            " its rights",
        )


def _unreadable(facts: Facts) -> Iterator[Finding]:
    for number, text in _told(facts, TIER_STOPPED):
        stopped = json.loads(text)
        if stopped:
            first = next(iter(stopped))
            yield Finding(
                Level.SERIOUS,
                f"{len(stopped)} partitions of broker {number} neither extend nor shorten their history:"
                f" {stopped[first]}",
                list(stopped),
                ["headrace tier status"],
                "`headrace tier scrub BUCKET_URL` says what is damaged or missing, and what to put back",
            )


CHECKS: Final = (
    Check(
        "tier-store-failing",
        GROUP,
        "brokers whose last call of the object store has failed",
        f"{_ON_DISKS}; what is only in the store cannot be read",
        "`headrace tier check BUCKET_URL` says what is wrong with the store, or with a broker's rights",
        _unreachable,
    ),
    Check(
        "tier-manifest-unreadable",
        GROUP,
        "partitions whose manifest cannot be read, or contradicts the log",
        f"nothing is copied or deleted until somebody looks; {_ON_DISKS}",
        "`headrace tier scrub BUCKET_URL` says what to put back",
        _unreadable,
    ),
    Check(
        "tier-segments-late",
        GROUP,
        "sealed segments that wait for the object store for more than 15 minutes",
        _ON_DISKS,
        "look at the store, the network, and `remote.log.manager.copy.max.bytes.per.second`",
        _late,
    ),
)
