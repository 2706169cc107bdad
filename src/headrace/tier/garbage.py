"""What may go from a bucket, as somebody sees it who leads no partition: `headrace tier gc`.

Of a topic that is there, rule 8 without its second half: what no manifest names, old enough, and written by a
leader before the one that wrote the manifest. That one has written, so none before it can name anything any
more. What the leader of now has given up it alone knows, and sweeps itself.

Of a topic that is gone, all of it, once its manifest has said for long enough that it was deleted: who reads
it past the brokers has that time to end. Whoever finds that the manifest does not say so makes it say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from headrace.core.ports_objects import Done, ObjectEntry
from headrace.tier.calls import Delete, Steps, reason_of
from headrace.tier.collecting import PurgeJob, named_by
from headrace.tier.fork_register import holds, read_register
from headrace.tier.forking import Fork
from headrace.tier.jobs import MarkDeletedJob, Place
from headrace.tier.knowledge import Failed, Known, Overtaken, Result, Seen, Unusable, Written
from headrace.tier.names import PAGE, RECORDS, TieredPartition
from headrace.tier.scrubbing import unnamed
from headrace.tier.writing import read

_READINGS: Final = 3
"""Of a manifest that somebody writes meanwhile."""


@dataclass(frozen=True, slots=True)
class Remains:
    """Of a topic that is gone."""

    known: Known
    is_due: bool
    """Its manifest has said so for long enough."""
    is_held: bool
    """A fork names some of it. That stays."""

    @property
    def is_marked(self) -> bool:
        return self.known.manifest is not None and self.known.manifest.is_deleted


def find_unnamed(
    place: Place, listed: Sequence[ObjectEntry], newest_ms: int
) -> Steps[list[ObjectEntry] | Failed | Unusable]:
    """Of a topic that is there. `listed` was listed before: what is named since then is in the manifest."""
    for _ in range(_READINGS):
        found = yield from read(place.folder, place.partition)
        if not isinstance(found, Seen):
            return found
        manifest = found.known.manifest
        if manifest is None or manifest.is_deleted:
            return []  # its leader makes the first one, and may name what is there
        named = yield from named_by(place, found.known)
        if isinstance(named, Overtaken):
            continue
        if not isinstance(named, set):
            return named
        return [
            each
            for each in unnamed(place.folder, listed, named)
            if each.modified_ms <= newest_ms and _epoch_of(place, each) < manifest.epoch
        ]
    return Failed("its manifest changes all the time")


def _epoch_of(place: Place, entry: ObjectEntry) -> int:
    name = place.folder.name_of(entry.key)
    assert name is not None
    return name.leader_epoch


def find_remains(
    place: Place, listed: Sequence[ObjectEntry], newest_ms: int
) -> Steps[Remains | Failed | Unusable]:
    found = yield from read(place.folder, place.partition)
    if not isinstance(found, Seen):
        return found
    manifest = found.known.manifest
    written = [each.modified_ms for each in listed if each.key == place.folder.manifest]
    is_old = bool(written) and max(written) <= newest_ms
    kept = yield from holds(place.folder, place.partition)
    if isinstance(kept, Failed):
        return kept
    return Remains(found.known, is_old and manifest is not None and manifest.is_deleted, bool(kept))


def find_unmade_forks(place: Place) -> Steps[list[Place] | Failed]:
    """Forks that are written down here and have no manifest. If their topics are gone, they never get one."""
    found = yield from read_register(place.folder)
    if isinstance(found, Failed):
        return found
    unmade = []
    for each in found[0].forks:
        partition = TieredPartition(each.topic_id, place.partition.partition)
        fork = Fork(place.partition.topic_id, each.until, None)
        theirs = Place(place.folder.sibling(each.topic_id), partition, fork=fork)
        seen = yield from read(theirs.folder, partition)
        if isinstance(seen, Seen) and seen.known.manifest is None:
            unmade.append(theirs)
    return unmade


def mark_deleted(
    place: Place, remains: Remains, writer: UUID, now_ms: int
) -> Steps[Failed | Unusable | None]:
    """From now on nobody adds anything, and the time begins after which it goes."""
    marked = yield from MarkDeletedJob(place, remains.known, writer, now_ms).run()
    return _failure(marked)


def purge(place: Place, remains: Remains) -> Steps[Failed | Unusable | None]:
    """The objects, and then the manifest, when nothing else is listed any more."""
    known = remains.known
    for _ in range(2):
        gone = yield from PurgeJob(place, known, with_manifest=True).run()
        if not isinstance(gone, Seen):
            return _failure(gone)
        if gone.known.manifest is None:
            break
        known = gone.known
    return None


def _failure(result: Result) -> Failed | Unusable | None:
    match result:
        case Written() | Seen():
            return None
        case Failed() | Unusable():
            return result
        case Overtaken():
            return Failed("somebody else has written its manifest meanwhile")
        case unsettled:
            return Failed(unsettled.reason)


def delete(objects: Iterable[ObjectEntry]) -> Steps[Failed | None]:
    """Records first, and pages last."""
    order = sorted(objects, key=lambda each: (each.key.endswith(PAGE), not each.key.endswith(RECORDS)))
    for each in order:
        outcome = yield Delete(each.key)
        if not isinstance(outcome, Done):
            return Failed(f"{each.key}: {reason_of(outcome)}")
    return None
