"""What a check is and what it finds.

A check is a function over the facts that yields findings. What it does not know it must not pass over:
`known` ends it, and the report says why, beside what was found until then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from headrace.doctor.facts import Facts

T = TypeVar("T")


class Level(StrEnum):
    SERIOUS = "serious"
    """Something does not work now, or is about to be lost."""
    WARNING = "warning"
    """It works, with less safety than one would think."""
    NOTICE = "notice"
    """Worth knowing. It may be meant so."""


class Finding(NamedTuple):
    level: Level
    what: str
    where: Sequence[str] = ()
    """Topics, partitions, groups or brokers that it is about."""
    commands: Sequence[str] = ()
    """What mends it, ready to be typed, one after the other."""
    advice: str = ""
    """What mends it, or what to know before it is mended, in words."""


class Unknown(NamedTuple):
    """Takes the place of a fact."""

    reason: str


class NotKnown(Exception):
    """A check cannot go on."""


def known(fact: T | Unknown) -> T:
    if isinstance(fact, Unknown):
        raise NotKnown(fact.reason)
    return fact


class Check(NamedTuple):
    name: str
    group: str
    finds: str
    why: str
    """Why what it finds matters."""
    mend: str
    """What mends it, for documents; findings have the commands themselves."""
    look: Callable[[Facts], Iterator[Finding]]


class Result(NamedTuple):
    check: Check
    findings: Sequence[Finding]
    unknown: str
    """What kept the check from an answer, or from a whole one; empty where nothing did."""


def examine(facts: Facts, checks: Iterable[Check]) -> list[Result]:
    return [_examine(facts, check) for check in checks]


def _examine(facts: Facts, check: Check) -> Result:
    findings: list[Finding] = []
    try:
        for found in check.look(facts):
            findings.append(found)
    except NotKnown as error:
        return Result(check, findings, str(error))
    return Result(check, findings, "")
