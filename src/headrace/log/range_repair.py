"""Putting back what a sealed segment has lost, byte for byte, with batches that another replica has.

Replicas of a log that was never compacted hold the same batches at the same offsets up to the high watermark,
so what fits exactly into the hole is what was there. It must: the offsets follow those before and behind it,
the length is that of the hole, the epochs are those that the log knows, and in the end the segment has the
fingerprint that it was sealed with. Whatever does not is refused, and the whole replica is fetched anew.

The bytes are written where they belong, not into a copy. A crash in the middle leaves what was there before,
damage that checksums tell; the manifest does not change, and the rest of the file is not touched.

Take, run, done, as with flushes: `survey`, `check` and `finish` are for a thread, all else for the loop. So
no truncation can come between the question whether the segment is still sealed and the write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from headrace.core.errors import CorruptBatch
from headrace.core.ports import File
from headrace.log import files, manifest, scan
from headrace.log.damage_search import Place, next_whole
from headrace.protocol.batch import BatchHeader, check

if TYPE_CHECKING:
    from headrace.log.manifest import Sealed
    from headrace.log.partition_log import PartitionLog
    from headrace.log.segment import Segment

MOST_BYTES: Final = 8 * 1024 * 1024
"""Of all holes of a segment. Whatever lost more is better fetched anew."""


class Unmendable(Exception):
    """Why a segment has to be fetched anew with its whole log."""


class Hole(NamedTuple):
    position: int
    end: int
    offset: int
    """Of the first record that is lost."""
    next_offset: int
    """Of the first that is there again."""

    @property
    def size(self) -> int:
        return self.end - self.position


class RangeRepair:
    __slots__ = ("_epochs", "_file", "_truncations", "_written", "log", "sealed", "segment")

    @classmethod
    def take(cls, log: PartitionLog, segment: Segment, high_watermark: int) -> RangeRepair | None:
        """None where it cannot be: bytes of compacted logs differ, what is not committed may, and without a
        line in the manifest there is nothing to compare with."""
        if "compact" in log.config.cleanup_policy or log.closed or log.awaits_sync(segment):
            return None
        for sealed in log.manifest.contents.sealed:
            if sealed.base_offset == segment.base_offset:
                is_it = sealed.size == segment.size and sealed.next_offset <= high_watermark
                repair = cls(log, segment, sealed)
                return repair if is_it and repair.holds else None
        return None

    def __init__(self, log: PartitionLog, segment: Segment, sealed: Sealed) -> None:
        self.log = log
        self.segment = segment
        self.sealed = sealed
        self._truncations = log.truncations
        self._written = segment.index.written
        self._epochs = log.epochs
        self._file: File | None = None

    @property
    def holds(self) -> bool:
        """Whether the segment is still a part of its log, and sealed, and nobody else changes the files."""
        log = self.log
        return (
            not log.closed
            and log.truncation is None
            and log.directory.is_online
            and log.truncations == self._truncations
            and any(each is self.segment for each in log.segments[:-1])
        )

    # --- in a thread ---

    def survey(self) -> list[Hole]:
        """All holes of the segment. Unmendable: it was compacted, or is not what follows from its neighbours.
        OSError: the disk does not give it."""
        file = self._file
        if file is None:
            file = self._file = self.log.directory.disk.open(self.segment.path(files.LOG))
        holes: list[Hole] = []
        at, expected = 0, self.sealed.base_offset
        lost: tuple[int, int, int] | None = None
        while at < self.sealed.size:
            walk = scan.CheckedWalk(
                file,
                at,
                self.sealed.size,
                expected,
                highest=self.sealed.next_offset - 1,
                epoch_of=self._epochs.epoch_of,
            )
            for _, header, _ in walk:
                if lost is not None:
                    holes.append(Hole(*lost, header.base_offset))
                    lost = None
                elif header.base_offset != expected:
                    raise Unmendable(f"offset {header.base_offset} follows {expected}")
                self._require_usual(header)
                expected = header.next_offset
            if walk.fault is None:
                break
            if lost is not None and walk.position == at:  # a whole batch that cannot belong here
                raise Unmendable(walk.fault.reason)
            position = walk.fault.position
            place = Place(expected, self.sealed.next_offset - 1)
            at = next_whole(file, position, self.sealed.size, self.segment.index, self._written, place)
            lost = position, at, expected
        if lost is not None:
            holes.append(Hole(*lost, self.sealed.next_offset))
        elif expected != self.sealed.next_offset:
            raise Unmendable(f"it ends at offset {expected} instead of {self.sealed.next_offset}")
        if sum(hole.size for hole in holes) > MOST_BYTES:
            raise Unmendable("too much of it is lost")
        for hole in holes:  # a write into a part of a page must not wait for the disk on the loop
            file.pread(1, hole.position)
            file.pread(1, hole.end - 1)
        return holes

    def check(self, hole: Hole, batches: bytes) -> None:
        """Unmendable unless they fill the hole exactly."""
        if len(batches) != hole.size:
            raise Unmendable(f"another replica has {len(batches)} bytes where {hole.size} are lost")
        at, expected = 0, hole.offset
        while at < len(batches):
            try:
                header = check(batches, at)
            except CorruptBatch as error:
                raise Unmendable(f"what another replica has is damaged too: {error}") from None
            if header.base_offset != expected:
                raise Unmendable(f"another replica has offset {header.base_offset} instead of {expected}")
            self._require_usual(header)
            at, expected = at + header.size, header.next_offset
        if expected != hole.next_offset:
            raise Unmendable(f"another replica goes on at {expected} instead of {hole.next_offset}")

    def _require_usual(self, header: BatchHeader) -> None:
        offset = header.base_offset
        if header.record_count != header.next_offset - offset:
            raise Unmendable(f"the batch at offset {offset} was compacted")
        if header.leader_epoch != self._epochs.epoch_of(offset):
            raise Unmendable(f"the batch at offset {offset} is of another epoch")

    def finish(self) -> None:
        """Make it durable, and compare it with what was sealed. SyncFailed is final, as everywhere."""
        file = self._file
        assert file is not None
        file.sync()
        if manifest.fingerprint(file, self.sealed.size) != self.sealed.fingerprint or self.survey():
            raise Unmendable("it is not what was sealed")

    # --- on the loop ---

    def write(self, position: int, part: memoryview) -> None:
        """Only while it `holds`."""
        assert self._file is not None
        self._file.pwrite(part, position)

    def done(self) -> None:
        """Readers may have it again, once they have verified it."""
        segment = self.segment
        if segment.reads is not None:
            segment.reads.damage = ()
        segment.distrust()
        segment.release()  # the name may have led to another file than the one that was open

    def close(self) -> None:
        """A thread that was not waited for may still read: the last one to let go of the file closes it."""
        self._file = None
