"""The object store port: what the rest of the code may do with a bucket, and what can come of it.

A call may fail after it has taken effect, so that an outcome is a type and never an exception: whoever calls
must say what an unknown one means to them. Calls wait, and belong into a thread. Each has a deadline, after
which its outcome is unknown; what was asked for may still take effect then.

Implementations pass one behaviour suite: one in memory, one that is simulated with faults, and obstore's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, NewType, Protocol, runtime_checkable

from headrace.core.ports import Buffer

Tag = NewType("Tag", str)
"""Names one content of an object (its ETag). A store may give equal contents equal tags, so that whoever
compares tags never writes one content twice."""


@dataclass(frozen=True, slots=True)
class Done:
    """It took effect. `tag` names what was written; a deletion has none."""

    tag: Tag | None = None


@dataclass(frozen=True, slots=True)
class LostRace:
    """The condition did not hold: somebody else has written. Nothing was done, by this attempt."""


@dataclass(frozen=True, slots=True)
class OutcomeUnknown:
    """No answer that could be understood. It took effect, or it did not, or it will."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The store says no: rights, a name, a condition that it does not know. Nothing was done, and asking
    again does not help."""

    reason: str


@dataclass(frozen=True, slots=True)
class Found:
    data: bytes
    tag: Tag


@dataclass(frozen=True, slots=True)
class Part:
    """A range of an object; it may be shorter than asked for where the object ends."""

    data: Buffer


@dataclass(frozen=True, slots=True)
class Absent:
    """The store says that there is no such object. That is an answer, and not the lack of one."""


@dataclass(frozen=True, slots=True)
class ObjectEntry:
    key: str
    size: int
    modified_ms: int
    """By the clock of the store."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Keys in order. It may lack what was written a moment ago, and have what was deleted."""

    objects: Sequence[ObjectEntry]


class PartialUpload(NamedTuple):
    """An object that somebody began to write in parts. It is in no listing and cannot be read."""

    key: str
    upload_id: str
    begun_ms: int
    """By the clock of the store."""


PutOutcome = Done | OutcomeUnknown | Refused
ConditionalOutcome = Done | LostRace | OutcomeUnknown | Refused
DeleteOutcome = Done | OutcomeUnknown | Refused
GetOutcome = Found | Absent | OutcomeUnknown | Refused
RangeOutcome = Part | Absent | OutcomeUnknown | Refused
ListOutcome = Listing | OutcomeUnknown | Refused
UploadsOutcome = Sequence[PartialUpload] | OutcomeUnknown | Refused

ABSENT = Absent()


class ObjectStore(Protocol):
    """Keys are paths of a bucket and prefix, with `/` between their parts. An object is written whole or not
    at all, and a read sees one content of it."""

    def get(self, key: str, *, deadline_seconds: float) -> GetOutcome: ...

    def get_range(self, key: str, start: int, length: int, *, deadline_seconds: float) -> RangeOutcome:
        """`length` bytes from `start` on. Refused if the object ends before `start`."""
        ...

    def put(self, key: str, data: Buffer | Iterable[Buffer], *, deadline_seconds: float) -> PutOutcome:
        """Write, whatever is there. Pieces are taken one after the other, so that a file need not be in
        memory; who repeats the call makes them anew."""
        ...

    def put_if(
        self, key: str, data: Buffer, expected: Tag | Absent, *, deadline_seconds: float
    ) -> ConditionalOutcome:
        """Write, if what is there has this tag (If-Match), or if nothing is there (If-None-Match). The store
        compares and writes in one step."""
        ...

    def delete(self, key: str, *, deadline_seconds: float) -> DeleteOutcome:
        """Done as well if there is no such object."""
        ...

    def list(self, prefix: str, *, deadline_seconds: float) -> ListOutcome:
        """All objects below a prefix, which ends with `/` or is empty."""
        ...


@runtime_checkable
class PartialUploads(Protocol):
    """What a store tells beside that which can tell of uploads that nobody has finished."""

    def partial_uploads(self, prefix: str, *, deadline_seconds: float) -> UploadsOutcome: ...

    def abort_upload(self, upload: PartialUpload, *, deadline_seconds: float) -> DeleteOutcome:
        """Its parts go. Done as well if it is no more, or was finished: the object stays then."""
        ...
