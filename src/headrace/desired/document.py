"""What a file says a cluster shall have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from headrace.client.quotas import Entity
from headrace.desired.links import Link
from headrace.desired.ownership import Ownership
from headrace.desired.schemas import Schema
from headrace.security.acl import AclRule
from headrace.security.scram_credential import DEFAULT_ITERATIONS, ScramMechanism

DEFAULT_MECHANISMS: Final[Mapping[ScramMechanism, int]] = {ScramMechanism.SHA_512: DEFAULT_ITERATIONS}


class Topic(NamedTuple):
    """Partitions and replicas that are None are left as they are. Settings that are not named are not set."""

    partitions: int | None
    replicas: int | None
    settings: Mapping[str, str]


class PasswordSource(NamedTuple):
    """Where a password is. The file never has it."""

    kind: str
    """env or file"""
    name: str

    def __str__(self) -> str:
        return f"of the environment, {self.name}" if self.kind == "env" else f"of the file {self.name}"


class User(NamedTuple):
    mechanisms: Mapping[ScramMechanism, int]
    """With the iterations of each."""
    password: PasswordSource | None


class Subject(NamedTuple):
    level: str | None
    """Its own compatibility level; None: the registry's."""
    schema: Schema | None
    """What its latest version shall be; None leaves that as it is."""
    file: str | None = None
    """Where the text of the schema is, until `schema_files.py` has read it."""


@dataclass(frozen=True, slots=True)
class Document:
    owns: Ownership
    prune: bool = False
    topics: Mapping[str, Topic] = field(default_factory=dict)
    users: Mapping[str, User] = field(default_factory=dict)
    acls: frozenset[AclRule] = frozenset()
    quotas: Mapping[Entity, Mapping[str, float]] = field(default_factory=dict)
    schemas: Mapping[str, Subject] = field(default_factory=dict)
    """By their subjects."""
    connectors: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The settings of each, without its name."""
    links: Mapping[str, Link] = field(default_factory=dict)
    """By the names of the copies."""
