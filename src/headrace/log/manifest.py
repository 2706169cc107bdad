"""The manifest of a log: which sealed segments it has, and where it starts.

One small text file in the partition's folder, replaced whole and synced each time. It has a checksum of its
own. Each line `segment` names a sealed segment: its first offset, the first offset of the next one, its size,
a fingerprint of its content, and checksums of what stands beside it (side_files.py). So a file that is
missing, cut, or not the one that was sealed is noticed at the next start without reading it, also where
compaction has left gaps. Kafka ignores the file.

Order: a segment is listed after it was synced, and taken off the list before it is cut. The log start moves
here before any file goes. A compacted segment is announced (`swap`) before it takes the place of others, so
either of both is right after a crash. `emptied` says that everything is about to be dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Final, NamedTuple
from uuid import UUID

from crc32c import crc32c

from headrace.core.ids import TopicPartition
from headrace.core.ports import Disk, File
from headrace.log import checkpoints, files, side_files
from headrace.log.side_files import SideFiles

NAME: Final = "headrace.manifest"
_TITLE: Final = "headrace manifest 1"
_SAMPLE_BYTES: Final = 1024


class Sealed(NamedTuple):
    base_offset: int
    next_offset: int
    """Where the next segment begins."""
    size: int
    fingerprint: int
    side: SideFiles = SideFiles()


class Contents(NamedTuple):
    partition: TopicPartition
    topic_id: UUID
    log_start_offset: int = 0
    sealed: tuple[Sealed, ...] = ()
    """Ascending; each begins where the one before it ends."""
    announced: tuple[Sealed, ...] = ()
    """Compacted segments that may have taken the place of those in their range."""
    emptied: bool = False
    """All segments were about to be dropped, and the log to go on at its start."""


class CorruptManifest(Exception):
    """A file that cannot be what was written."""


def fingerprint(file: File, size: int) -> int:
    """Of a sealed segment: its beginning, with the checksum of its first batch, and its end.

    Not of all of it, which would have to be read again: each batch has a checksum, which readers compare.
    """
    head = file.pread(min(_SAMPLE_BYTES, size), 0)
    tail = file.pread(min(_SAMPLE_BYTES, size), max(size - _SAMPLE_BYTES, 0))
    return crc32c(tail, crc32c(head))


def encode(contents: Contents) -> bytes:
    lines = [
        _TITLE,
        f"partition {contents.partition.topic} {contents.partition.partition}",
        f"topic {checkpoints.encode_uuid(contents.topic_id)}",
        f"start {contents.log_start_offset}",
        *(f"segment {_format(each)}" for each in contents.sealed),
        *(f"swap {_format(each)}" for each in contents.announced),
        *(("emptied",) if contents.emptied else ()),
    ]
    body = "".join(f"{line}\n" for line in lines).encode()
    return body + b"crc32c %08x\n" % crc32c(body)


def _format(each: Sealed) -> str:
    words = (str(each.base_offset), str(each.next_offset), str(each.size), f"{each.fingerprint:08x}")
    return " ".join((*words, *side_files.to_words(each.side)))


def decode(content: bytes) -> Contents:
    body, separator, checksum = content.rpartition(b"crc32c ")
    if not separator or checksum != b"%08x\n" % crc32c(body):
        raise CorruptManifest("its checksum is wrong")
    try:
        title, partition, topic, start, *rest = body.decode("ascii").splitlines()
        if title != _TITLE:
            raise CorruptManifest(f"it begins with {title!r}")
        name, index = partition.removeprefix("partition ").rsplit(" ", 1)
        return Contents(
            TopicPartition(name, int(index)),
            checkpoints.decode_uuid(topic.removeprefix("topic ")),
            int(start.removeprefix("start ")),
            tuple(_parse(line) for line in rest if line.startswith("segment ")),
            tuple(_parse(line) for line in rest if line.startswith("swap ")),
            "emptied" in rest,
        )
    except (ValueError, TypeError, checkpoints.CorruptCheckpoint):
        raise CorruptManifest(f"it is not in the form of {_TITLE!r}") from None


def _parse(line: str) -> Sealed:
    base, following, size, sample, *side = line.split(" ")[1:]
    return Sealed(int(base), int(following), int(size), int(sample, 16), side_files.from_words(side))


def load(disk: Disk, folder: str) -> Contents | None:
    """None if there is none. CorruptManifest if it is broken; OSError is a broken disk."""
    try:
        return decode(files.read_all(disk, f"{folder}/{NAME}"))
    except FileNotFoundError:
        return None


class Manifest:
    """The only writer of it. Every method may be called from any thread; `save` alone touches the disk.

    A change is made where what it says has become true: a segment is listed when it is synced, the rest is
    said before it is done. So whoever saves writes what all have said. `save` is durable when it returns.
    """

    __slots__ = (
        "_closed",
        "_contents",
        "_disk",
        "_folder",
        "_lock",
        "_saving",
        "_written",
        "cuts",
        "replaces_lost",
    )

    def __init__(self, disk: Disk, folder: str, contents: Contents, written: Contents | None = None) -> None:
        self._disk = disk
        self._folder = folder
        self._contents = contents
        self._written = written
        """What the file holds; None if there is none."""
        self._lock = Lock()
        self._saving = Lock()
        self._closed = False
        self.cuts = 0
        """How often something was taken off the list: what was to be listed before is void."""
        self.replaces_lost = False
        """A clean stop left one that is damaged or gone since. Whatever did that may have done more."""

    @property
    def contents(self) -> Contents:
        return self._contents

    @property
    def is_kept(self) -> bool:
        """Whether there is a file. A log of one segment that was never cut needs none."""
        return self._written is not None

    def beside(self, base_offset: int, end: int) -> SideFiles:
        """What stands beside a segment now."""
        return side_files.look(self._disk, self._folder, base_offset, end)

    def lacks(self, count: int) -> bool:
        """Whether some of so many sealed segments are not listed."""
        return len(self._contents.sealed) < count

    def add(self, segments: Sequence[Sealed], cuts: int) -> None:
        """List segments that were synced, unless the log was cut since `cuts` was read."""
        with self._lock:
            if cuts == self.cuts:
                known = {each.base_offset: each for each in (*self._contents.sealed, *segments)}
                listed = tuple(known[base] for base in sorted(known))
                self._contents = self._contents._replace(sealed=listed, announced=())

    def lower(self, end: int) -> None:
        """Before the log is cut to `end`: the segment that ends there becomes the active one."""
        with self._lock:
            self.cuts += 1
            kept = tuple(each for each in self._contents.sealed if each.next_offset < end)
            if len(kept) != len(self._contents.sealed):
                self._contents = self._contents._replace(sealed=kept, announced=())

    def raise_start(self, offset: int, cuts: int) -> None:
        """Before files go that lie below `offset`; not if the log was cut since `cuts` was read."""
        with self._lock:
            if cuts != self.cuts:
                return
            start = max(offset, self._contents.log_start_offset)
            kept = tuple(each for each in self._contents.sealed if each.next_offset > start)
            self._contents = self._contents._replace(log_start_offset=start, sealed=kept)

    def empty(self, offset: int) -> None:
        """Before everything is dropped, to go on at `offset`."""
        with self._lock:
            self.cuts += 1
            self._contents = self._contents._replace(
                log_start_offset=offset, sealed=(), announced=(), emptied=True
            )

    def begin(self) -> None:
        """After everything was dropped, and a new segment is there."""
        with self._lock:
            self._contents = self._contents._replace(emptied=False)

    def announce(self, segment: Sealed) -> None:
        """Before a compacted segment takes the place of those in its range."""
        with self._lock:
            if segment not in self._contents.announced:
                announced = (*self._contents.announced, segment)
                self._contents = self._contents._replace(announced=announced)

    def swapped(self, segment: Sealed) -> None:
        """It did. What was announced is believed until the file says more."""
        with self._lock:
            self._contents = self._contents._replace(sealed=with_swap(self._contents.sealed, segment))

    def close(self) -> None:
        """Another log may have the name of this one soon."""
        with self._saving:
            self._closed = True

    def save(self) -> None:
        """Write it, unless the file says the same."""
        with self._saving:
            contents = self._contents
            if contents != self._written and not self._closed:
                files.replace(self._disk, f"{self._folder}/{NAME}", encode(contents), sync=True)
                self._written = contents


def with_swap(sealed: Sequence[Sealed], swap: Sealed) -> tuple[Sealed, ...]:
    begin, end = swap.base_offset, swap.next_offset
    return tuple(sorted((*(each for each in sealed if not begin <= each.base_offset < end), swap)))


class Listing:
    """Sealed segments that are to be listed once they are synced. `run` belongs to the thread that syncs."""

    __slots__ = ("_cuts", "_manifest", "_segments", "cold")

    def __init__(self, manifest: Manifest, segments: Sequence[tuple[int, int, int, File]]) -> None:
        """(base offset, next offset, size, file) of each."""
        self._manifest = manifest
        self._segments = segments
        self._cuts = manifest.cuts
        self.cold: list[int] = []
        """Base offsets of those that had left memory. What is read of them now is back there, and nobody has
        verified it: readers must not take it for what was written."""

    def run(self) -> None:
        sealed = []
        for base, following, size, file in self._segments:
            sample = min(_SAMPLE_BYTES, size)
            if not (file.is_resident(0, sample) and file.is_resident(size - sample, sample)):
                self.cold.append(base)
            side = self._manifest.beside(base, following)
            sealed.append(Sealed(base, following, size, fingerprint(file, size), side))
        self._manifest.add(sealed, self._cuts)
        self._manifest.save()
