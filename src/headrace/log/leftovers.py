"""What an interrupted deletion, compaction or write leaves in a partition's folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from headrace.core.ports import Disk
from headrace.log import files


def has_swap(names: Iterable[str]) -> bool:
    """Whether a compaction was interrupted: which segments there are is decided by `tidy`."""
    return any(name.endswith(files.SWAP) for name in names)


def tidy(disk: Disk, folder: str) -> Sequence[str]:
    """Finish what was interrupted. The names that there are then.

    `.deleted` and `.cleaned` files and temporary ones hold nothing that is needed. A `.log.swap` is the
    finished result of a compaction: it takes its place, with its indexes, and the segments that it replaces,
    up to the next one that begins beyond its last batch, go. Without it, other `.swap` files are too early.
    """
    names = disk.list(folder)
    swaps = [name for name in names if name.endswith(files.SWAP)]
    decided = [
        parsed[0] for name in swaps if (parsed := files.parse_numbered(name)) and parsed[1] == files.LOG
    ]
    gone = [name for name in names if name.endswith((files.DELETED, files.CLEANED, files.TEMPORARY))]
    gone += [
        name for name in swaps if (parsed := files.parse_numbered(name)) is None or parsed[0] not in decided
    ]
    for name in gone:
        disk.remove(f"{folder}/{name}")
    for base_offset in decided:
        _complete_swap(disk, folder, base_offset)
    changed = bool(gone or decided)
    _remove_orphans(disk, folder)
    if changed:
        disk.sync_dir(folder)
    return disk.list(folder)


def _complete_swap(disk: Disk, folder: str, base_offset: int) -> None:
    from headrace.log import scan

    swap = f"{folder}/{files.numbered(base_offset)}{files.LOG}{files.SWAP}"
    file = disk.open(swap)
    try:
        walk = scan.CheckedWalk(file, 0, file.size(), base_offset)
        for _ in walk:
            pass
    finally:
        file.close()
    old = offsets_of(disk.list(folder), files.LOG)
    if walk.fault is not None and base_offset in old:
        # It cannot be used, and the segments that it should have replaced are all there.
        for suffix in files.SEGMENT_SUFFIXES:
            remove(disk, f"{folder}/{files.numbered(base_offset)}{suffix}{files.SWAP}")
        return
    for offset in old if walk.fault is None else ():
        if base_offset <= offset < walk.next_offset:
            for suffix in reversed(files.SEGMENT_SUFFIXES):
                remove(disk, f"{folder}/{files.numbered(offset)}{suffix}")
    for suffix in reversed(files.SEGMENT_SUFFIXES):
        path = f"{folder}/{files.numbered(base_offset)}{suffix}"
        if disk.exists(path + files.SWAP):
            disk.rename(path + files.SWAP, path)


def _remove_orphans(disk: Disk, folder: str) -> None:
    """Indexes without their `.log`."""
    names = disk.list(folder)
    logs = set(offsets_of(names, files.LOG))
    for suffix in files.SEGMENT_SUFFIXES[1:]:
        for offset in offsets_of(names, suffix):
            if offset not in logs:
                remove(disk, f"{folder}/{files.numbered(offset)}{suffix}")


def noted_jumps(
    disk: Disk, folder: str, names: Iterable[str], recovery_point: int
) -> tuple[tuple[int, int], ...]:
    """Where batches behind a gap are. What was said of those that others follow has had its time."""
    noted = []
    for name, jump in jumps_in(names):
        if jump[1] >= recovery_point:
            noted.append(jump)
        else:
            remove(disk, f"{folder}/{name}")
    return tuple(noted)


def jumps_in(names: Iterable[str]) -> Iterator[tuple[str, tuple[int, int]]]:
    for name in names:
        jump = files.parse_jump(name) if name.endswith(files.JUMP) else None
        if jump is not None:
            yield name, jump


def offsets_of(names: Iterable[str], suffix: str) -> list[int]:
    """The offsets of the files that have exactly this suffix, ascending."""
    found = (files.parse_numbered(name) for name in names if name.endswith(suffix))
    return sorted(parsed[0] for parsed in found if parsed is not None and parsed[1:] == (suffix, ""))


def remove(disk: Disk, path: str) -> None:
    try:
        disk.remove(path)
    except FileNotFoundError:
        return
