"""The ensemble, as brokers name it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headrace.doctor.facts import Facts, brokers
from headrace.doctor.model import Check, Finding, Level, NotKnown

GROUP: Final = "zookeeper"
_SERVERS: Final = "zookeeper.servers"
_MUCH: Final = 7


def _ensemble(facts: Facts) -> Iterator[Finding]:
    if len(facts.view.brokers) < 2:
        return
    named = {
        number: each.figures[_SERVERS] for number, each in facts.brokers.items() if each.figures.get(_SERVERS)
    }
    ensembles = {frozenset(servers(text)): text for text in named.values()}
    if len(ensembles) > 1:
        yield Finding(
            Level.WARNING,
            "brokers name different servers of ZooKeeper",
            [f"broker {number}: {text}" for number, text in named.items()],
            advice="zookeeper.connect should be the same in every file, with all servers; then"
            " `headrace cluster roll`",
        )
    for members, text in ensembles.items():
        yield from _size(len(members), text, facts.is_local)
    silent = [number for number in facts.alive if number not in named]
    if silent:
        raise NotKnown(f"{brokers(silent)} did not name the servers of ZooKeeper")


def _size(count: int, text: str, is_local: bool) -> Iterator[Finding]:
    if count == 1 and not is_local:
        yield Finding(
            Level.WARNING,
            "one server of ZooKeeper is named, so its loss stops elections and changes",
            [text],
            advice="run three, on hosts of their own; if there are more already, name them all",
        )
    elif count > 1 and count % 2 == 0:
        yield Finding(
            Level.WARNING,
            f"an even number of ZooKeeper servers: {count} survive no more losses than {count - 1}",
            [text],
            advice="add one, or take one away; if there are more already, name them all",
        )
    elif count > _MUCH:
        yield Finding(
            Level.NOTICE,
            f"{count} servers of ZooKeeper: each write waits for more of them",
            [text],
            advice="five survive two losses; make the others observers",
        )


def servers(connect: str) -> list[str]:
    """host:port of each, without the path."""
    return [each.strip() for each in connect.partition("/")[0].split(",") if each.strip()]


CHECKS: Final = (
    Check(
        "zookeeper-ensemble",
        GROUP,
        "one server of ZooKeeper for a cluster, an even number of them, or brokers that name different ones,"
        " as `zookeeper.connect` has them",
        "ZooKeeper needs a majority: four servers survive no more losses than three, one survives none",
        "three or five servers, all of them in `zookeeper.connect` of every broker",
        _ensemble,
    ),
)
