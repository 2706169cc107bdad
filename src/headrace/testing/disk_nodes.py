"""What a simulated disk is made of: files and folders, as the program sees them and as the disk has them."""

from __future__ import annotations

from random import Random
from typing import Final

SECTOR_BYTES: Final = 512


class Content:
    """The bytes of one file: as the program sees them, and as the disk has them."""

    __slots__ = ("cached", "dirty", "durable", "is_resident", "modified_ms")

    def __init__(self, now_ms: int) -> None:
        self.cached = bytearray()
        self.durable = bytearray()
        self.dirty: set[int] = set()
        self.modified_ms = now_ms
        self.is_resident = True
        """Whether it can be read without waiting for the disk. It can after it was read once."""

    def touch(self, start: int, end: int) -> None:
        if end > start:
            self.dirty.update(range(start // SECTOR_BYTES, (end - 1) // SECTOR_BYTES + 1))

    def sync(self) -> None:
        resize(self.durable, len(self.cached))
        for sector in self.dirty:
            at = sector * SECTOR_BYTES
            self.durable[at : at + SECTOR_BYTES] = self.cached[at : at + SECTOR_BYTES]
        self.dirty.clear()

    def crash(self, random: Random, keep: float) -> None:
        """`keep` is how likely an unsynced sector is to have reached the disk."""
        short, long = sorted((len(self.durable), len(self.cached)))
        size = random.choice((len(self.durable), len(self.cached), random.randint(short, long)))
        if keep == 1.0:
            size = len(self.cached)
        resize(self.durable, size)
        for sector in sorted(self.dirty):
            at = sector * SECTOR_BYTES
            if random.random() < keep:
                part = self.cached[at : min(at + SECTOR_BYTES, size)]
                self.durable[at : at + len(part)] = part
        self.cached = bytearray(self.durable)
        self.dirty.clear()


class Folder:
    """Names in one directory: as the program sees them, as the disk has them, and the steps in between."""

    __slots__ = ("durable", "names", "pending")

    def __init__(self) -> None:
        self.names: dict[str, Content | Folder] = {}
        self.durable: dict[str, Content | Folder] = {}
        self.pending: list[tuple[str | None, str | None, Content | Folder | None]] = []

    def put(self, name: str, node: Content | Folder) -> None:
        self._do((None, name, node))

    def drop(self, name: str) -> None:
        self._do((name, None, None))

    def rename(self, old: str, new: str) -> None:
        self._do((old, new, self.names[old]))

    def _do(self, step: tuple[str | None, str | None, Content | Folder | None]) -> None:
        _apply(self.names, step)
        self.pending.append(step)

    def sync(self) -> None:
        self.durable = dict(self.names)
        self.pending.clear()

    def crash(self, random: Random, keep: float) -> None:
        kept = len(self.pending) if keep == 1.0 else random.randint(0, len(self.pending))
        for step in self.pending[:kept]:
            _apply(self.durable, step)
        self.names = dict(self.durable)
        self.pending.clear()
        for node in self.names.values():
            node.crash(random, keep)


def _apply(
    names: dict[str, Content | Folder], step: tuple[str | None, str | None, Content | Folder | None]
) -> None:
    old, new, node = step
    if old is not None:
        names.pop(old, None)
    if new is not None and node is not None:
        names[new] = node


def resize(data: bytearray, size: int) -> None:
    if len(data) > size:
        del data[size:]
    else:
        data.extend(bytes(size - len(data)))
