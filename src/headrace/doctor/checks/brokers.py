"""Brokers beside each other: settings, versions, clocks, descriptors, and what they say themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headrace.config.health import (
    BUILD,
    DAMAGE,
    DESCRIPTORS_LIMIT,
    DESCRIPTORS_OPEN,
    PROBLEM,
    SCRUB_PROBLEM,
    TIER_PROBLEM,
    VERSION,
)
from headrace.doctor.facts import Facts, brokers
from headrace.doctor.model import Check, Finding, Level, NotKnown, known

GROUP: Final = "brokers"
SKEW_MS: Final = 2000
FEW_LEFT: Final = 0.8
FEWEST_LEFT: Final = 0.95
"""Of all descriptors, that are in use."""

OF_ONE_BROKER: Final = frozenset(
    (
        "advertised.listeners",
        "broker.id",
        "broker.rack",
        "headrace.metrics.listener",
        "host.name",
        "listeners",
        "log.dir",
        "log.dirs",
        "metadata.log.dir",
        "node.id",
        "port",
    )
)
"""Settings that have to differ, or may well."""
_FILES: Final = (".location", ".files", ".file", ".dir", ".path")
"""Ends of settings that name files: each host has its own."""


def _settings(facts: Facts) -> Iterator[Finding]:
    by_broker = known(facts.settings)
    names = {name for settings in by_broker.values() for name in settings}
    for name in sorted(names):
        told = {number: settings.get(name) for number, settings in by_broker.items()}
        if (
            name in OF_ONE_BROKER
            or name.endswith(_FILES)
            or any(each and each.sensitive for each in told.values())
        ):
            continue
        values = {number: None if each is None else each.value for number, each in told.items()}
        if len(set(values.values())) > 1:
            yield Finding(
                Level.WARNING,
                f"brokers differ in {name}",
                [f"broker {number}: {value}" for number, value in values.items()],
                [
                    f"headrace config unset --broker {number} {name}"
                    for number, each in told.items()
                    if each is not None and each.is_dynamic
                ],
                "if it is not meant so: the same value in every file, then `headrace cluster roll`",
            )


def _versions(facts: Facts) -> Iterator[Finding]:
    for figure, what, advice in (
        (VERSION, "versions", "finish the upgrade: `headrace cluster roll` restarts those that remain"),
        (BUILD, "builds", "install the compiled wheel everywhere: a plain build takes half as long again"),
    ):
        told = dict(facts.figures(figure))
        if len(set(told.values())) > 1:
            where = [f"broker {number}: {value}" for number, value in told.items()]
            yield Finding(Level.WARNING, f"brokers of several {what}", where, advice=advice)


def _clocks(facts: Facts) -> Iterator[Finding]:
    ahead = {number: each.least_ms for number, each in facts.clocks.items() if each.least_ms > SKEW_MS}
    behind = {number: each.most_ms for number, each in facts.clocks.items() if each.most_ms < -SKEW_MS}
    wrong = ahead | behind
    if wrong:
        is_ours = len(facts.clocks) > 1 and len(wrong) == len(facts.clocks)
        yield Finding(
            Level.WARNING,
            "clocks that differ from this machine's",
            [
                f"broker {number}: at least {abs(by) / 1000:,.1f} s {'ahead' if by > 0 else 'behind'}"
                for number, by in sorted(wrong.items())
            ],
            ["timedatectl timesync-status"],
            "all of them differ: look at this machine's clock first"
            if is_ours
            else "run it on those hosts; let all of them take their time from the same servers",
        )
    silent = [number for number in facts.alive if number not in facts.clocks]
    if silent:
        raise NotKnown(f"{brokers(silent)} did not tell what time it is")


def _descriptors(facts: Facts) -> Iterator[Finding]:
    limits = dict(facts.figures(DESCRIPTORS_LIMIT))
    for number, told in facts.figures(DESCRIPTORS_OPEN):
        limit = limits[number]
        if not told.isdecimal() or not limit.isdecimal() or int(told) < FEW_LEFT * int(limit):
            continue
        yield Finding(
            Level.SERIOUS if int(told) >= FEWEST_LEFT * int(limit) else Level.WARNING,
            "few descriptors are left",
            [f"broker {number}: {int(told):,} of {int(limit):,} are open"],
            advice="raise LimitNOFILE of its unit, or `ulimit -n`, and restart it; or move replicas away",
        )


def _said(facts: Facts) -> Iterator[Finding]:
    for number, each in facts.brokers.items():
        for name, text in each.figures.items():
            if name.startswith(PROBLEM) and name not in (DAMAGE, SCRUB_PROBLEM, TIER_PROBLEM):
                yield Finding(
                    Level.WARNING,
                    "a broker says of itself",
                    [f"broker {number}: {text}"],
                    ["headrace cluster status"],
                    "the sentence has the next step; the status shows when it is gone",
                )
    _must_tell(facts)


def _scrub(facts: Facts) -> Iterator[Finding]:
    overdue = [
        f"broker {number}: {each.figures[SCRUB_PROBLEM]}"
        for number, each in facts.brokers.items()
        if SCRUB_PROBLEM in each.figures
    ]
    if overdue:
        yield Finding(
            Level.WARNING,
            "the scrub is overdue",
            overdue,
            ["headrace cluster status"],
            "it shows how far each is; the scrub waits while disks or the loop are busy",
        )
    off = [
        f"broker {number}"
        for number, each in facts.brokers.items()
        if each.scrub is not None and each.scrub.percent is None
    ]
    if off:
        yield Finding(
            Level.NOTICE,
            "the scrub is turned off",
            off,
            advice="set headrace.log.scrub.bytes.per.second above 0 in the file of each broker, then"
            " `headrace cluster roll`",
        )
    _must_tell(facts)


def _must_tell(facts: Facts) -> None:
    silent = [number for number, each in facts.brokers.items() if not each.figures]
    if silent:
        raise NotKnown(f"{brokers(silent)} did not tell how they are")


CHECKS: Final = (
    Check(
        "settings-differ",
        GROUP,
        "settings that are not the same on all brokers, without those that name the broker, its addresses"
        " or its files",
        "what a client meets depends on who leads, and a fail-over changes it",
        "the same value in every file, then `headrace cluster roll`",
        _settings,
    ),
    Check(
        "versions-mixed",
        GROUP,
        "brokers of several versions, or compiled beside plain ones",
        "an upgrade that stopped half-way; the slowest broker sets the pace for acks=all",
        "finish the upgrade with `headrace cluster roll`",
        _versions,
    ),
    Check(
        "clocks-differ",
        GROUP,
        f"a clock that is more than {SKEW_MS // 1000} s from this machine's",
        "retention, searches by time and tokens go by clocks",
        "the same time servers for all hosts; `timedatectl timesync-status` shows them",
        _clocks,
    ),
    Check(
        "descriptors-few",
        GROUP,
        f"a broker that has {FEW_LEFT:.0%} of its descriptors open",
        "without descriptors it accepts no connection and opens no segment",
        "a higher `LimitNOFILE`, and a restart",
        _descriptors,
    ),
    Check(
        "told-by-brokers",
        GROUP,
        "what a broker says of itself in words, such as a loop that is late",
        "it knows of trouble that nobody else sees",
        "the sentence says it",
        _said,
    ),
    Check(
        "scrub-overdue",
        GROUP,
        "a scrub that is overdue, or turned off",
        "damage in old segments is found only when somebody reads them",
        "a disk with time for it; `headrace.log.scrub.bytes.per.second` above 0",
        _scrub,
    ),
)
