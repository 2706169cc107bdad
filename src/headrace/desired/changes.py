"""The changes of a plan. Each tells old and new value of what it changes, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from headrace.client.quota_values import number_of
from headrace.client.quotas import Entity, words_of
from headrace.client.throttles import Move
from headrace.core.ids import TopicPartition
from headrace.desired.document import PasswordSource
from headrace.desired.links import Link
from headrace.desired.schemas import Schema
from headrace.security.acl import AclRule
from headrace.security.scram_credential import ScramMechanism

UNSET: Final = "(default)"
OF_BROKER: Final = "(the broker's)"
OF_SOURCE: Final = "(the source's)"


class Difference(NamedTuple):
    what: str
    old: str | None
    new: str | None
    """None where there is nothing."""


@dataclass(frozen=True, slots=True)
class TopicCreation:
    name: str
    partitions: int | None
    replicas: int | None
    settings: Mapping[str, str]

    kind = "topic"
    verb = "create"

    @property
    def differences(self) -> list[Difference]:
        counts = {"partitions": self.partitions, "replicas": self.replicas}
        said = [Difference(what, None, str(count or OF_BROKER)) for what, count in counts.items()]
        return said + [Difference(name, None, value) for name, value in sorted(self.settings.items())]


@dataclass(frozen=True, slots=True)
class TopicChange:
    name: str
    partitions: tuple[int, int] | None = None
    """(there are, there shall be)"""
    replicas: tuple[str, int] | None = None
    moves: Mapping[TopicPartition, Move] = field(default_factory=dict)
    settings: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)

    kind = "topic"
    verb = "change"

    @property
    def differences(self) -> list[Difference]:
        said = []
        if self.partitions is not None:
            said.append(Difference("partitions", *map(str, self.partitions)))
        if self.replicas is not None:
            said.append(Difference("replicas", *map(str, self.replicas)))
        return said + [Difference(name, *pair) for name, pair in sorted(self.settings.items())]

    @property
    def new_settings(self) -> dict[str, str | None]:
        return {name: new for name, (_, new) in self.settings.items()}


@dataclass(frozen=True, slots=True)
class TopicDeletion:
    name: str

    kind = "topic"
    verb = "delete"

    @property
    def differences(self) -> list[Difference]:
        return []


@dataclass(frozen=True, slots=True)
class LinkCreation:
    """With its topic, whose partitions and settings come from the source."""

    name: str
    link: Link

    kind = "link"
    verb = "create"

    @property
    def differences(self) -> list[Difference]:
        said = [Difference(what, None, value) for what, value in self.link.values.items()]
        said.append(Difference("partitions", None, OF_SOURCE))
        said.append(Difference("replicas", None, str(self.link.replicas or OF_BROKER)))
        said += [Difference(name, None, value) for name, value in sorted(self.link.settings.items())]
        return [*said, Difference("further settings", None, OF_SOURCE)]


@dataclass(frozen=True, slots=True)
class LinkChange:
    name: str
    values: Mapping[str, tuple[str | None, str | None]]

    kind = "link"
    verb = "change"

    @property
    def differences(self) -> list[Difference]:
        return [Difference(what, *pair) for what, pair in self.values.items()]


@dataclass(frozen=True, slots=True)
class LinkDeletion:
    """With its topic, if there is one."""

    name: str
    has_topic: bool

    kind = "link"
    verb = "delete"
    differences = ()


@dataclass(frozen=True, slots=True)
class UserChange:
    name: str
    verb: str
    mechanisms: Mapping[ScramMechanism, tuple[int | None, int | None]]
    """Iterations of each, before and after."""
    password: PasswordSource | None = None

    kind = "user"

    @property
    def differences(self) -> list[Difference]:
        said = [
            Difference(mechanism.value, _iterations(old), _iterations(new))
            for mechanism, (old, new) in sorted(self.mechanisms.items(), key=lambda each: each[0].value)
            if old != new
        ]
        if self.password is not None:
            said.append(Difference("password", None, str(self.password)))
        return said


@dataclass(frozen=True, slots=True)
class RuleAddition:
    rule: AclRule

    kind = "rule"
    verb = "create"
    differences = ()

    @property
    def name(self) -> str:
        return str(self.rule)


@dataclass(frozen=True, slots=True)
class RuleRemoval:
    rule: AclRule

    kind = "rule"
    verb = "delete"
    differences = ()

    @property
    def name(self) -> str:
        return str(self.rule)


@dataclass(frozen=True, slots=True)
class QuotaChange:
    entity: Entity
    verb: str
    values: Mapping[str, tuple[float | None, float | None]]

    kind = "quota"

    @property
    def name(self) -> str:
        return words_of(self.entity)

    @property
    def differences(self) -> list[Difference]:
        return [Difference(name, *map(_number, pair)) for name, pair in sorted(self.values.items())]

    @property
    def new_values(self) -> dict[str, float | None]:
        return {name: new for name, (_, new) in self.values.items()}


@dataclass(frozen=True, slots=True)
class SubjectChange:
    name: str
    verb: str
    schema: tuple[Schema | None, Schema | None] | None = None
    """Of the latest version, before and after."""
    level: tuple[str | None, str | None] | None = None

    kind = "schema"

    @property
    def differences(self) -> list[Difference]:
        said = []
        if self.schema is not None:
            said.append(Difference("schema", *(None if each is None else str(each) for each in self.schema)))
        if self.level is not None:
            said.append(Difference("compatibility", *self.level))
        return said


@dataclass(frozen=True, slots=True)
class ConnectorChange:
    name: str
    verb: str
    settings: Mapping[str, str]
    """All of them, as they shall be."""
    changed: Mapping[str, tuple[str | None, str | None]]

    kind = "connector"

    @property
    def differences(self) -> list[Difference]:
        return [Difference(name, *pair) for name, pair in sorted(self.changed.items())]


Change = (
    TopicCreation
    | TopicChange
    | TopicDeletion
    | LinkCreation
    | LinkChange
    | LinkDeletion
    | UserChange
    | RuleAddition
    | RuleRemoval
    | QuotaChange
    | SubjectChange
    | ConnectorChange
)


def _iterations(count: int | None) -> str | None:
    return None if count is None else f"{count} iterations"


def _number(value: float | None) -> str | None:
    return None if value is None else str(number_of(value))
