"""Making the indexes of a sealed segment again while the log is in use: in a thread, on a second object for
the same files, which takes the place of the first when it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.log import files
from headrace.log.segment import Segment

if TYPE_CHECKING:
    from headrace.log.partition_log import PartitionLog


class IndexRepair:
    __slots__ = ("_changed", "_fresh", "_log", "_old", "_truncations")

    @classmethod
    def take(cls, log: PartitionLog, segment: Segment) -> IndexRepair | None:
        """None if it cannot be done now: the segment is written to, has yet to be synced, or is damaged. An
        index that is right looks wrong beside a damaged header, and one made of it would be wrong."""
        if segment is log.active_segment or log.awaits_sync(segment):
            return None
        if segment.reads is not None and segment.reads.damage:
            return None
        return cls(log, segment)

    def __init__(self, log: PartitionLog, segment: Segment) -> None:
        self._log = log
        self._old = segment
        self._truncations = log.truncations
        self._changed: list[str] = []
        self._fresh = Segment(
            log.directory,
            log.path,
            segment.base_offset,
            created_ms=segment.created_ms,
            index_interval=log.config.index_interval_bytes,
            max_index_bytes=log.config.segment_index_bytes,
        )
        self._fresh.size = segment.size
        self._fresh.open_file = segment.open_file

    def run(self) -> None:
        fresh = self._fresh
        if fresh.open_file is None:
            fresh.open_file = self._log.directory.disk.open(fresh.path(files.LOG))
        self._changed = fresh.rebuild_indexes()

    def done(self, now_ms: int) -> Segment | None:
        """What has taken the segment's place; None: the log is not the one that it was."""
        log, fresh, old = self._log, self._fresh, self._old
        place = next((at for at, each in enumerate(log.segments) if each is old), -1)
        if log.closed or log.truncations != self._truncations or place < 0:
            return None
        file, fresh.open_file = fresh.open_file, None
        if file is not None:
            fresh.adopt_file(file)
        old.distrust()  # some of it may have come from the disk just now
        fresh.reads, fresh.appended_from = old.reads, old.appended_from
        if fresh.reads is not None:
            fresh.reads.index_is_doubted = False
        log.replace_segments(place, 1, fresh)
        for path in fresh.index_paths()[:2]:
            log.folder.note_unsynced(path)
        log.mark_unsynced(now_ms)
        for path in self._changed:
            log.directory.on_rebuilt(path)
        return fresh
