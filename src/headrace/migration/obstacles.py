"""What a survey means: what forbids a migration, and what one should know before it begins. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from headrace.client.links import SourceTopic
from headrace.migration.survey import Survey, SurveyedGroup, SurveyedTopic
from headrace.security.acl import AclRule, ResourceType
from headrace.security.acl_rule_scope import covers_name

FIRST_FETCH: Final = 13
"""The first with topic ids."""
TIERED: Final = "remote.storage.enable"
_STREAMS: Final = re.compile(r"(?P<application>.+)-.+-(changelog|repartition|subscription-.+-topic)")
_OPEN: Final = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")
_MEMBERLESS: Final = ("Empty", "Dead", "")


class Finding(NamedTuple):
    forbids: bool
    subject: str
    text: str
    todo: str = ""


def judge(survey: Survey) -> list[Finding]:
    """What forbids it comes first."""
    findings = [
        *_clusters(survey),
        *_patterns(survey),
        *(finding for topic in survey.topics for finding in _topic(topic)),
        *_streams(survey),
        *(finding for group in survey.groups for finding in _group(group)),
        *_transactions(survey),
        *_rules(survey),
        *_space(survey),
    ]
    return sorted(findings, key=lambda finding: not finding.forbids)


def _clusters(survey: Survey) -> Iterator[Finding]:
    if survey.source_cluster_id == survey.target_cluster_id:
        yield Finding(
            True,
            "clusters",
            f"source and target are the same cluster, {survey.source_cluster_id}",
            "--from names the source, --bootstrap the target",
        )
    if survey.fetch_version < FIRST_FETCH:
        yield Finding(
            True,
            "clusters",
            f"the source has Fetch up to version {survey.fetch_version}, links need {FIRST_FETCH}",
            "bring the source to Apache Kafka 3.1 or later first",
        )


def _patterns(survey: Survey) -> Iterator[Finding]:
    for name in survey.unmatched:
        yield Finding(True, "topics", f"the source has no topic that {name!r} matches")
    if not survey.topics and not survey.unmatched:
        yield Finding(True, "topics", "there is nothing to migrate", "name other topics")
    for name in survey.internal:
        yield Finding(False, f"topic {name}", "it belongs to the brokers, and is not copied")


def _topic(topic: SurveyedTopic) -> Iterator[Finding]:
    subject = f"topic {topic.source.name}"
    if topic.taken is not None:
        yield Finding(
            True,
            subject,
            f"it cannot be made at the target: {topic.taken}",
            "delete or rename what is there, or leave the topic out",
        )
    if TIERED in topic.source.left_out:
        yield Finding(
            False,
            subject,
            "it is tiered: everything that consumers can read is copied to the target's disks, and the"
            " estimate has only what is on the source's",
        )
    carried_not = [name for name in topic.source.left_out if name != TIERED]
    if carried_not:
        yield Finding(
            False, subject, f"not carried, because Headrace has no such setting: {_list(carried_not)}"
        )
    if topic.source.of_its_brokers:
        yield Finding(
            False,
            subject,
            "not carried, because it is about the brokers that hold the topic:"
            f" {_list(topic.source.of_its_brokers)}",
            f"`headrace config set --topic {topic.source.name} NAME=VALUE` after `migrate link`",
        )


def _streams(survey: Survey) -> Iterator[Finding]:
    """Its state lives in topics of its own, which are of no use without each other and the group."""
    chosen = {topic.source.name for topic in survey.topics}
    left = [name for name in survey.others if _STREAMS.fullmatch(name)]
    for name in sorted(chosen):
        match = _STREAMS.fullmatch(name)
        if match is None:
            continue
        application = match["application"]
        yield Finding(
            False,
            f"topic {name}",
            f"it looks like one of Kafka Streams, of an application whose name begins with {application}",
            "take all topics of the application, stop it before the cutover, start it at the target after",
        )
        for other in left:
            if other.startswith(f"{application}-"):
                yield Finding(True, f"topic {other}", f"it belongs with {name} and is left out", "take both")


def _group(group: SurveyedGroup) -> Iterator[Finding]:
    subject = f"group {group.group_id}"
    if group.kind in ("share", "streams"):
        yield Finding(False, subject, f"{group.kind} groups are not carried: Headrace has none")
        return
    if group.state_here is not None and group.state_here not in _MEMBERLESS:
        yield Finding(
            False,
            subject,
            f"it has members at the target ({group.state_here}): its offsets are not written there",
            "stop them until the cutover is over",
        )
    elif group.state_here is not None:
        yield Finding(
            False, subject, "it is there at the target too: its offsets of these topics are replaced"
        )


def _transactions(survey: Survey) -> Iterator[Finding]:
    if survey.transactions:
        still = [each.transactional_id for each in survey.transactions if each.state in _OPEN]
        yield Finding(
            False,
            "transactions",
            f"{len(survey.transactions)} transactional ids are known at the source, {len(still)} with an open"
            f" transaction{': ' + _list(still) if still else ''}",
            "ids are not carried: producers begin with them at the target. The cutover waits for what is"
            " open, then aborts it at the source",
        )


def _rules(survey: Survey) -> Iterator[Finding]:
    there, here = survey.rules_there, survey.rules_here
    if there.unknown is not None:
        if "no authorizer" not in there.unknown:
            yield Finding(False, "rights", f"the source does not tell its rules: {there.unknown}")
        return
    rules = rules_of(there.rules, [t.source for t in survey.topics], survey.groups)
    if not rules:
        return
    if here.unknown is not None:
        yield Finding(
            False,
            "rights",
            f"{len(rules)} rules of the source are about these topics and groups, and the target takes none:"
            f" {here.unknown}",
            "docs/security.md",
        )
        return
    missing = [rule for rule in rules if rule not in here.rules]
    if missing:
        yield Finding(
            False,
            "rights",
            f"{len(missing)} of {len(rules)} rules about these topics and groups are not there at the target",
            "--rules FILE writes them down, and `headrace acl apply FILE` makes them there; users and their"
            " passwords cannot be read from a cluster: make them with `headrace user create`",
        )


def rules_of(
    rules: Iterable[AclRule], topics: Iterable[SourceTopic], groups: Iterable[SurveyedGroup]
) -> list[AclRule]:
    """Those that are about what is carried, and all about transactional ids: nobody knows whose they are."""
    names = {
        ResourceType.TOPIC: [topic.name for topic in topics],
        ResourceType.GROUP: [group.group_id for group in groups],
    }
    return [
        rule
        for rule in rules
        if rule.resource_type == ResourceType.TRANSACTIONAL_ID
        or any(covers_name(rule, name) for name in names.get(rule.resource_type, ()))
    ]


def _space(survey: Survey) -> Iterator[Finding]:
    needed = sum(topic.bytes for topic in survey.topics) * survey.replicas
    if survey.usable_bytes is not None and needed > survey.usable_bytes:
        yield Finding(
            True,
            "disks",
            f"the copies need {needed / 1e9:,.1f} GB, and the target's directories have"
            f" {survey.usable_bytes / 1e9:,.1f} GB",
            "more disk, fewer topics, or a smaller --replication-factor",
        )


def _list(names: Iterable[str]) -> str:
    every = list(names)
    return ", ".join(every[:10]) + (f" and {len(every) - 10} more" if len(every) > 10 else "")
