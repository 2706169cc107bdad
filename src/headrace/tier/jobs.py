"""What a replica does with the store, one job at a time: made on the loop, run in a thread, told on the loop.

A job keeps what it was made from. It writes only over that very manifest, so that a job that comes late does
nothing: its condition does not hold.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from headrace.core.ports_objects import Done
from headrace.tier.calls import Put, Steps, Summed, reason_of
from headrace.tier.knowledge import Failed, Known, Leadership, Result, Seen, Unsettled
from headrace.tier.local import LocalSegment
from headrace.tier.manifest import Manifest, Origin, first_manifest
from headrace.tier.manifest_format import encode_page, stored
from headrace.tier.names import Folder, ObjectName, TieredPartition
from headrace.tier.safeguards import ALL_ON, TierSafeguards
from headrace.tier.segments import EpochStart, Misfit, RemoteSegment, page_of
from headrace.tier.writing import commit, read, read_page_of, repeat

if TYPE_CHECKING:
    from headrace.tier.forking import Fork


class Job(Protocol):
    def run(self) -> Steps[Result]: ...


@dataclass(frozen=True, slots=True)
class Place:
    """Where the objects of a partition are."""

    folder: Folder
    partition: TieredPartition
    safeguards: TierSafeguards = ALL_ON
    fork: Fork | None = None
    """What the topic was made as a fork of."""


@dataclass(frozen=True, slots=True)
class Basis:
    """What a leader knows when it makes a job that writes."""

    place: Place
    known: Known
    leadership: Leadership
    log_start: int

    def next_manifest(self) -> Manifest:
        """The same as is there, by this leader."""
        epoch, writer = self.leadership
        if self.known.manifest is None:
            return first_manifest(self.place.partition, epoch, writer, self.log_start)
        return self.known.manifest.following(epoch, writer)

    def commit(self, changed: Manifest) -> Steps[Result]:
        return commit(self.place.folder, self.known, changed, self.place.safeguards)


@dataclass(frozen=True, slots=True)
class LoadJob:
    place: Place

    def run(self) -> Steps[Result]:
        return (yield from read(self.place.folder, self.place.partition))


@dataclass(frozen=True, slots=True)
class SettleJob:
    """Rule 9: what became of a write, before anything else is written."""

    place: Place
    pending: Unsettled

    def run(self) -> Steps[Result]:
        return (yield from repeat(self.place.folder, self.pending))


@dataclass(frozen=True, slots=True)
class ClaimJob:
    """Write what is there once more, as this leader: no leader before it can write any more."""

    basis: Basis

    def run(self) -> Steps[Result]:
        return (yield from self.basis.commit(self.basis.next_manifest()))


@dataclass(frozen=True, slots=True)
class UploadJob:
    """Indexes, records, then the manifest that names them. What was stored and is not named is garbage."""

    basis: Basis
    name: ObjectName
    segment: LocalSegment
    epochs: tuple[EpochStart, ...]

    def run(self) -> Steps[Result]:
        place, base = self.basis.place, self.name.base_offset
        indexes = Summed(lambda: self.segment.indexes(base))
        records = Summed(lambda: self.segment.records(base))
        pairs = ((place.folder.indexes(self.name), indexes), (place.folder.records(self.name), records))
        for key, pieces in pairs:
            outcome = yield Put(key, pieces)
            if not isinstance(outcome, Done) and place.safeguards.stored_before_named:
                return Failed(f"{key}: {reason_of(outcome)}")
        uploaded = RemoteSegment(
            self.name,
            self.segment.next_offset,
            records.stored,
            indexes.stored,
            self.segment.max_timestamp,
            self.epochs,
        )
        try:
            changed = self.basis.next_manifest().with_segment(uploaded)
        except Misfit as error:
            return Failed(str(error))
        return (yield from self.basis.commit(changed))


@dataclass(frozen=True, slots=True)
class FoldJob:
    """Move the first segments of the manifest into a page."""

    basis: Basis
    name: ObjectName
    count: int

    def run(self) -> Steps[Result]:
        place, manifest = self.basis.place, self.basis.next_manifest()
        listed: tuple[RemoteSegment, ...] = manifest.segments[: self.count]
        data = encode_page(place.partition, listed)
        key = place.folder.page(self.name)
        outcome = yield Put(key, lambda: (data,))
        if not isinstance(outcome, Done) and place.safeguards.stored_before_named:
            return Failed(f"{key}: {reason_of(outcome)}")
        return (yield from self.basis.commit(manifest.folded(page_of(self.name, listed, stored(data)))))


@dataclass(slots=True)
class PageJob:
    """See what the first page lists: retention may have come to it."""

    basis: Basis
    listed: tuple[ObjectName, tuple[RemoteSegment, ...]] | None = field(default=None, init=False)

    def run(self) -> Steps[Result]:
        place, known = self.basis.place, self.basis.known
        assert known.manifest is not None
        page = known.manifest.pages[0]
        found = yield from read_page_of(place.folder, place.partition, known, page)
        if not isinstance(found, tuple):
            return found
        self.listed = page.name, found
        return Seen(self.basis.known)


@dataclass(frozen=True, slots=True)
class MarkDeletedJob:
    """Rule 16: the manifest of a deleted topic says so before anything of it goes. Where there is none, one
    is made, so that a leader that has not heard of it yet cannot make the first."""

    place: Place
    known: Known
    writer: UUID
    now_ms: int

    def run(self) -> Steps[Result]:
        manifest, writer = self.known.manifest, self.writer
        if manifest is None:
            following = first_manifest(self.place.partition, 0, writer, 0)
            if self.place.fork is not None:  # it may be written down there, and never was made
                following = replace(following, origin=Origin(self.place.fork.origin, 0))
        else:
            following = manifest.following(manifest.epoch, writer)
        marked = replace(following, deleted_ms=self.now_ms)
        return (yield from commit(self.place.folder, self.known, marked, self.place.safeguards))
