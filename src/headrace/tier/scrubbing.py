"""Rule 17: every object that a manifest names is read, and is what was written.

What is found is said together with what to do. An object that a manifest has given up in the meantime is no
finding: retention goes on while somebody looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from crc32c import crc32c

from headrace.core.ports_objects import Absent, Found, ObjectEntry, OutcomeUnknown, Part
from headrace.tier import index_object
from headrace.tier.calls import Get, GetRange, Outcome, Steps, reason_of
from headrace.tier.knowledge import Failed, Known, Overtaken, Seen, Unusable
from headrace.tier.manifest import Manifest
from headrace.tier.names import Folder, ObjectName, TieredPartition
from headrace.tier.segments import Misfit, PageRef, RemoteSegment, Stored, check_order
from headrace.tier.writing import read, read_page_of

RANGE_BYTES: Final = 4 * 1024 * 1024
ATTEMPTS: Final = 3

DAMAGED: Final = "damaged"
MISSING: Final = "missing"
UNREAD: Final = "unread"

_AGAIN: Final = "the store gave no answer that helps: scrub again"
_MANIFEST: Final = (
    "put the manifest back from the bucket's versions or from a copy; the partition copies and deletes"
    " nothing until then"
)
_PAGE: Final = (
    "put it back from the bucket's versions or from a copy; what it lists cannot be read until then"
)


class Finding(NamedTuple):
    key: str
    kind: str
    problem: str
    next_step: str


@dataclass(slots=True)
class Scrubbed:
    """What is known of one partition."""

    start: int = 0
    end: int = 0
    segments: int = 0
    size: int = 0
    """Bytes that were read and are what was written."""
    is_deleted: bool = False
    findings: list[Finding] = field(default_factory=list)
    orphans: int = 0
    """Objects that no manifest names: garbage, or on their way."""
    orphan_bytes: int = 0

    @property
    def is_whole(self) -> bool:
        return not self.findings


def _nothing(*_: object) -> None:
    """Nobody is told."""


@dataclass(frozen=True, slots=True)
class Scrub:
    """One partition. What ends at `verified_to` or before was verified by the run that this one goes on from,
    and `before` is what that run found."""

    folder: Folder
    partition: TieredPartition
    listed: Sequence[ObjectEntry]
    """Of its folder, from before the manifest was read."""
    verified_to: int = 0
    before: Scrubbed = field(default_factory=Scrubbed)
    on_read: Callable[[int], None] = _nothing
    """Told how many bytes were read."""
    on_verified: Callable[[Scrubbed, int], None] = _nothing
    """Told what is known so far, and up to where nothing need be read again."""

    def run(self) -> Steps[Scrubbed]:
        before = self.before
        scrubbed = Scrubbed(segments=before.segments, size=before.size, findings=list(before.findings))
        found = yield from read(self.folder, self.partition)
        if not isinstance(found, Seen):
            kind = UNREAD if isinstance(found, Failed) else DAMAGED
            next_step = _AGAIN if isinstance(found, Failed) else _MANIFEST
            scrubbed.findings.append(Finding(self.folder.manifest, kind, found.reason, next_step))
            return scrubbed
        manifest = found.known.manifest
        if manifest is None or manifest.is_deleted:
            scrubbed.is_deleted = manifest is not None
            self._count_orphans(scrubbed, set())
            return scrubbed
        scrubbed.start, scrubbed.end = manifest.start, manifest.next_offset
        of_pages: list[Finding] = []
        segments, pages_known = yield from self._segments(found.known, manifest, of_pages)
        yield from self._verify_all(segments, manifest, scrubbed)
        scrubbed.findings += of_pages
        if pages_known:
            named = {*manifest.named, *(each.name for each in segments)}
            named.update(each.name for each in manifest.removed)
            self._count_orphans(scrubbed, named)
        return scrubbed

    def _verify_all(
        self, segments: Sequence[RemoteSegment], manifest: Manifest, scrubbed: Scrubbed
    ) -> Steps[None]:
        """What could not be read is read again by the run that goes on, and all behind it."""
        sizes = {each.key: each.size for each in self.listed}
        unread: list[Finding] = []
        for each in segments:
            if each.next_offset <= max(self.verified_to, manifest.start):
                continue
            findings = yield from self._verify(manifest.readable(self.folder), each, sizes)
            unread += [one for one in findings if one.kind == UNREAD]
            scrubbed.findings += [one for one in findings if one.kind != UNREAD]
            scrubbed.segments += 1
            if not findings:
                scrubbed.size += each.records.size + each.indexes.size
            if not unread:
                self.on_verified(scrubbed, each.next_offset)
        scrubbed.findings += unread

    def _segments(
        self, known: Known, manifest: Manifest, findings: list[Finding]
    ) -> Steps[tuple[list[RemoteSegment], bool]]:
        """All that it names, as far as its pages can be read, and whether they all can."""
        segments: list[RemoteSegment] = []
        pages_known = True
        for each in manifest.ranges:
            if not isinstance(each, PageRef):
                segments.append(each)
                continue
            listed = yield from read_page_of(self.folder, self.partition, known, each)
            if isinstance(listed, tuple):
                segments += listed
                continue
            pages_known = False
            if isinstance(listed, Overtaken):
                continue  # what it lists is being given up, or is found by the next scrub
            kind = UNREAD if isinstance(listed, Failed) else DAMAGED
            if isinstance(listed, Unusable) and listed.reason.endswith("is missing"):
                kind = MISSING
            next_step = _AGAIN if kind == UNREAD else _PAGE
            findings.append(Finding(self.folder.page(each.name), kind, listed.reason, next_step))
        try:
            if pages_known:
                check_order(segments)
        except Misfit as error:
            findings.append(Finding(self.folder.manifest, DAMAGED, str(error), _MANIFEST))
        return segments, pages_known

    # --- one segment -----------------------------------------------------------------------------------

    def _verify(
        self, folder: Folder, segment: RemoteSegment, sizes: Mapping[str, int]
    ) -> Steps[list[Finding]]:
        findings = []
        records, indexes = folder.records(segment.name), folder.indexes(segment.name)
        for key, reading in (
            (records, self._records(records, segment.records, sizes)),
            (indexes, self._indexes(indexes, segment.indexes, segment.base_offset)),
        ):
            kind, problem = yield from reading
            if kind:
                findings.append(Finding(key, kind, problem, _next_step(kind, segment)))
        if findings:
            now = yield from read(self.folder, self.partition)
            if isinstance(now, Seen) and _is_given_up(now.known.manifest, segment):
                return []
        return findings

    def _records(self, key: str, stored: Stored, sizes: Mapping[str, int]) -> Steps[tuple[str, str]]:
        listed = sizes.get(key, stored.size)
        if listed != stored.size:
            return DAMAGED, f"it has {listed} bytes, {stored.size} were written"
        position = checksum = 0
        while position < stored.size:
            wanted = min(RANGE_BYTES, stored.size - position)
            # Of what lies in the folder of its origin, a fork may name a part.
            is_last = position + wanted == stored.size and key.startswith(self.folder.prefix)
            outcome = yield from _patiently(GetRange(key, position, wanted + is_last))
            if isinstance(outcome, Absent):
                return MISSING, "it is named, and is not there"
            if not isinstance(outcome, Part):
                return UNREAD, reason_of(outcome)
            data = memoryview(outcome.data)
            if len(data) != wanted:
                has = f"has {position + len(data)} bytes" if len(data) < wanted else "is longer"
                return DAMAGED, f"it {has}, {stored.size} were written"
            self.on_read(len(data))
            checksum = crc32c(data, checksum)
            position += wanted
        if checksum != stored.crc32c:
            return DAMAGED, f"its crc32c is {checksum:08x}, and {stored.crc32c:08x} was written"
        return "", ""

    def _indexes(self, key: str, stored: Stored, base_offset: int) -> Steps[tuple[str, str]]:
        outcome = yield from _patiently(Get(key))
        if isinstance(outcome, Absent):
            return MISSING, "it is named, and is not there"
        if not isinstance(outcome, Found):
            return UNREAD, reason_of(outcome)
        found = Stored(len(outcome.data), crc32c(outcome.data))
        if found != stored:
            return DAMAGED, f"its {found.size} bytes with crc32c {found.crc32c:08x} are not what was written"
        try:
            index_object.decode(outcome.data, base_offset)
        except index_object.CorruptIndexes as error:
            return DAMAGED, str(error)
        return "", ""

    def _count_orphans(self, scrubbed: Scrubbed, named: set[ObjectName]) -> None:
        orphans = list(unnamed(self.folder, self.listed, named))
        scrubbed.orphans = len(orphans)
        scrubbed.orphan_bytes = sum(each.size for each in orphans)


def unnamed(folder: Folder, listed: Iterable[ObjectEntry], named: set[ObjectName]) -> Iterable[ObjectEntry]:
    """Objects that leaders have written and that are not among these."""
    for each in listed:
        name = folder.name_of(each.key)
        if name is not None and name not in named:
            yield each


def _patiently(call: Get | GetRange) -> Steps[Outcome]:
    """A call that only reads may be made again."""
    outcome: Outcome = OutcomeUnknown("nobody asked")
    for _ in range(ATTEMPTS):
        outcome = yield call
        if not isinstance(outcome, OutcomeUnknown):
            break
    return outcome


def _is_given_up(manifest: Manifest | None, segment: RemoteSegment) -> bool:
    return manifest is None or manifest.is_deleted or segment.next_offset <= manifest.start


def _next_step(kind: str, segment: RemoteSegment) -> str:
    if kind == UNREAD:
        return _AGAIN
    return (
        f"put it back from the bucket's versions or from a copy. Until then offsets {segment.base_offset} to"
        f" {segment.next_offset - 1} are read from brokers that still have them on their disks, and else not"
        f" at all; `headrace topic trim TOPIC --to {segment.next_offset}` gives up all that lies before"
    )
