"""A cluster in memory that carries out plans as brokers do, and can be interrupted after any change."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from headrace.client.quotas import Entity, words_of
from headrace.client.throttles import Move
from headrace.config.secret import Secret
from headrace.core.ids import TopicPartition
from headrace.desired.carrying_out import carry_out
from headrace.desired.changes import (
    ConnectorChange,
    LinkChange,
    LinkCreation,
    QuotaChange,
    SubjectChange,
    TopicChange,
    TopicCreation,
    UserChange,
)
from headrace.desired.links import is_promoted
from headrace.desired.ownership import Ownership
from headrace.desired.plan import Plan
from headrace.desired.present import Present, PresentLink, PresentSubject, PresentTopic
from headrace.security.acl import AclRule
from headrace.security.scram_credential import ScramMechanism

Facts = dict[tuple[str, str, str], str]
"""(kind, name, what) to a value, in the words of plans."""


OF_SOURCES = {"retention.ms": "7", "cleanup.policy": "compact"}
"""What every topic of every source has set."""
PARTITIONS_OF_SOURCES = 2


class Interrupted(Exception):
    pass


class ModelCluster:
    def __init__(self, present: Present) -> None:
        self.racks = dict(present.racks)
        topics = {**present.topics, **present.copies}
        self.replicas = {name: dict(topic.replicas) for name, topic in topics.items()}
        self.settings = {name: dict(topic.settings) for name, topic in topics.items()}
        self.links = {name: dict(link.values) for name, link in present.links.items()}
        self.users: dict[str, dict[ScramMechanism, int]] = {
            name: dict(each) for name, each in present.users.items()
        }
        self.acls = set(present.acls)
        self.quotas: dict[Entity, dict[str, float]] = {
            entity: dict(values) for entity, values in present.quotas.items()
        }
        self.subjects = dict(present.subjects)
        self.connectors = {name: dict(each) for name, each in present.connectors.items()}
        self.left: int | None = None
        """So many changes are made before it is interrupted."""

    def present(self, owns: Ownership) -> Present:
        topics = {
            name: PresentTopic(dict(held), dict(self.settings[name])) for name, held in self.replicas.items()
        }
        links = {
            name: PresentLink(dict(values), topics.get(name))
            for name, values in self.links.items()
            if owns.link(name)
        }
        copies = {name for name, each in links.items() if not each.is_promoted}
        return Present(
            self.racks,
            {name: each for name, each in topics.items() if owns.topic(name) and name not in copies},
            {name: dict(each) for name, each in self.users.items() if owns.user(name)},
            frozenset(rule for rule in self.acls if owns.principal(rule.principal)),
            {entity: dict(values) for entity, values in self.quotas.items() if owns.quota(entity)},
            {name: each for name, each in self.subjects.items() if owns.subject(name)},
            {name: dict(each) for name, each in self.connectors.items() if owns.connector(name)},
            links,
            frozenset(name for name in topics if owns.link(name) and name not in self.links),
        )

    def apply(self, plan: Plan, interrupt_after: int | None = None) -> None:
        self.left = interrupt_after
        passwords = {
            change.name: Secret("p")
            for change in plan.changes
            if isinstance(change, UserChange) and change.password is not None
        }
        try:
            asyncio.run(carry_out(plan, self, passwords))
        finally:
            self.left = None

    def facts(self) -> Facts:
        found: Facts = {}
        for name, held in self.replicas.items():
            factors = sorted({len(each) for each in held.values()})
            found["topic", name, "partitions"] = str(len(held))
            found["topic", name, "replicas"] = " and ".join(map(str, factors))
            found.update({("topic", name, key): value for key, value in self.settings[name].items()})
        for name, link in self.links.items():
            if name in self.replicas:
                found.update({("link", name, what): value for what, value in link.items()})
        for name, mechanisms in self.users.items():
            for mechanism, count in mechanisms.items():
                found["user", name, mechanism.value] = f"{count} iterations"
        found.update({("rule", str(rule), ""): "" for rule in self.acls})
        for entity, values in self.quotas.items():
            for key, value in values.items():
                found["quota", words_of(entity), key] = str(int(value))
        for name, subject in self.subjects.items():
            found["schema", name, "schema"] = str(subject.schema)
            if subject.level is not None:
                found["schema", name, "compatibility"] = subject.level
        for name, settings in self.connectors.items():
            found.update({("connector", name, key): value for key, value in settings.items()})
        return found

    def _tick(self) -> None:
        if self.left is not None:
            if self.left == 0:
                raise Interrupted
            self.left -= 1

    # --- what a plan asks for ---------------------------------------------------------------------------

    async def create_topics(self, topics: Sequence[TopicCreation]) -> None:
        brokers = sorted(self.racks)
        for topic in topics:
            self._tick()
            assert topic.name not in self.replicas
            factor = topic.replicas or 1
            assert factor <= len(brokers)
            self.replicas[topic.name] = {
                index: tuple(brokers[(index + step) % len(brokers)] for step in range(factor))
                for index in range(topic.partitions or 1)
            }
            self.settings[topic.name] = dict(topic.settings)

    async def change_settings(self, topics: Sequence[TopicChange]) -> None:
        for topic in topics:
            self._tick()
            _change(self.settings[topic.name], topic.new_settings)

    async def move_replicas(self, moves: Mapping[TopicPartition, Move]) -> None:
        for partition, move in moves.items():
            self._tick()
            assert self.replicas[partition.topic][partition.partition] == tuple(move.before)
            assert set(move.after) <= set(self.racks)
            self.replicas[partition.topic][partition.partition] = tuple(move.after)

    async def add_partitions(self, totals: Mapping[str, int]) -> None:
        for name, total in totals.items():
            self._tick()
            held = self.replicas[name]
            assert total > len(held)
            brokers = sorted(self.racks)
            for index in range(len(held), total):
                held[index] = tuple(brokers[: len(held[0])])

    async def delete_topics(self, names: Sequence[str]) -> None:
        for name in names:
            self._tick()
            del self.replicas[name], self.settings[name]
            self.links.pop(name, None)

    async def create_link(self, creation: LinkCreation) -> None:
        """The link, its topic and its state, one after the other."""
        name, link = creation.name, creation.link
        assert name not in self.replicas
        self._tick()
        self.links[name] = {**link.values, "state": "ACTIVE"}
        self._tick()
        brokers = sorted(self.racks)
        self.replicas[name] = dict.fromkeys(
            range(PARTITIONS_OF_SOURCES), tuple(brokers[: link.replicas or 1])
        )
        self.settings[name] = {**OF_SOURCES, **link.settings}
        if link.state == "PAUSED":
            self._tick()
            self.links[name]["state"] = "PAUSED"

    async def change_link(self, change: LinkChange) -> None:
        self._tick()
        assert not is_promoted(self.links[change.name])
        _change(self.links[change.name], {what: new for what, (_, new) in change.values.items()})

    async def delete_link(self, name: str) -> None:
        self._tick()
        assert not is_promoted(self.links[name])
        del self.links[name]
        self.replicas.pop(name, None)
        self.settings.pop(name, None)

    async def change_user(self, change: UserChange, password: Secret | None) -> None:
        assert (password is None) == all(new is None for _, new in change.mechanisms.values())
        for mechanism, (_, new) in change.mechanisms.items():
            self._tick()
            _change(self.users.setdefault(change.name, {}), {mechanism: new})
            if not self.users[change.name]:
                del self.users[change.name]

    async def add_rules(self, rules: Sequence[AclRule]) -> None:
        for rule in rules:
            self._tick()
            self.acls.add(rule)

    async def remove_rules(self, rules: Sequence[AclRule]) -> None:
        for rule in rules:
            self._tick()
            self.acls.remove(rule)

    async def change_quota(self, change: QuotaChange) -> None:
        self._tick()
        _change(self.quotas.setdefault(change.entity, {}), change.new_values)
        if not self.quotas[change.entity]:
            del self.quotas[change.entity]

    async def change_subject(self, change: SubjectChange) -> None:
        """In two requests, as a registry is asked."""
        there = self.subjects.get(change.name)
        if change.level is not None and there is not None:
            self._tick()
            there = self.subjects[change.name] = there._replace(level=change.level[1])
        if change.schema is not None and change.schema[1] is not None:
            self._tick()
            level = change.level[1] if there is None and change.level is not None else None
            there = PresentSubject(change.schema[1], level if there is None else there.level)
            self.subjects[change.name] = there

    async def delete_subject(self, name: str) -> None:
        self._tick()
        del self.subjects[name]

    async def put_connector(self, change: ConnectorChange) -> None:
        self._tick()
        self.connectors[change.name] = dict(change.settings)

    async def delete_connector(self, name: str) -> None:
        self._tick()
        del self.connectors[name]


def _change(values: dict[Any, Any], changes: Mapping[Any, Any]) -> None:
    for key, value in changes.items():
        if value is None:
            values.pop(key, None)
        else:
            values[key] = value
