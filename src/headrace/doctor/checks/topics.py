"""Topics: how many copies, how many of them are asked for, who may lead, who reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from headrace.client.health import MIN_ISR
from headrace.client.shell_words import command, word
from headrace.client.topics import TopicState
from headrace.doctor.facts import Facts, Setting
from headrace.doctor.model import Check, Finding, Level, known

GROUP: Final = "topics"
_USUAL_FACTOR: Final = 3
_UNCLEAN: Final = "unclean.leader.election.enable"
_AUTO_CREATE: Final = "auto.create.topics.enable"


def _single_copies(facts: Facts) -> Iterator[Finding]:
    single = [topic.name for topic in facts.user_topics if topic.replication_factor == 1]
    if not single:
        return
    living = facts.alive
    if len(facts.view.brokers) == 1:
        yield Finding(
            Level.NOTICE,
            "there is one broker, so each topic has one copy",
            advice="to develop with, that is enough; start two more brokers for what must not be lost",
        )
        return
    factor = min(_USUAL_FACTOR, len(living))
    numbers = ",".join(map(str, living))
    yield Finding(
        Level.WARNING,
        "topics with one copy of each record",
        single,
        [
            command(
                "headrace topic reassign", name, options=f"--brokers {numbers} --replication-factor {factor}"
            )
            for name in single
        ]
        if factor > 1
        else [],
        "" if factor > 1 else "start another broker first",
    )


def _no_reserve(facts: Facts) -> Iterator[Finding]:
    settings = known(facts.topic_settings)
    strict = [
        topic
        for topic in facts.topics
        if 1 < topic.replication_factor <= _number(settings.get(topic.name, {}), MIN_ISR)
    ]
    if strict:
        yield Finding(
            Level.WARNING,
            "topics that need all of their replicas for acks=all",
            [topic.name for topic in strict],
            [
                f"headrace config set --topic {word(topic.name)} {MIN_ISR}={topic.replication_factor - 1}"
                for topic in strict
            ],
        )


def _number(settings: Mapping[str, Setting], name: str) -> int:
    found = settings.get(name)
    return int(found.value) if found is not None and found.value else 0


def _unclean_elections(facts: Facts) -> Iterator[Finding]:
    settings = known(facts.topic_settings)
    unclean = {
        name: each[_UNCLEAN]
        for name, each in settings.items()
        if _UNCLEAN in each and each[_UNCLEAN].value == "true"
    }
    own = [name for name, setting in unclean.items() if setting.is_own]
    if own:
        yield Finding(
            Level.WARNING,
            "topics whose acknowledged records an election may drop",
            own,
            [f"headrace config unset --topic {word(name)} {_UNCLEAN}" for name in own],
        )
    by_default = _brokers_that_say_true(facts, _UNCLEAN)
    if by_default:
        yield Finding(
            Level.WARNING,
            "brokers let elections drop acknowledged records, of every topic without a setting of its own",
            [f"broker {number}" for number in by_default],
            [f"headrace config set --broker-default {_UNCLEAN}=false"],
            "a setting of a single broker or of a file goes before or stays below it:"
            " `headrace config list --broker ID --changed` shows both",
        )


def _brokers_that_say_true(facts: Facts, name: str) -> list[int]:
    return [
        number
        for number, each in known(facts.settings).items()
        if name in each and each[name].value == "true"
    ]


def _auto_create(facts: Facts) -> Iterator[Finding]:
    if facts.is_local:
        return
    creating = _brokers_that_say_true(facts, _AUTO_CREATE)
    if creating:
        yield Finding(
            Level.NOTICE,
            "topics are created by whoever asks for one",
            [f"broker {number}" for number in creating],
            advice=f"write {_AUTO_CREATE}=false into the file of each broker, then restart them one after"
            " the other: `headrace cluster roll`",
        )


def _unread(facts: Facts) -> Iterator[Finding]:
    ends = known(facts.ends)
    read = {topic for group in known(facts.groups).values() for topic in group.reads}
    filled = {partition.topic for partition, each in ends.items() if each.end > each.first}
    unread = sorted(topic.name for topic in facts.user_topics if _is_unread(topic, filled, read))
    if unread:
        yield Finding(
            Level.NOTICE,
            "topics with records that no group reads",
            unread,
            advice="who reads without a group is not seen; of one that nobody needs:"
            " `headrace topic delete NAME`",
        )


def _is_unread(topic: TopicState, filled: set[str], read: set[str]) -> bool:
    # What begins so is kept by tools for themselves: connectors, registries, audits.
    return topic.name in filled - read and not topic.name.startswith(("_", "headrace-"))


CHECKS: Final = (
    Check(
        "replication-factor-one",
        GROUP,
        "topics with a single replica; on a cluster of one broker it is said once",
        "with its broker the topic is gone, and each restart stops it",
        "`headrace topic reassign TOPIC --brokers IDS --replication-factor 3`",
        _single_copies,
    ),
    Check(
        "min-isr-without-reserve",
        GROUP,
        "topics with `min.insync.replicas` as large as their replication factor, or larger",
        "one broker that restarts stops every producer with acks=all",
        "`headrace config set --topic TOPIC min.insync.replicas=N` with one less than there are replicas",
        _no_reserve,
    ),
    Check(
        "unclean-elections",
        GROUP,
        "topics or brokers with `unclean.leader.election.enable`",
        "an election may drop records that were acknowledged",
        "`headrace config unset --topic TOPIC unclean.leader.election.enable`",
        _unclean_elections,
    ),
    Check(
        "auto-create",
        GROUP,
        "`auto.create.topics.enable`, where brokers are reached from other machines",
        "a slip of the pen in a client becomes a topic",
        "the setting in the file of each broker, then a rolling restart",
        _auto_create,
    ),
    Check(
        "topics-unread",
        GROUP,
        "topics with records for which no group has a commit or a member",
        "somebody may have forgotten them, or their reader has never started",
        "start the reader, or `headrace topic delete TOPIC`",
        _unread,
    ),
)
