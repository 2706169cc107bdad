"""The names of the files of a log, and how small files are written so that they are never half there."""

from __future__ import annotations

import re
from typing import Final
from uuid import UUID

from headrace.core.ids import TopicPartition
from headrace.core.ports import Disk

LOG: Final = ".log"
INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TXN_INDEX: Final = ".txnindex"
SNAPSHOT: Final = ".snapshot"
DELETED: Final = ".deleted"
CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"
TEMPORARY: Final = ".tmp"
JUMP: Final = ".jump"
"""An empty file that says by its name where a batch behind a gap begins and ends."""
SEGMENT_SUFFIXES: Final = (LOG, INDEX, TIME_INDEX, TXN_INDEX)

EPOCHS: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"
DELETED_DIRECTORY: Final = "-delete"
STRAY_DIRECTORY: Final = "-stray"
"""A partition that the metadata does not know: kept, not served. Its name parses as no partition."""
FUTURE_DIRECTORY: Final = "-future"
"""A replica on its way from another log directory. It is no replica yet, and its name parses as none."""

_NUMBERED: Final = re.compile(r"(\d{20})(\.[a-z]+)(\.[a-z]+)?\Z", re.ASCII)
_JUMP: Final = re.compile(r"(\d{20})-(\d{20})\.jump\Z", re.ASCII)
_DIRECTORY: Final = re.compile(r"([a-zA-Z0-9._-]{1,249})-(\d{1,10})\Z", re.ASCII)
_FUTURE: Final = re.compile(r"(.+)\.[0-9a-f]{32}-future\Z", re.ASCII)


def numbered(offset: int) -> str:
    return f"{offset:020d}"


def parse_numbered(name: str) -> tuple[int, str, str] | None:
    """(offset, suffix, second suffix or empty) of a name such as `00000000000000000042.log.deleted`."""
    found = _NUMBERED.match(name)
    return None if found is None else (int(found[1]), found[2], found[3] or "")


def jump_name(base_offset: int, next_offset: int) -> str:
    return f"{numbered(base_offset)}-{numbered(next_offset)}{JUMP}"


def parse_jump(name: str) -> tuple[int, int] | None:
    """(base offset, next offset) of the batch that a name such as `jump_name` makes it speaks of."""
    found = _JUMP.match(name)
    return None if found is None else (int(found[1]), int(found[2]))


def parse_directory(name: str) -> TopicPartition | None:
    """The partition that a directory holds, by its name; None for a directory that holds none."""
    if name.endswith(DELETED_DIRECTORY):
        return None
    found = _DIRECTORY.match(name)
    return None if found is None else TopicPartition(found[1], int(found[2]))


def parse_future(name: str) -> TopicPartition | None:
    """The partition that a future replica is of, by the name of its directory; None for another name."""
    found = _FUTURE.match(name)
    return None if found is None else parse_directory(found[1])


def set_aside_name(partition: TopicPartition, unique: UUID, suffix: str) -> str:
    """A file name has 255 bytes at most, so the name of a long topic is cut, as Kafka does."""
    ending = f"-{partition.partition}.{unique.hex}{suffix}"
    return partition.topic[: 255 - len(ending)] + ending


def read_all(disk: Disk, path: str) -> bytes:
    file = disk.open(path)
    try:
        return file.pread(file.size(), 0)
    finally:
        file.close()


def replace(disk: Disk, path: str, content: bytes, *, sync: bool) -> None:
    """Write a whole small file under its name at once: a reader sees the old content or the new.

    With `sync` the new content is also the one that a power loss leaves behind.
    """
    temporary = path + TEMPORARY
    file = disk.open(temporary, create=True)
    try:
        file.truncate(0)
        file.pwrite(content, 0)
        if sync:
            file.sync()
    finally:
        file.close()
    disk.rename(temporary, path)
    if sync:
        disk.sync_dir(path.rpartition("/")[0])


def sync_path(disk: Disk, path: str) -> None:
    """Sync a file by its name; one that is gone needs no sync."""
    try:
        file = disk.open(path)
    except FileNotFoundError:
        return
    try:
        file.sync()
    finally:
        file.close()
