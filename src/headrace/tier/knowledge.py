"""What a replica knows of the store, and what a job has found out. Not to know is a type, and no number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from headrace.core.ports_objects import Absent, Tag
from headrace.tier.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Unread:
    """This process has not read the manifest. There may be any."""


UNREAD = Unread()


@dataclass(frozen=True, slots=True)
class Known:
    """What this replica has read itself, or written and was told so."""

    manifest: Manifest | None
    """None: the store has said that there is none."""
    tag: Tag | Absent


class Leadership(NamedTuple):
    epoch: int
    writer: UUID
    """Drawn anew for each leadership of each process."""


# --- what comes of a job -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Written:
    """The manifest is this one now."""

    known: Known


@dataclass(frozen=True, slots=True)
class Seen:
    """It was read, and nothing was written, since there was nothing to be written."""

    known: Known


@dataclass(frozen=True, slots=True)
class Overtaken:
    """Somebody else has written. What was to be written is not there, and never will be."""

    known: Known


@dataclass(frozen=True, slots=True)
class Unsettled:
    """A manifest that is there, or is not, or will be."""

    manifest: Manifest
    expected: Tag | Absent
    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """Nothing was written into the manifest. To be tried again."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unusable:
    """What is there is no manifest that this build can read. Trying again does not help."""

    reason: str


Commit = Written | Overtaken | Unsettled | Failed | Unusable
Result = Commit | Seen
