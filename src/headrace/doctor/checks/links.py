"""Links: whether they still copy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headrace.client.links import ACTIVE
from headrace.client.shell_words import command
from headrace.doctor.facts import Facts
from headrace.doctor.model import Check, Finding, Level, known

GROUP: Final = "links"


def _stopped(facts: Facts) -> Iterator[Finding]:
    for link in known(facts.links):
        stopped = [each for each in link.partitions if each.stopped is not None]
        if link.state == ACTIVE and stopped:
            yield Finding(
                Level.SERIOUS,
                f"the link of {link.topic} has stopped: {stopped[0].stopped}",
                [f"{link.topic}-{each.partition}" for each in stopped],
                [command("headrace link describe", link.topic)],
                f"look at the source; then `{command('headrace link resume', link.topic)}`, or promote it",
            )


def _silent(facts: Facts) -> Iterator[Finding]:
    for link in known(facts.links):
        if link.state == ACTIVE and not link.is_stopped and (link.errors or link.lag < 0):
            yield Finding(
                Level.WARNING,
                f"nobody knows how far the link of {link.topic} is behind"
                + (f": {link.errors[0]}" if link.errors else ""),
                [f"{link.topic}-{each.partition}" for each in link.partitions if each.lag < 0]
                or [link.topic],
                [command("headrace link describe", link.topic)],
                "see whether the source runs, has the topic, and is reached from every broker",
            )


CHECKS: Final = (
    Check(
        "links-stopped",
        GROUP,
        "links with a partition that does not continue what it has copied",
        "the copy is as old as that, and is what one has when the source is lost",
        "`headrace link describe TOPIC` says why; `resume` tries again",
        _stopped,
    ),
    Check(
        "links-silent",
        GROUP,
        "links that do not reach their source, or whose topic it does not have",
        "nothing comes, and nobody knows how much is missing",
        "start the source, or `headrace link alter TOPIC --source HOST:PORT`",
        _silent,
    ),
)
