"""The future replica: a folder in another log directory, filled with a copy of the log.

Its name, `<partition>.<uuid>-future` as in Kafka, is that of no replica, so no start opens it. It is filled a
piece at a time. Each piece is compared with what the log is by then: a segment that retention or compaction
has removed goes here too, and a truncation makes it begin anew. Every batch is verified on its way, so damage
is never copied. Sealed segments are synced when they are whole.

All of it belongs to one thread at a time, but for `size`, `end_offset` and `lacks`, which the loop may ask.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import Final, NamedTuple

from headrace.core.errors import CorruptLog, HeadraceError
from headrace.core.ids import TopicPartition
from headrace.core.ports import File
from headrace.log import checkpoints, files, manifest, scan, side_files
from headrace.log.directory import LogDirectory
from headrace.log.manifest import Contents, Sealed
from headrace.log.moving import marker
from headrace.log.moving.marker import Moved
from headrace.log.moving.plan import CopyPlan, Source
from headrace.log.segment import Segment

WRITE_BYTES: Final = 256 * 1024
SYNC_BYTES: Final = 32 * 1024 * 1024
"""So that the last sync of a large segment does not take long."""


class StalePlan(HeadraceError):
    """The log has changed since the plan was made: take another one."""


class DamagedSource(CorruptLog):
    """A batch of the log is not what was written."""

    def __init__(self, text: str, offset: int) -> None:
        super().__init__(text)
        self.offset = offset


class Ending(NamedTuple):
    """What the loop knows of a log that nobody appends to any more."""

    epochs: tuple[tuple[int, int], ...]
    jumps: tuple[tuple[int, int], ...]
    producers: bytes
    """A snapshot as of the end."""
    moved: Moved


class _Copy:
    __slots__ = ("is_finished", "next_offset", "position", "segment", "unsynced")

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.position = 0
        self.next_offset = segment.base_offset
        self.unsynced = 0
        self.is_finished = False
        """Synced, with the files beside it: nothing of it will change."""


class FutureFolder:
    __slots__ = ("_copied", "_copies", "_snapshots", "_truncations", "directory", "is_made", "path")

    def __init__(self, directory: LogDirectory, path: str) -> None:
        self.directory = directory
        self.path = path
        self._copies: dict[int, _Copy] = {}
        self._snapshots: set[int] = set()
        self._truncations = -1
        self._copied = 0
        """Bytes, since somebody asked."""
        self.is_made = False

    # --- from any thread ---

    def is_of(self, partition: TopicPartition, directory: LogDirectory) -> bool:
        name = self.path.rpartition("/")[2]
        return self.directory is directory and files.parse_future(name) == partition

    def take_copied(self) -> int:
        """How many bytes were copied since this was last asked, also by a call that failed."""
        copied, self._copied = self._copied, 0
        return copied

    @property
    def size(self) -> int:
        return sum(copy.position for copy in list(self._copies.values()))

    @property
    def end_offset(self) -> int:
        return max((copy.next_offset for copy in list(self._copies.values())), default=0)

    def lacks(self, plan: CopyPlan) -> int:
        """How many bytes of the log are not here."""
        lacking = 0
        for source in plan.sources:
            copy = self._copies.get(source.base_offset)
            is_same = copy is not None and copy.segment is source.segment
            lacking += source.size - (copy.position if copy is not None and is_same else 0)
        return lacking

    # --- in a thread ---

    def copy(self, plan: CopyPlan, most_bytes: int) -> int:
        """Copy up to so many bytes of what is missing, and about a batch more; how many it were.

        StalePlan: the log has changed meanwhile. DamagedSource, StorageError: it cannot be copied.
        """
        copied = 0
        try:
            self._reconcile(plan)
            for source in plan.sources:
                copy = self._copies.get(source.base_offset) or self._begin(source)
                while copy.position < source.size and copied < most_bytes:
                    copied += self._copy_piece(plan, source, copy, most_bytes - copied)
                if copy.position < source.size:
                    break
                if not source.is_active and not copy.is_finished:
                    self._finish(plan, source, copy)
        except OSError as error:
            raise self.directory.refuse(error, f"copy {plan.partition}") from error
        return copied

    def complete(self, plan: CopyPlan, ending: Ending) -> None:
        """Everything of a log that is closed, durable when it returns. The folder is then a whole log."""
        self.copy(plan, plan.size + 1)
        disk, path = self.directory.disk, self.path
        active = plan.sources[-1]
        try:
            self._finish(plan, active, self._copies[active.base_offset])
            for offset in plan.snapshots:
                self._copy_snapshot(plan, offset)
            end = f"{path}/{files.numbered(plan.end_offset)}{files.SNAPSHOT}"
            files.replace(disk, end, ending.producers, sync=True)
            lines = (f"{epoch} {start}" for epoch, start in ending.epochs)
            files.replace(disk, f"{path}/{files.EPOCHS}", checkpoints.format_lines(lines), sync=True)
            for jump in ending.jumps:
                disk.open(f"{path}/{files.jump_name(*jump)}", create=True).close()
            contents = Contents(
                plan.partition,
                plan.topic_id,
                plan.log_start_offset,
                tuple(self._sealed(plan, source) for source in _vouched(plan.sources[:-1])),
            )
            files.replace(disk, f"{path}/{manifest.NAME}", manifest.encode(contents), sync=True)
            marker.write(disk, path, ending.moved)  # this syncs the folder
        except OSError as error:
            raise self.directory.refuse(error, f"copy {plan.partition}") from error

    def remove(self) -> None:
        """Nothing is to be moved there any more. What cannot be removed now, a start removes."""
        self._copies, self._snapshots, self.is_made = {}, set(), False
        if not self.directory.is_online:
            return
        try:
            self.directory.disk.remove_tree(self.path)
        except FileNotFoundError:
            return
        except OSError as error:
            self.directory.refuse(error, f"delete {self.path}")

    def _reconcile(self, plan: CopyPlan) -> None:
        """Let go of what is not in the log any more."""
        if self.is_made and plan.truncations != self._truncations:
            self.remove()
        self._truncations = plan.truncations
        if not self.is_made:
            self._make(plan)
        wanted = {source.base_offset: source.segment for source in plan.sources}
        for base, copy in list(self._copies.items()):
            if wanted.get(base) is not copy.segment:
                del self._copies[base]
                for suffix in files.SEGMENT_SUFFIXES:
                    self._remove(self._path(base, suffix))
        for offset in sorted(self._snapshots - set(plan.snapshots)):
            self._snapshots.discard(offset)
            self._remove(self._path(offset, files.SNAPSHOT))

    def _make(self, plan: CopyPlan) -> None:
        disk = self.directory.disk
        disk.make_dirs(self.path)
        topic = checkpoints.format_partition_metadata(plan.topic_id)
        files.replace(disk, f"{self.path}/{files.PARTITION_METADATA}", topic, sync=True)
        disk.sync_dir(self.directory.path)
        self.is_made = True

    def _begin(self, source: Source) -> _Copy:
        self.directory.disk.open(self._path(source.base_offset, files.LOG), create=True).close()
        copy = self._copies[source.base_offset] = _Copy(source.segment)
        return copy

    def _copy_piece(self, plan: CopyPlan, source: Source, copy: _Copy, most_bytes: int) -> int:
        begin = copy.position
        name = f"{files.numbered(source.base_offset)}{files.LOG}"
        taken = _open_source(plan, name)
        given = self.directory.disk.open(f"{self.path}/{name}")
        try:
            walk = scan.CheckedWalk(
                _Passing(plan, taken),
                begin,
                source.size,
                copy.next_offset,
                highest=source.next_offset - 1,
                epoch_of=plan.epoch_of,
            )
            pending = bytearray()
            for position, header, batch in walk:
                pending += batch
                end = position + header.size
                if len(pending) >= WRITE_BYTES or end - begin >= most_bytes:
                    given.pwrite(pending, end - len(pending))
                    copy.position, copy.next_offset = end, header.next_offset
                    pending.clear()
                    if end - begin >= most_bytes:
                        break
            if pending:
                given.pwrite(pending, walk.position - len(pending))
                copy.position, copy.next_offset = walk.position, walk.next_offset
            self._copied += copy.position - begin
            self._sync_now_and_then(given, copy, copy.position - begin)
        finally:
            taken.close()
            given.close()
        if walk.fault is not None:
            text = f"{plan.folder}/{name}: position {walk.fault.position}: {walk.fault.reason}"
            raise DamagedSource(text, copy.next_offset)
        return copy.position - begin

    @staticmethod
    def _sync_now_and_then(file: File, copy: _Copy, written: int) -> None:
        copy.unsynced += written
        if copy.unsynced >= SYNC_BYTES:
            file.sync()
            copy.unsynced = 0

    def _finish(self, plan: CopyPlan, source: Source, copy: _Copy) -> None:
        """Durable, with what stands beside it."""
        files.sync_path(self.directory.disk, self._path(source.base_offset, files.LOG))
        for suffix in files.SEGMENT_SUFFIXES[1:]:
            self._copy_small(plan, f"{files.numbered(source.base_offset)}{suffix}")
        if not source.is_active:
            if source.next_offset in plan.snapshots:
                self._copy_snapshot(plan, source.next_offset)
            copy.is_finished = True

    def _copy_snapshot(self, plan: CopyPlan, offset: int) -> None:
        if offset not in self._snapshots:
            self._copy_small(plan, f"{files.numbered(offset)}{files.SNAPSHOT}")
            self._snapshots.add(offset)

    def _copy_small(self, plan: CopyPlan, name: str) -> None:
        """One that is not there need not be: what is derived is made again where it is missing."""
        try:
            content = files.read_all(plan.directory.disk, f"{plan.folder}/{name}")
        except FileNotFoundError:
            self._remove(f"{self.path}/{name}")
            return
        except OSError as error:
            raise plan.directory.fail(error, f"copy {plan.partition}") from error
        files.replace(self.directory.disk, f"{self.path}/{name}", content, sync=False)
        files.sync_path(self.directory.disk, f"{self.path}/{name}")

    def _sealed(self, plan: CopyPlan, source: Source) -> Sealed:
        """As the manifest of the log has it: whoever opens the copy compares it with that."""
        base, following, size = source.base_offset, source.next_offset, source.size
        known = plan.listed.get(base)
        if known is None or (known.next_offset, known.size) != (following, size):
            file = self.directory.disk.open(self._path(base, files.LOG))
            try:
                known = Sealed(base, following, size, manifest.fingerprint(file, size))
            finally:
                file.close()
        if not known.side.is_known:
            known = known._replace(side=side_files.look(self.directory.disk, self.path, base, following))
        return known

    def _path(self, offset: int, suffix: str) -> str:
        return f"{self.path}/{files.numbered(offset)}{suffix}"

    def _remove(self, path: str) -> None:
        try:
            self.directory.disk.remove(path)
        except FileNotFoundError:
            return


def _vouched(sources: Iterable[Source]) -> Iterable[Source]:
    """A copy is no better than what it was made of: the next start is to doubt what is doubted now."""
    return takewhile(lambda source: source.is_vouched, sources)


def _open_source(plan: CopyPlan, name: str) -> File:
    try:
        return plan.directory.disk.open(f"{plan.folder}/{name}")
    except FileNotFoundError:
        raise StalePlan(f"{plan.folder}/{name} is gone") from None
    except OSError as error:
        raise plan.directory.fail(error, f"copy {plan.partition}") from error


class _Passing:
    """A file of the log, read without keeping it in memory. Its errors are those of its own directory."""

    __slots__ = ("_file", "_plan")

    def __init__(self, plan: CopyPlan, file: File) -> None:
        self._plan = plan
        self._file = file

    def pread(self, length: int, position: int) -> bytes:
        try:
            return self._file.pread_passing(length, position)
        except OSError as error:
            raise self._plan.directory.fail(error, f"copy {self._plan.partition}") from error
