"""The difference between a file and a cluster. Nothing here asks or changes anything.

What the file owns and does not name stays, unless it is pruned. What cannot be done is refused here, all of
it, so that nothing is begun that cannot be ended.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from headrace.client.throttles import Move
from headrace.controller.topic_spreading import spread_topic
from headrace.core.ids import TopicPartition
from headrace.desired.changes import (
    Change,
    LinkDeletion,
    QuotaChange,
    RuleAddition,
    RuleRemoval,
    TopicChange,
    TopicCreation,
    TopicDeletion,
    UserChange,
)
from headrace.desired.document import Document, Topic
from headrace.desired.link_plan import link_changes, unnamed_links, with_copies
from headrace.desired.present import Present, PresentTopic
from headrace.desired.service_plan import (
    connector_changes,
    subject_changes,
    unnamed_connectors,
    unnamed_subjects,
)
from headrace.desired.settings import are_equal

K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Plan:
    changes: tuple[Change, ...]
    refused: tuple[str, ...] = ()
    """Why the file cannot be applied, in sentences."""
    stays: tuple[str, ...] = ()
    """What the file owns, does not name, and does not delete."""
    moving: tuple[str, ...] = ()
    """Topics whose replicas are where they shall be once moves have ended that somebody began before."""

    @property
    def changes_nothing(self) -> bool:
        return not self.changes and not self.refused

    def refusing(self, refused: Sequence[str]) -> Plan:
        return replace(self, refused=tuple(refused))

    @property
    def deleted_topics(self) -> list[str]:
        """Copies go with their links."""
        return [
            each.name
            for each in self.changes
            if isinstance(each, TopicDeletion) or (isinstance(each, LinkDeletion) and each.has_topic)
        ]


@dataclass(slots=True)
class _Draft:
    changes: list[Change] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    stays: list[str] = field(default_factory=list)


def plan(
    document: Document, present: Present, *, prune: bool = False, new_passwords: Collection[str] = ()
) -> Plan:
    """`prune` is the word of the command line: it counts only if the file says it too."""
    draft = _Draft()
    deletes = prune and document.prune
    _links(document, present, deletes, draft)
    _topics(*with_copies(document, present), deletes, draft)
    _users(document, present, deletes, new_passwords, draft)
    _rules(document, present, deletes, draft)
    _quotas(document, present, deletes, draft)
    _services(document, present, deletes, draft)
    moving = [
        name
        for name, topic in sorted({**present.topics, **present.copies}.items())
        if topic.is_moving and (name in document.topics or name in document.links)
    ]
    return Plan(tuple(draft.changes), tuple(draft.refused), tuple(draft.stays), tuple(moving))


# --- links, topics ------------------------------------------------------------------------------------------


def _links(document: Document, present: Present, deletes: bool, draft: _Draft) -> None:
    changes, refused = link_changes(document, present)
    draft.changes += changes
    draft.refused += refused
    gone = unnamed_links(document, present)
    if deletes:
        draft.changes += gone
    else:
        draft.stays.extend(f"link {each.name}" for each in gone)


def _topics(document: Document, present: Present, deletes: bool, draft: _Draft) -> None:
    moves = _moves(document, present)
    for name, wanted in sorted(document.topics.items()):
        there = present.topics.get(name)
        if wanted.replicas is not None and wanted.replicas > len(present.racks):
            alive = len(present.racks)
            if there is None or there.factors != [wanted.replicas]:
                draft.refused.append(
                    f"topic {name}: {wanted.replicas} replicas need as many brokers; {alive} live"
                )
                continue
        if there is None:
            draft.changes.append(TopicCreation(name, *wanted))
            continue
        dead = _dead_brokers(wanted, there, present)
        if dead:
            draft.refused.append(
                f"topic {name}: the number of replicas cannot change while broker {dead[0]} is down, which"
                " holds some: start it, or empty it with `headrace cluster drain`"
            )
            continue
        if wanted.partitions is not None and wanted.partitions < len(there.replicas):
            draft.refused.append(
                f"topic {name} has {len(there.replicas)} partitions and cannot have {wanted.partitions}:"
                " fewer would lose records; make a new topic and copy what shall stay"
            )
            continue
        change = _topic(name, wanted, there, moves.get(name, {}))
        if change is not None:
            draft.changes.append(change)
    for name in sorted(present.topics):
        if name not in document.topics and document.owns.topic(name):
            if deletes:
                draft.changes.append(TopicDeletion(name))
            else:
                draft.stays.append(f"topic {name}")


def _dead_brokers(wanted: Topic, there: PresentTopic, present: Present) -> list[int]:
    """Those that would lose their replicas, if only because they are away just now."""
    if wanted.replicas is None or there.factors == [wanted.replicas]:
        return []
    return sorted({broker for held in there.replicas.values() for broker in held} - set(present.racks))


def _topic(
    name: str, wanted: Topic, there: PresentTopic, moves: Mapping[TopicPartition, Move]
) -> TopicChange | None:
    grown = None
    if wanted.partitions is not None and wanted.partitions > len(there.replicas):
        grown = len(there.replicas), wanted.partitions
    replicas = None
    if wanted.replicas is not None and there.factors != [wanted.replicas]:
        replicas = " and ".join(map(str, there.factors)), wanted.replicas
    settings: dict[str, tuple[str | None, str | None]] = {}
    for setting in {**wanted.settings, **there.settings}:
        old, new = there.settings.get(setting), wanted.settings.get(setting)
        if old is None or new is None or not are_equal(old, new):
            settings[setting] = old, new
    if grown is None and replicas is None and not settings:
        return None
    return TopicChange(name, grown, replicas, moves, settings)


def _moves(document: Document, present: Present) -> dict[str, dict[TopicPartition, Move]]:
    """Of topics whose number of replicas changes. Spread one by one, each would begin at the same broker."""
    by_factor: dict[int, dict[TopicPartition, tuple[int, ...]]] = {}
    for name, wanted in sorted(document.topics.items()):
        there = present.topics.get(name)
        if there is None or wanted.replicas is None or there.factors == [wanted.replicas]:
            continue
        partitions = by_factor.setdefault(wanted.replicas, {})
        partitions.update(
            {TopicPartition(name, index): held for index, held in sorted(there.replicas.items())}
        )
    moves: dict[str, dict[TopicPartition, Move]] = {}
    for factor, before in by_factor.items():
        if factor > len(present.racks):
            continue
        for partition, after in spread_topic(before, present.racks, factor).items():
            if after != before[partition]:
                moves.setdefault(partition.topic, {})[partition] = Move(before[partition], after)
    return moves


# --- users, rules, quotas ----------------------------------------------------------------------------


def _users(
    document: Document, present: Present, deletes: bool, new_passwords: Collection[str], draft: _Draft
) -> None:
    for name in sorted(set(new_passwords) - set(document.users)):
        draft.refused.append(f"user {name} gets no new password: the file does not name it")
    for name, wanted in sorted(document.users.items()):
        there = present.users.get(name, {})
        differing = {
            each: pair
            for each, pair in _pairs(there, wanted.mechanisms)
            if pair[0] != pair[1] or (name in new_passwords and pair[1] is not None)
        }
        if not deletes:
            kept = [each for each, (_, new) in differing.items() if new is None]
            draft.stays.extend(f"{each.value} of user {name}" for each in kept)
            differing = {each: pair for each, pair in differing.items() if each not in kept}
        if not differing:
            continue
        needs_password = any(new is not None for _, new in differing.values())
        if needs_password and wanted.password is None:
            draft.refused.append(
                f"user {name} needs a password for this, and the file does not say where it is:"
                " write `password: {env: NAME}` or `password: {file: PATH}`"
            )
            continue
        verb = "change" if there else "create"
        draft.changes.append(UserChange(name, verb, differing, wanted.password if needs_password else None))
    for name, there in sorted(present.users.items()):
        if name not in document.users and document.owns.user(name):
            if deletes:
                gone = {mechanism: (count, None) for mechanism, count in there.items()}
                draft.changes.append(UserChange(name, "delete", gone))
            else:
                draft.stays.append(f"user {name}")


def _rules(document: Document, present: Present, deletes: bool, draft: _Draft) -> None:
    draft.changes.extend(RuleAddition(rule) for rule in sorted(document.acls - present.acls))
    owned = sorted(rule for rule in present.acls - document.acls if document.owns.principal(rule.principal))
    if deletes:
        draft.changes.extend(RuleRemoval(rule) for rule in owned)
    else:
        draft.stays.extend(f"rule {rule}" for rule in owned)


def _quotas(document: Document, present: Present, deletes: bool, draft: _Draft) -> None:
    """A quota that an entity in the file does not name is taken away, as a setting is."""
    for entity, wanted in sorted(document.quotas.items(), key=lambda each: str(each[0])):
        there = present.quotas.get(entity, {})
        differing = {name: pair for name, pair in _pairs(there, wanted) if pair[0] != pair[1]}
        if differing:
            draft.changes.append(QuotaChange(entity, "change" if there else "create", differing))
    for entity, there in sorted(present.quotas.items(), key=lambda each: str(each[0])):
        if entity not in document.quotas and document.owns.quota(entity):
            change = QuotaChange(entity, "delete", {name: (value, None) for name, value in there.items()})
            if deletes:
                draft.changes.append(change)
            else:
                draft.stays.append(f"quota {change.name}")


def _services(document: Document, present: Present, deletes: bool, draft: _Draft) -> None:
    subjects, refused = subject_changes(document, present)
    connectors, refused_connectors = connector_changes(document, present)
    draft.changes += [*subjects, *connectors]
    draft.refused += [*refused, *refused_connectors]
    unnamed = unnamed_subjects(document, present), unnamed_connectors(document, present)
    for gone in unnamed:
        if deletes:
            draft.changes.extend(gone)
        else:
            draft.stays.extend(f"{each.kind} {each.name}" for each in gone)


V = TypeVar("V")


def _pairs(old: Mapping[K, V], new: Mapping[K, V]) -> Iterator[tuple[K, tuple[V | None, V | None]]]:
    for key in {**old, **new}:
        yield key, (old.get(key), new.get(key))
