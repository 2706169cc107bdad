"""Groups: what they are about to lose, where they stand still, whether they rest; and open transactions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from headrace.client.groups import DEAD, EMPTY
from headrace.client.shell_words import command, word
from headrace.core.ids import TopicPartition
from headrace.doctor.facts import HOUR_MS, NEARLY, Ends, Facts, GroupFacts, kept_ms
from headrace.doctor.model import Check, Finding, Level, NotKnown, known

GROUP: Final = "groups"
_AT_REST: Final = ("Stable", EMPTY, DEAD)
_DAY_MS: Final = 86_400_000
_LONGER_SECONDS: Final = 60


def _losing(facts: Facts) -> Iterator[Finding]:
    groups, ends, settings = known(facts.groups), known(facts.ends), known(facts.topic_settings)
    nearly_lost = known(facts.nearly_lost)
    for group in groups.values():
        lost = _removed(group, ends)
        losing = facts.unread(group, nearly_lost)
        topics = sorted({partition.topic for partition in (*lost, *losing)})
        if not topics:
            continue
        missed = sum(lost.values())
        yield Finding(
            Level.SERIOUS,
            f"group {group.group_id} has missed {missed:,} records that retention removed"
            if missed
            else f"group {group.group_id} is about to miss records: retention removes them before it reads",
            [str(partition) for partition in sorted({*lost, *losing})],
            [
                *(
                    f"headrace config set --topic {word(name)} retention.ms={2 * kept}"
                    for name in topics
                    if (kept := kept_ms(settings.get(name, {}))) is not None
                ),
                command("headrace group describe", group.group_id),
            ],
            "the first gives it time, at the cost of disk; then find out why it does not keep up"
            if group.members
            else "it has no members: start its consumers, or delete it if nobody needs it",
        )
    known(facts.last_records)


def _removed(group: GroupFacts, ends: Mapping[TopicPartition, Ends]) -> dict[TopicPartition, int]:
    """How many offsets are gone that the group had not read. A single one may have been the mark at the end
    of a transaction, and nobody can tell any more."""
    return {
        partition: ends[partition].first - offset
        for partition, offset in group.committed.items()
        if partition in ends and ends[partition].first - offset > 1
    }


def _standing_still(facts: Facts) -> Iterator[Finding]:
    groups, hour = known(facts.groups), known(facts.an_hour_ago)
    known(facts.ends)
    for group in groups.values():
        behind = {} if group.subscribes else facts.unread(group, hour)
        if behind:
            yield Finding(
                Level.WARNING,
                f"job {group.group_id} has not committed records that are older than an hour",
                [f"{partition}: {count:,} records" for partition, count in sorted(behind.items())],
                [command("headrace group lag", group.group_id)],
                "look at the job: a lake, a table, a sink or a mirror shows its own `status`",
            )
    known(facts.last_records)


def _abandoned(facts: Facts) -> Iterator[Finding]:
    groups, ends = known(facts.groups), known(facts.ends)
    for group in groups.values():
        if not group.subscribes or group.members or not group.committed:
            continue
        gone = {each.topic for each in group.committed} - {topic.name for topic in facts.topics}
        behind = facts.unread(group, {each: at.end for each, at in ends.items()})
        if not behind and not gone:
            continue
        count = sum(behind.values())
        yield Finding(
            Level.NOTICE,
            f"group {group.group_id} has no members, and {count:,} records to read"
            if behind
            else f"group {group.group_id} has no members, and offsets of topics that are gone",
            sorted({partition.topic for partition in behind} | gone),
            [command("headrace group describe", group.group_id)],
            f"start its consumers; if nobody needs it: `{command('headrace group delete', group.group_id)}`",
        )
    known(facts.last_records)


def _restless(facts: Facts) -> Iterator[Finding]:
    looks = known(facts.looks)
    if len(looks) < 2:
        raise NotKnown("there was no second look")
    first, last = looks[0], looks[-1]
    for name in sorted(first.keys() & last.keys()):
        before, after = first[name], last[name]
        has_changed = before.epoch != after.epoch
        if not has_changed and (before.state in _AT_REST or after.state in _AT_REST):
            continue
        yield Finding(
            Level.WARNING,
            f"group {name} rebalances: {before.state}, and {after.state} {facts.look_seconds:.0f} s later",
            [f"epoch {before.epoch} and {after.epoch}"] if has_changed else (),
            [
                command("headrace group describe", name),
                f"headrace doctor groups-restless --look {_LONGER_SECONDS}",
            ],
            "the second command looks again, for longer; if it goes on: members that come and go, or that"
            " take longer than max.poll.interval.ms",
        )


def _hanging(facts: Facts) -> Iterator[Finding]:
    for entry in known(facts.hanging):
        producer = entry.producer
        place = producer.partition
        yield Finding(
            Level.SERIOUS,
            "a transaction hangs: no coordinator will end it",
            [f"{place} from offset {producer.start_offset}"],
            [
                f"headrace txn abort --topic {word(place.topic)} --partition {place.partition}"
                f" --start-offset {producer.start_offset}"
            ],
        )


def _audit_stale(facts: Facts) -> Iterator[Finding]:
    audit = known(facts.audit)
    if audit is None or audit.last_event_ms is None:
        return
    verdict_ms = audit.last_verdict_ms
    if facts.now_ms - audit.last_event_ms > _DAY_MS:
        yield Finding(
            Level.NOTICE,
            "the audit has had no event from a producer for more than a day",
            advice="if producers still write, their reporter does not: see docs/pipeline/audit.md",
        )
    elif verdict_ms is None or audit.last_event_ms - verdict_ms > HOUR_MS:
        said = (
            "none"
            if verdict_ms is None
            else f"the last {(audit.last_event_ms - verdict_ms) / 60_000:,.0f} min older"
        )
        yield Finding(
            Level.WARNING,
            f"the audit counts producers' events and gives no verdicts: {said}",
            commands=["headrace audit status"],
            advice="start `headrace audit run` again, or look at its log",
        )


CHECKS: Final = (
    Check(
        "groups-losing-records",
        GROUP,
        f"groups with unread records older than {NEARLY:.0%} of the topic's retention, or removed already",
        "what retention removes before it is read is lost to the group, without an error",
        "a longer `retention.ms`, and a consumer that keeps up",
        _losing,
    ),
    Check(
        "jobs-standing-still",
        GROUP,
        "jobs that commit without being members, such as lakes, tables and sinks that commit to a group, with"
        " unread records older than an hour",
        "what is built from the topic is old, and nobody rebalances a job that has stopped",
        "start the job again; its own `status` says more",
        _standing_still,
    ),
    Check(
        "groups-abandoned",
        GROUP,
        "groups without members that have records to read, or offsets of topics that are gone",
        "a consumer has stopped, or nobody cleaned up",
        "start the consumers, or `headrace group delete GROUP`",
        _abandoned,
    ),
    Check(
        "groups-restless",
        GROUP,
        "groups that are in a rebalance at two looks, or whose epoch has changed between them",
        "while they rebalance they read little or nothing",
        "`headrace group describe GROUP`; `--look 60` to look for longer",
        _restless,
    ),
    Check(
        "transactions-hanging",
        GROUP,
        "open transactions of which no coordinator knows, silent for more than 15 minutes",
        "consumers of committed records stop before them for ever",
        "`headrace txn abort --topic T --partition P --start-offset N`",
        _hanging,
    ),
    Check(
        "audit-stale",
        GROUP,
        "an audit whose verdicts are more than an hour behind its producers' events",
        "nobody would notice a record that is lost in the pipeline",
        "start `headrace audit run` again",
        _audit_stale,
    ),
)
