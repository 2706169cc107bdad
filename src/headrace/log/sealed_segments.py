"""Whether sealed segments that were synced once are whole, and follow one another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from headrace.core.errors import CorruptLog
from headrace.core.ports import Disk
from headrace.log import files, scan, wholeness
from headrace.log.index_file import WrongIndex
from headrace.log.manifest import Contents, Sealed, fingerprint, with_swap
from headrace.log.segment import MAX_RELATIVE_OFFSET, Segment
from headrace.log.wholeness import FileFault, Wholeness
from headrace.protocol.batch import HEADER_SIZE, read_header


def require_listed(disk: Disk, folder: str, contents: Contents, bases: Sequence[int]) -> dict[int, Sealed]:
    """What the manifest lists is there, in its size, and nothing else in between. Else CorruptLog."""
    for fault in faults_of_listed(disk, folder, contents, bases):
        raise wholeness.changed(fault)
    return listed(disk, folder, contents, bases)


def listed(disk: Disk, folder: str, contents: Contents, bases: Sequence[int]) -> dict[int, Sealed]:
    """With what was announced, if it has taken its place; without what lies before the log start."""
    sealed = contents.sealed
    for swap in contents.announced:
        if swap.base_offset in bases and _is_the_file(disk, folder, swap):
            sealed = with_swap(sealed, swap)
    return {each.base_offset: each for each in sealed if each.next_offset > contents.log_start_offset}


def deleted(bases: Sequence[int], log_start: int) -> Sequence[int]:
    """The first of `bases`: segments that lie wholly before the log start. Nobody misses anything of them; a
    stop came before their files went."""
    count = 0
    while count < len(bases) - 1 and bases[count + 1] <= log_start:
        count += 1
    return bases[:count]


def faults_of_listed(
    disk: Disk, folder: str, contents: Contents, bases: Sequence[int]
) -> Iterator[FileFault]:
    there, found = set(bases), listed(disk, folder, contents, bases)
    end = max((each.next_offset for each in found.values()), default=-1)
    for base, each in found.items():
        path = _path(folder, base)
        if base not in there:
            yield FileFault(path, "the segment file is missing")
        elif disk.size(path) != each.size:
            problem = f"the sealed segment has {disk.size(path)} bytes, and had {each.size}"
            yield FileFault(path, problem)
    if found and end not in there:
        yield FileFault(_path(folder, end), "the segment file is missing")
    for base in bases:
        if found and min(found) < base < end and base not in found:
            yield FileFault(_path(folder, base), "no segment of this log began there")


def _path(folder: str, base: int) -> str:
    return f"{folder}/{files.numbered(base)}{files.LOG}"


def _is_the_file(disk: Disk, folder: str, swap: Sealed) -> bool:
    file = disk.open(_path(folder, swap.base_offset))
    try:
        return file.size() == swap.size and fingerprint(file, swap.size) == swap.fingerprint
    finally:
        file.close()


def require_whole(
    path: str, segments: Sequence[Segment], count: int, rules: Wholeness, listed: Mapping[int, Sealed]
) -> None:
    """The first `count` of them are what was sealed, or at least end with a whole batch where the next one
    begins. Else CorruptLog."""
    for place, segment in enumerate(segments[:count]):
        following = segments[place + 1]
        known = listed.get(segment.base_offset)
        if known is not None:
            if fingerprint(segment.file(), segment.size) != known.fingerprint:
                problem = "the beginning or the end of the sealed segment is not what it was"
                raise wholeness.changed(FileFault(segment.path(files.LOG), problem))
            segment.forget_timestamps()
            continue
        end = _end_of(segment, following.base_offset)
        if end < following.base_offset and rules.gaps and not _is_of_another(segment, end, following):
            raise wholeness.missing_between(path, end, following.base_offset)
        segment.forget_timestamps()


def _tail_of(segment: Segment) -> int:
    try:
        return segment.load_tail()
    except WrongIndex:
        segment.rebuild_indexes()
        segment.sync_indexes()  # recovery will not walk over it again
        return segment.load_tail()


def _end_of(segment: Segment, next_base: int) -> int:
    try:
        end = _tail_of(segment)
        found = segment.locate(end - 1) if segment.size else None
    except CorruptLog as error:
        raise CorruptLog(f"{segment.path(files.LOG)}: {error}") from None
    if end > next_base or (found is not None and found.position + found.size != segment.size):
        raise CorruptLog(
            f"{segment.path(files.LOG)} was synced, but does not end where offset {next_base} follows; "
            "restore it from a replica or a backup"
        )
    return end


def _is_of_another(segment: Segment, end: int, following: Segment) -> bool:
    """Whether a gap between two segments may be what Kafka's cleaner left, or an offset too far to index.

    The own cleaner keeps the last batch of a segment. Kafka's need not, and a log may have been adopted: then
    the segment before the gap lacks records elsewhere too.
    """
    if following.size >= HEADER_SIZE:  # or it was cut, and says nothing
        first = read_header(following.file().pread(HEADER_SIZE, 0))
        if first.last_offset - end > MAX_RELATIVE_OFFSET:
            return True
    expected = segment.base_offset
    for _, header in scan.headers(segment.file(), 0, segment.size):
        if header.base_offset != expected or header.record_count != header.next_offset - header.base_offset:
            return True
        expected = header.next_offset
    return False
