"""Aborted transactions of a segment: `.txnindex`, 34 bytes an entry. There is no file without an entry.

int16 version (0), int64 producer id, int64 first offset, int64 last offset, int64 last stable offset
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from headrace.core.ports import Disk
from headrace.log import files

_ENTRY: Final = Struct(">hqqqq")


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """Stateless: the file is the state. Aborts are rare, and readers of it are too."""

    __slots__ = ("_disk", "path")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self.path = path

    def append(self, aborted: AbortedTransaction) -> None:
        file = self._disk.open(self.path, create=True)
        try:
            end = file.size() // _ENTRY.size * _ENTRY.size
            file.pwrite(_ENTRY.pack(0, *aborted), end)
        finally:
            file.close()

    def entries(self) -> list[AbortedTransaction]:
        try:
            content = files.read_all(self._disk, self.path)
        except FileNotFoundError:
            return []
        whole = len(content) // _ENTRY.size * _ENTRY.size
        return [AbortedTransaction(*fields[1:]) for fields in _ENTRY.iter_unpack(content[:whole])]

    def truncate_to(self, offset: int) -> None:
        """Drop what was aborted by markers at `offset` or beyond."""
        kept = [entry for entry in self.entries() if entry.last_offset < offset]
        if self._disk.exists(self.path):
            file = self._disk.open(self.path)
            try:
                file.truncate(len(kept) * _ENTRY.size)
            finally:
                file.close()

    def reset(self) -> None:
        if self._disk.exists(self.path):
            self._disk.remove(self.path)
