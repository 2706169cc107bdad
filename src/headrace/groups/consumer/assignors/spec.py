"""What an assignor is given, and what it gives. All of them are plain functions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Set
from typing import NamedTuple
from uuid import UUID

Assignment = Mapping[UUID, Set[int]]


class MemberSpec(NamedTuple):
    instance_id: str | None
    topics: Collection[UUID]
    """Those that it subscribes to and that exist. Each once, in the same order for equal subscriptions."""
    assigned: Assignment
    """What it was meant to have before. May name topics that are gone."""


class GroupSpec(NamedTuple):
    members: Mapping[str, MemberSpec]
    partition_counts: Mapping[UUID, int]
    """Of every topic that any member subscribes to."""

    @property
    def homogeneous(self) -> bool:
        """All members subscribe to the same topics."""
        specs = iter(self.members.values())
        first = next(specs, None)
        return first is None or all(
            spec.topics is first.topics or spec.topics == first.topics for spec in specs
        )


Assignor = Callable[[GroupSpec], dict[str, Assignment]]
"""Gives every partition to exactly one member that subscribes to it. Members without any may be left out."""
