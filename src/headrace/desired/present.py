"""What a cluster has, as far as a file can speak of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from headrace.client.quotas import Entity
from headrace.desired import links
from headrace.desired.schemas import Schema
from headrace.security.acl import AclRule
from headrace.security.scram_credential import ScramMechanism


class PresentTopic(NamedTuple):
    replicas: Mapping[int, tuple[int, ...]]
    """Of each partition; while it moves, those that it moves to."""
    settings: Mapping[str, str]
    """Those that are set for this topic."""
    is_moving: bool = False

    @property
    def factors(self) -> list[int]:
        """How many replicas its partitions have: one number, unless they differ."""
        return sorted({len(each) for each in self.replicas.values()})


class PresentSubject(NamedTuple):
    schema: Schema
    """Of the latest version. Where the file's means the same in another spelling, it is the file's."""
    level: str | None = None
    """Its own."""
    earlier: int | None = None
    """The version that has the file's schema already, if that is not the latest."""


class PresentLink(NamedTuple):
    values: Mapping[str, str]
    """In the words of a file."""
    topic: PresentTopic | None
    """The copy. None: the creation went no further than the link."""

    @property
    def is_promoted(self) -> bool:
        return links.is_promoted(self.values)


@dataclass(frozen=True, slots=True)
class Present:
    racks: Mapping[int, str | None] = field(default_factory=dict)
    """Of the brokers that live."""
    topics: Mapping[str, PresentTopic] = field(default_factory=dict)
    users: Mapping[str, Mapping[ScramMechanism, int]] = field(default_factory=dict)
    acls: frozenset[AclRule] = frozenset()
    quotas: Mapping[Entity, Mapping[str, float]] = field(default_factory=dict)
    subjects: Mapping[str, PresentSubject] = field(default_factory=dict)
    connectors: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The settings of each, without its name."""
    links: Mapping[str, PresentLink] = field(default_factory=dict)
    """Those that the file owns. A copy among them is not among the topics, until it is promoted."""
    unlinked: frozenset[str] = frozenset()
    """Topics under names of links that the file owns: such a name cannot be linked."""

    @property
    def copies(self) -> dict[str, PresentTopic]:
        return {
            name: each.topic
            for name, each in self.links.items()
            if each.topic is not None and not each.is_promoted
        }


class Use(NamedTuple):
    """Why a topic is not simply deleted."""

    records: int
    readers: tuple[str, ...]
    """Groups that have committed offsets of it."""

    def __bool__(self) -> bool:
        return bool(self.records or self.readers)

    def __str__(self) -> str:
        said = (
            [f"has {self.records:,} {'record' if self.records == 1 else 'records'}"] if self.records else []
        )
        if self.readers:
            some = ", ".join(self.readers[:3]) + (" and others" if len(self.readers) > 3 else "")
            said.append(f"is read by {some}")
        return " and ".join(said)
