"""What a migration has done so far, as its file keeps it: enough for each step to go on after any end.

What is about to be done is written down before it is done, so that whoever comes next finds either nothing
of it, or knows that it may be there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Final

from headrace.client.errors import ClientFailure

VERSION: Final = 1


class Stage(StrEnum):
    """How far the cutover is. From PROMOTING on nothing leads back."""

    NOT_BEGUN = "not begun"
    FENCING = "fencing"
    DRAINING = "draining"
    PROMOTING = "promoting"
    DONE = "done"


@dataclass(slots=True)
class SourceCluster:
    bootstrap: str
    """As the brokers of the target reach it."""
    config: str | None
    """The file of client properties with which the commands connect there."""
    client_config: str | None
    """The name of the file with which the brokers of the target connect there."""
    cluster_id: str


@dataclass(slots=True)
class TargetCluster:
    bootstrap: str
    cluster_id: str


@dataclass(slots=True)
class MigratedTopic:
    topic_id: str
    """At the source, when the plan was made."""
    partitions: int
    bytes: int
    was_made: bool = False
    """This migration has asked for the link; what `--undo` may delete."""


@dataclass(slots=True)
class Proof:
    is_whole: bool
    partitions: int
    records: int
    bytes: int
    differences: int
    at: str


@dataclass(slots=True)
class Cutover:
    stage: Stage = Stage.NOT_BEGUN
    fence: list[list[Any]] = field(default_factory=list)
    """Rules that were, or were about to be, added at the source: what `--undo` takes away."""
    silent_from_ms: int | None = None
    """When the source took its last record, as far as is known. The end of the outage is the promotion."""
    aborted: list[str] = field(default_factory=list)
    """Transactional ids whose open transaction was aborted at the source."""
    ends: dict[str, list[int]] = field(default_factory=dict)
    """Of the source, when the promotion was asked for."""
    report: dict[str, Any] | None = None


@dataclass(slots=True)
class Migration:
    source: SourceCluster
    target: TargetCluster
    topics: dict[str, MigratedTopic]
    group_patterns: list[str]
    replication_factor: int = -1
    throttle: int | None = None
    """Bytes a second; set when the quota at the source is about to be."""
    carries_groups: bool = False
    proof: Proof | None = None
    cutover: Cutover = field(default_factory=Cutover)

    @property
    def is_linked(self) -> bool:
        return all(topic.was_made for topic in self.topics.values())

    @property
    def has_begun(self) -> bool:
        """Whether there is anything of it in either cluster."""
        return (
            any(topic.was_made for topic in self.topics.values())
            or self.throttle is not None
            or self.cutover.stage is not Stage.NOT_BEGUN
        )

    @property
    def is_beyond_return(self) -> bool:
        return self.cutover.stage in (Stage.PROMOTING, Stage.DONE)


def encoded(migration: Migration) -> bytes:
    return (json.dumps({"version": VERSION, **asdict(migration)}, indent=2) + "\n").encode()


def decoded(data: bytes, name: str) -> Migration:
    """Raises ClientFailure where the file is not one of ours."""
    try:
        document = json.loads(data)
        version = document.pop("version")
        if version != VERSION:
            raise ClientFailure(
                f"{name} is of version {version}, this command knows {VERSION}",
                "use the headrace that made it",
            )
        return _migration(document)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ClientFailure(
            f"{name} is no state of a migration: {error}", "`headrace migrate plan` makes one"
        ) from None


def _migration(document: Mapping[str, Any]) -> Migration:
    proof, cutover = document["proof"], document["cutover"]
    return Migration(
        source=SourceCluster(**document["source"]),
        target=TargetCluster(**document["target"]),
        topics={name: MigratedTopic(**topic) for name, topic in document["topics"].items()},
        group_patterns=list(document["group_patterns"]),
        replication_factor=document["replication_factor"],
        throttle=document["throttle"],
        carries_groups=document["carries_groups"],
        proof=None if proof is None else Proof(**proof),
        cutover=Cutover(**{**cutover, "stage": Stage(cutover["stage"])}),
    )
