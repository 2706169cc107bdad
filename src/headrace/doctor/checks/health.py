"""What `headrace cluster status` finds, as checks: the same words, with a level and a reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from headrace.client import findings
from headrace.client.health import Health
from headrace.client.shell_words import command
from headrace.doctor.facts import Facts, brokers
from headrace.doctor.model import Check, Finding, Level, NotKnown, known

GROUP: Final = "health"
_TYPED: Final = re.compile(r"`(headrace [^`]+)`|(headrace topic reassign .+)")
_PLACE: Final = re.compile(r"\b[A-Z][A-Z_]+\b")
"""A word in a command that somebody has to fill in."""
_WAIT: Final = "headrace cluster status --wait 600"


def _describe(partitions: str) -> Callable[[Health], list[str]]:
    """The first topic of what is wrong."""

    def commands(seen: Health) -> list[str]:
        places = getattr(seen, partitions)
        return [command("headrace topic describe", places[0].topic)] if places else []

    return commands


def _wait(_seen: Health) -> list[str]:
    return [_WAIT]


def _none(_seen: Health) -> list[str]:
    return []


def _check(
    kind: str,
    level: Level,
    finds: str,
    why: str,
    mend: str,
    commands: Callable[[Health], list[str]] = _none,
    *,
    told: str = "",
) -> Check:
    """`told`: the figure of brokers without which nothing would be found."""

    def look(facts: Facts) -> Iterator[Finding]:
        seen = known(facts.health)
        found = findings.KINDS[kind](seen)
        if found is not None:
            whole = [each for each in _typed(found.do) if not _PLACE.search(each)]
            yield Finding(level, found.headline, found.where, [*whole, *commands(seen)], found.do)
        silent = [number for number, each in facts.brokers.items() if told and not each.figures]
        if silent:
            raise NotKnown(f"{brokers(silent)} did not tell {told}")

    return Check(kind, GROUP, finds, why, mend, look)


def _typed(text: str) -> list[str]:
    return [first or second for first, second in _TYPED.findall(text)]


CHECKS: Final = (
    _check(
        "zookeeper-silent",
        Level.SERIOUS,
        "no broker reaches ZooKeeper",
        "no leader is elected and no topic is changed; a broker that stops now is not replaced",
        "start its servers or mend the way to them; restart no broker",
        told="whether ZooKeeper answers",
    ),
    _check(
        "partitions-offline",
        Level.SERIOUS,
        "partitions without a leader",
        "they can be neither written nor read",
        "start the brokers that hold their replicas; `headrace topic describe` names them",
        _describe("offline"),
    ),
    _check(
        "partitions-under-min-isr",
        Level.SERIOUS,
        "partitions with fewer replicas in sync than `min.insync.replicas`",
        "producers with acks=all are refused",
        "start the brokers that are down, or wait for their replicas to catch up",
        _describe("under_min_isr"),
    ),
    _check(
        "records-unreadable",
        Level.SERIOUS,
        "damaged records of which no replica in sync has a whole copy",
        "readers are refused, and stop before them",
        "bring back a broker that has them whole, restore the files, or give the records up",
        told="what is damaged",
    ),
    _check(
        "zookeeper-cut-off",
        Level.SERIOUS,
        "brokers without ZooKeeper while others reach it",
        "they are fenced when their session expires, and their replicas leave the ISR",
        "mend their network before anything is restarted",
        told="whether ZooKeeper answers",
    ),
    _check(
        "brokers-silent",
        Level.SERIOUS,
        "brokers that are registered and do not answer",
        "what they lead is not served until the controller fences them",
        "look at the process and at its log",
    ),
    _check(
        "brokers-down",
        Level.SERIOUS,
        "brokers that are down",
        "their replicas fall behind, and the next failure may take a partition offline",
        "start them, or see their log for why they ended; retire one with `headrace cluster drain`",
    ),
    _check(
        "log-directories-offline",
        Level.SERIOUS,
        "log directories that a broker has given up",
        "the replicas in them are gone until the disk is mended",
        "replace or mend the disk, and restart that broker",
    ),
    _check(
        "partitions-under-replicated",
        Level.WARNING,
        "partitions with replicas out of sync",
        "there are fewer copies than asked for",
        "start the brokers that are down, or wait until they have caught up",
        _wait,
    ),
    _check(
        "partitions-at-min-isr",
        Level.WARNING,
        "partitions that refuse acks=all when one more replica is lost",
        "a restart now would stop producers",
        "restart no broker until all is in sync",
        _wait,
    ),
    _check(
        "files-damaged",
        Level.WARNING,
        "damage that was found and mended, or is about to be",
        "a disk that damages one file damages others",
        "look at the disk: smartctl, dmesg",
        told="what is damaged",
    ),
    _check(
        "internal-topics-thin",
        Level.WARNING,
        "internal topics with fewer replicas than configured",
        "groups and transactions stop with the brokers that hold them",
        "`headrace topic reassign` with the factor that is configured",
    ),
)
