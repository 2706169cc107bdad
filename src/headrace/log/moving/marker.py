"""`headrace.moved` in a partition's folder: which directories may hold an older folder of the same partition.

    headrace moved 1
    number 1
    from 5OzAaF7hT6ubGLGN8GbqZw
    crc32c 5d3e0a77

A replica that moves to another log directory has its name in both for a moment. This file is in the folder
that it moves to before that folder has the name. So a start that finds the partition twice knows which one to
open: the one with the higher number, if it names the directory of the other. It is removed when the older
folder is gone for good, and each further move counts on from it. Kafka ignores the file.

A start may find only one of both, because the disk of the other one is away. The folder that the replica
moves to is the later one anyhow. The folder that it moves from has a marker prepared, `headrace.moving`, from
before the other one gets its name: if a start opens it alone, that becomes its marker before anything is
appended. So whichever of both was opened is the later one when the other comes back.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from uuid import UUID

from crc32c import crc32c

from headrace.core.ports import Disk
from headrace.log import checkpoints, files

NAME: Final = "headrace.moved"
PREPARED: Final = "headrace.moving"
_TITLE: Final = "headrace moved 1"


class Moved(NamedTuple):
    number: int = 0
    sources: frozenset[UUID] = frozenset()
    """The directories with an older folder, if that is not gone."""

    def onward(self, source: UUID, target: UUID) -> Moved:
        """For the folder in `target`, to which the replica moves from `source`."""
        return Moved(self.number + 1, (self.sources | {source}) - {target})

    def supersedes(self, other: Moved, directory: UUID) -> bool:
        """Whether the folder with this marker is later than that in `directory`, which has `other`."""
        return directory in self.sources and self.number > other.number


def encode(moved: Moved) -> bytes:
    sources = sorted(checkpoints.encode_uuid(each) for each in moved.sources)
    lines = [_TITLE, f"number {moved.number}", *(f"from {each}" for each in sources)]
    body = "".join(f"{line}\n" for line in lines).encode()
    return body + b"crc32c %08x\n" % crc32c(body)


def decode(content: bytes) -> Moved:
    """One that cannot be what was written says nothing."""
    body, separator, checksum = content.rpartition(b"crc32c ")
    if not separator or checksum != b"%08x\n" % crc32c(body):
        return Moved()
    try:
        title, number, *rest = body.decode("ascii").splitlines()
        if title != _TITLE:
            return Moved()
        sources = frozenset(checkpoints.decode_uuid(line.removeprefix("from ")) for line in rest)
        return Moved(int(number.removeprefix("number ")), sources)
    except (ValueError, checkpoints.CorruptCheckpoint):
        return Moved()


def load(disk: Disk, folder: str, name: str = NAME) -> Moved:
    try:
        return decode(files.read_all(disk, f"{folder}/{name}"))
    except FileNotFoundError:
        return Moved()


def write(disk: Disk, folder: str, moved: Moved, name: str = NAME) -> None:
    """Durable when it returns."""
    files.replace(disk, f"{folder}/{name}", encode(moved), sync=True)


def take_prepared(disk: Disk, folder: str) -> None:
    """What was prepared counts from now on. Durable when it returns."""
    disk.rename(f"{folder}/{PREPARED}", f"{folder}/{NAME}")
    disk.sync_dir(folder)


def remove(disk: Disk, folder: str, name: str = NAME) -> None:
    try:
        disk.remove(f"{folder}/{name}")
    except FileNotFoundError:
        return
    disk.sync_dir(folder)
