"""What `headrace doctor security` finds, as checks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from headrace.config.security_findings import Level as Protection
from headrace.config.security_findings import is_expiry
from headrace.doctor.facts import Facts
from headrace.doctor.model import Check, Finding, Level, NotKnown, known
from headrace.doctor.protection import IS_SILENT, Placed

GROUP: Final = "security"
_ALL: Final = "headrace doctor security"
_COMMAND: Final = re.compile(r"headrace acl (?:add|remove) .+$")


def _certificates(facts: Facts) -> Iterator[Finding]:
    for each in known(facts.protection):
        if is_expiry(each.finding):
            yield _found(each, Level.WARNING)
    _must_answer(facts)


def _open(facts: Facts) -> Iterator[Finding]:
    """What is serious, one by one. Advice is said once, and not of a cluster that nobody else reaches."""
    found = [each for each in known(facts.protection) if not is_expiry(each.finding)]
    for each in found:
        if each.finding.level == Protection.SERIOUS and each.finding.text != IS_SILENT:
            yield _found(each, Level.SERIOUS)
    advice = [each for each in found if each.finding.level == Protection.ADVICE]
    if advice and not facts.is_local:
        subjects = sorted({f"{each.where}: {each.finding.subject}" for each in advice})
        yield Finding(Level.NOTICE, "protection that could be better", subjects, [_ALL])
    _must_answer(facts)


def _found(each: Placed, otherwise: Level) -> Finding:
    finding = each.finding
    level = Level.SERIOUS if finding.level == Protection.SERIOUS else otherwise
    command = _COMMAND.search(finding.cure)
    return Finding(
        level,
        f"{finding.subject}: {finding.text}",
        [each.where],
        [command[0]] if command else [],
        finding.cure,
    )


def _must_answer(facts: Facts) -> None:
    silent = [each.where for each in known(facts.protection) if each.finding.text == IS_SILENT]
    if silent:
        raise NotKnown(f"{', '.join(silent)} did not answer")


CHECKS: Final = (
    Check(
        "certificates-ending",
        GROUP,
        "certificates of listeners that have expired or end within 30 days",
        "clients and brokers cannot connect any more when they have",
        "`headrace cert renew NAME`, or whatever made them; brokers take a new one up by themselves",
        _certificates,
    ),
    Check(
        "protection",
        GROUP,
        "what `headrace doctor security` calls serious; its advice is a single notice",
        "somebody may read, change or stop what they should not",
        "each finding names it",
        _open,
    ),
)
