"""The manifest when a log is opened: read, compared with whose it should be, and made anew from the files."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from headrace.core.ids import TopicPartition
from headrace.core.ports import Disk
from headrace.log import files, leftovers, manifest, side_files, wholeness
from headrace.log.manifest import Contents, Sealed
from headrace.log.segment import Segment


def load(disk: Disk, folder: str, partition: TopicPartition) -> Contents | None:
    """None if it is broken or was never written: then the batches must tell. CorruptLog if it is of another
    log, whose files are probably here too."""
    try:
        known = manifest.load(disk, folder)
    except manifest.CorruptManifest:
        return None
    if known is not None and known.partition != partition:
        raise wholeness.of_another(folder, str(known.partition))
    return known


def finish_emptying(disk: Disk, folder: str) -> None:
    """A truncation was about to drop everything, and said so."""
    for base in leftovers.offsets_of(disk.list(folder), files.LOG):
        for suffix in files.SEGMENT_SUFFIXES:
            leftovers.remove(disk, f"{folder}/{files.numbered(base)}{suffix}")
    disk.sync_dir(folder)


def sealed_of(
    disk: Disk,
    folder: str,
    segments: Sequence[Segment],
    listed: Mapping[int, Sealed],
    start: int,
    made_anew: Collection[int],
) -> tuple[Sealed, ...]:
    """All that the next start is to find: what is listed already, and what was found whole besides.

    `made_anew`: base offsets of segments beside which something was made anew.
    """
    sealed = []
    for place, segment in enumerate(segments[:-1]):
        if not segment.is_vouched:
            break  # the next start is to doubt it too
        base, following, size = segment.base_offset, segments[place + 1].base_offset, segment.size
        known = listed.get(base)
        if known is None or (known.next_offset, known.size) != (following, size):
            known = Sealed(base, following, size, manifest.fingerprint(segment.file(), size))
        if not known.side.is_known or base in made_anew:
            known = known._replace(side=side_files.look(disk, folder, base, following))
        if following > start:
            sealed.append(known)
    return tuple(sealed)
