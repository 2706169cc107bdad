"""The folder of one log: what in it must be synced, and what waits to be removed."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.core.ids import TopicPartition
from headrace.log import files
from headrace.log.directory import LogDirectory
from headrace.log.segment import Segment


class LogFolder:
    """A part of its log, which alone uses it: a log that is closed touches no file, since another may have
    its name by then."""

    __slots__ = (
        "_expired_files",
        "_unsynced_paths",
        "directory",
        "jumps",
        "path",
        "snapshot_offsets",
        "topic_partition",
    )

    def __init__(
        self,
        directory: LogDirectory,
        path: str,
        topic_partition: TopicPartition,
        snapshot_offsets: Sequence[int] = (),
    ) -> None:
        self.directory = directory
        self.path = path
        self.topic_partition = topic_partition
        self.snapshot_offsets = list(snapshot_offsets)
        """Of the snapshots of producers, ascending."""
        self.jumps: tuple[tuple[int, int], ...] = ()
        """(base offset, next offset) of batches behind a gap whose place is noted in the folder."""
        self._unsynced_paths: list[str] | None = None
        """Small files to sync, and a sign that the folder itself has changed; None: nothing has."""
        self._expired_files: list[tuple[int, str]] | None = None
        """(when, path) of renamed files that wait to be removed."""

    # --- what must be synced ---

    def note_folder_changed(self) -> None:
        if self._unsynced_paths is None:
            self._unsynced_paths = []

    def note_unsynced(self, path: str) -> None:
        self.note_folder_changed()
        assert self._unsynced_paths is not None
        self._unsynced_paths.append(path)

    @property
    def has_changed(self) -> bool:
        """Whether the folder itself must be synced."""
        return self._unsynced_paths is not None

    def take_unsynced(self) -> list[str]:
        """Of the small files that are to be synced; whoever takes them syncs them."""
        paths, self._unsynced_paths = self._unsynced_paths or [], None
        return paths

    # --- batches behind a gap ---

    def note_jump(self, base_offset: int, next_offset: int, ends: tuple[int, ...]) -> None:
        """Say where the batch is that comes next, behind a gap, or that the log is about to be cut to.

        No checksum covers where a batch begins, so one behind a gap is believed after a crash if the next
        one agrees. For the last of all it is this note: written before the batch, synced with it, and never
        rewritten. Of the older notes those are kept that a log may come to end with: at one of `ends`.
        """
        self.drop_jumps([jump for jump in self.jumps if jump[1] not in ends])
        self.jumps = (*self.jumps, (base_offset, next_offset))
        path = f"{self.path}/{files.jump_name(base_offset, next_offset)}"
        self.directory.disk.open(path, create=True).close()
        self.note_folder_changed()

    def drop_jumps(self, gone: Sequence[tuple[int, int]]) -> None:
        for jump in gone:
            self.remove_file(f"{self.path}/{files.jump_name(jump[0], jump[1])}")
        self.jumps = tuple([jump for jump in self.jumps if jump not in gone])

    # --- what is removed ---

    def remove_file(self, path: str) -> None:
        try:
            self.directory.disk.remove(path)
        except FileNotFoundError:
            return
        self.note_folder_changed()

    def snapshot_path(self, offset: int) -> str:
        return f"{self.path}/{files.numbered(offset)}{files.SNAPSHOT}"

    def write_snapshot(self, offset: int, content: bytes) -> None:
        path = self.snapshot_path(offset)
        files.replace(self.directory.disk, path, content, sync=False)
        self.snapshot_offsets.append(offset)
        self.note_unsynced(path)

    def drop_snapshots(self, *, before: int | None = None, above: int | None = None) -> None:
        """Remove those that lie before an offset (the newest of them stays) or above one."""
        offsets = self.snapshot_offsets
        gone = [offset for offset in offsets if above is not None and offset > above]
        if before is not None:
            gone += [offset for offset in offsets if offset < before][:-1]
        for offset in gone:
            self.remove_file(self.snapshot_path(offset))
            offsets.remove(offset)

    def expire_segment(
        self, segment: Segment, when_ms: int, suffixes: Sequence[str] = files.SEGMENT_SUFFIXES
    ) -> None:
        """The `.log` first: a segment without its transaction index must not come back after a crash."""
        disk = self.directory.disk
        if self._expired_files is None:
            self._expired_files = []
        for suffix in suffixes:
            path = segment.path(suffix)
            try:
                disk.rename(path, path + files.DELETED)
            except FileNotFoundError:
                continue
            self._expired_files.append((when_ms, path + files.DELETED))
        segment.release()

    def rename_away(self, segment: Segment) -> list[str]:
        """The files of a segment get names that mean nothing, to be removed by the caller: that takes long
        where they are large."""
        renamed = []
        for suffix in files.SEGMENT_SUFFIXES:
            path = segment.path(suffix)
            try:
                self.directory.disk.rename(path, path + files.DELETED)
            except FileNotFoundError:
                continue
            renamed.append(path + files.DELETED)
        segment.release()
        return renamed

    def take_expired_files(self, now_ms: int) -> list[str]:
        """What was renamed long enough ago, to be removed by whoever asks: that may take long."""
        waiting = self._expired_files
        if not waiting:
            return []
        self._expired_files = [entry for entry in waiting if entry[0] > now_ms] or None
        return [path for when, path in waiting if when <= now_ms]

    def delete_expired_files(self, now_ms: int) -> int:
        """Remove what was renamed long enough ago; how many files."""
        due = self.take_expired_files(now_ms)
        try:
            for path in due:
                self.remove_file(path)
        except OSError as error:
            raise self.directory.fail(error, f"delete a segment of {self.topic_partition}") from error
        return len(due)
