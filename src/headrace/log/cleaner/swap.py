"""Putting a cleaned segment in the place of those that it was made from.

Three rounds of renames, each in an order in which a crash leaves something that `leftovers.tidy` can finish:

1. `.cleaned` becomes `.swap`, the `.log` last: with it the swap is decided, and all of its files are there.
2. The old segments become `.deleted`, from the first on, of each the `.log` last: as long as there is a
   `.log`, the indexes beside it are the old ones.
3. `.swap` loses its suffix, the `.log` last.

The content was synced before. Renames in one folder reach the disk in the order in which they were made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from headrace.core.errors import CorruptLog
from headrace.log import files, manifest, side_files
from headrace.log.cleaner.job import CleanedGroup
from headrace.log.cleaner.segment_writer import cleaned_path
from headrace.log.index_loading import load_indexes
from headrace.log.manifest import Sealed
from headrace.log.segment import Segment

if TYPE_CHECKING:
    from headrace.log.partition_log import PartitionLog

LOG_LAST: Final = (files.TXN_INDEX, files.TIME_INDEX, files.INDEX, files.LOG)


class SegmentSwap:
    """The state of a log when a pass began. Whatever changed its segments since makes the pass void."""

    __slots__ = ("_announced", "log", "sources", "truncations")

    def __init__(self, log: PartitionLog, sources: tuple[Segment, ...]) -> None:
        self.log = log
        self.sources = sources
        self.truncations = log.truncations
        self._announced: dict[CleanedGroup, Sealed] = {}

    @property
    def is_valid(self) -> bool:
        """Whether what the pass has found out of the log as a whole still holds."""
        log = self.log
        if log.closed or log.truncation is not None:  # it is copied to another directory as it is
            return False
        return log.truncations == self.truncations and log.directory.is_online

    def holds(self, cleaned: CleanedGroup) -> bool:
        """Whether the segments that this was made from are still where they were, as they were."""
        log = self.log
        if not self.is_valid:
            return False
        group = self._sources(cleaned)
        place = self._place(group)
        found = log.segments[place : place + len(group)] if place >= 0 else []
        return (
            len(found) == len(group)
            and all(now is then for now, then in zip(found, group, strict=True))
            and found[-1] is not log.active_segment
        )

    def _sources(self, cleaned: CleanedGroup) -> tuple[Segment, ...]:
        return self.sources[cleaned.place : cleaned.place + cleaned.segments]

    def _place(self, group: Sequence[Segment]) -> int:
        for place, segment in enumerate(self.log.segments):
            if segment is group[0]:
                return place
        return -1

    def announce(self, cleaned: CleanedGroup) -> None:
        """After `holds` said yes: tell the manifest what may be in the place of the group, after a crash.

        May run in a thread, and is durable when it returns.
        """
        log = self.log
        path = cleaned_path(log.path, cleaned.base_offset, files.LOG)
        try:
            file = log.directory.disk.open(path)
            try:
                sample = manifest.fingerprint(file, cleaned.size)
            finally:
                file.close()
            end = self._end(cleaned)
            side = log.manifest.beside(cleaned.base_offset, end)._replace(
                aborted=side_files.checksum(
                    log.directory.disk,
                    cleaned_path(log.path, cleaned.base_offset, files.TXN_INDEX),
                    missing=0,
                )
            )
            sealed = Sealed(cleaned.base_offset, end, cleaned.size, sample, side)
            log.manifest.announce(sealed)
            log.manifest.save()
        except FileNotFoundError:
            return  # the log is gone, or `swap` says what is missing
        except OSError as error:
            raise log.directory.fail(error, f"swap a cleaned segment of {log.topic_partition}") from error
        self._announced[cleaned] = sealed

    def _end(self, cleaned: CleanedGroup) -> int:
        """Where the segment behind the group begins."""
        last = self._sources(cleaned)[-1]
        following = next((each for each in self.log.segments if each.base_offset > last.base_offset), last)
        return following.base_offset

    def swap(self, cleaned: CleanedGroup, now_ms: int) -> None:
        """After `holds` said yes, without anything in between. StorageError: the directory is offline."""
        log, group = self.log, self._sources(cleaned)
        if cleaned not in self._announced:
            self.announce(cleaned)
        try:
            _swap(log, self._place(group), group, cleaned, now_ms)
            log.manifest.swapped(self._announced[cleaned])
        except OSError as error:
            doing = f"swap a cleaned segment of {log.topic_partition}"
            raise log.directory.fail(error, doing, half_done=True) from error

    def discard(self, cleaned: CleanedGroup) -> None:
        """Remove what was written for nothing."""
        self._remove([cleaned_path(self.log.path, cleaned.base_offset, suffix) for suffix in LOG_LAST])

    def sweep(self) -> None:
        """Remove whatever a pass that came to no end has left behind: it can be large."""
        self._remove(
            [
                cleaned_path(self.log.path, source.base_offset, suffix)
                for source in self.sources
                for suffix in LOG_LAST
            ]
        )

    def _remove(self, paths: Sequence[str]) -> None:
        """If the log is gone, its files are nobody's business here."""
        log = self.log
        if log.closed or not log.directory.is_online:
            return
        try:
            for path in paths:
                log.folder.remove_file(path)
        except OSError as error:
            raise log.directory.fail(error, f"remove a cleaned segment of {log.topic_partition}") from error


def _swap(
    log: PartitionLog, place: int, group: Sequence[Segment], cleaned: CleanedGroup, now_ms: int
) -> None:
    disk = log.directory.disk
    segment = Segment(
        log.directory,
        log.path,
        cleaned.base_offset,
        created_ms=now_ms,
        index_interval=log.config.index_interval_bytes,
        max_index_bytes=log.config.segment_index_bytes,
    )
    there = [
        suffix for suffix in LOG_LAST if disk.exists(cleaned_path(log.path, cleaned.base_offset, suffix))
    ]
    if files.LOG not in there:
        raise CorruptLog(f"a cleaned segment of {log.topic_partition} has no file")
    for suffix in there:
        disk.rename(cleaned_path(log.path, cleaned.base_offset, suffix), segment.path(suffix) + files.SWAP)
    when = now_ms + log.config.file_delete_delay_ms
    for old in group:
        log.folder.expire_segment(old, when, LOG_LAST)
    for suffix in there:
        disk.rename(segment.path(suffix) + files.SWAP, segment.path(suffix))
    segment.size = cleaned.size
    if not load_indexes(segment, disk):
        segment.rebuild_indexes()
    segment.forget_timestamps()
    segment.release()
    log.replace_segments(place, len(group), segment)
    _drop_snapshots_inside(log, place)
    log.folder.note_folder_changed()
    log.mark_unsynced(now_ms)


def _drop_snapshots_inside(log: PartitionLog, place: int) -> None:
    """Snapshots belong to the beginnings of segments. Of those that are gone none is needed."""
    begin, end = log.segments[place].base_offset, log.segments[place + 1].base_offset
    for offset in [at for at in log.folder.snapshot_offsets if begin < at < end]:
        log.folder.remove_file(log.folder.snapshot_path(offset))
        log.folder.snapshot_offsets.remove(offset)
