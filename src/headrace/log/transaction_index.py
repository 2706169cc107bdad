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


class Loaded(NamedTuple):
    """What a thread has read of an index, and when."""

    owner: TransactionIndex
    changes: int
    entries: list[AbortedTransaction]


class TransactionIndex:
    """The file is the state. Who reads committed transactions asks it with every fetch, so what it says is
    kept from the first question on; most segments have no such file."""

    __slots__ = ("_changes", "_content", "_disk", "_known", "path")

    def __init__(self, disk: Disk, path: str, *, is_new: bool = False) -> None:
        """`is_new`: there is no file yet."""
        self._disk = disk
        self.path = path
        self._known: list[AbortedTransaction] | None = [] if is_new else None
        self._content: bytes | None = None
        """As it was found to be right when the log was opened: later the file is not asked."""
        self._changes = 0

    @property
    def is_known(self) -> bool:
        """Whether `entries` needs no disk."""
        return self._known is not None

    def loaded(self) -> Loaded:
        """What the file says now, for `take`. A thread may do this."""
        changes = self._changes
        return Loaded(self, changes, self._load())

    def take(self, loaded: Loaded) -> None:
        if self._known is None and loaded.changes == self._changes:
            self._known = loaded.entries

    def hold(self) -> None:
        """The file was compared with what was noted of it: it is not read again. No reader could tell that
        a transaction of it is another than was aborted."""
        self._content = files.read_all(self._disk, self.path)

    def append(self, aborted: AbortedTransaction) -> None:
        self._changes += 1
        if self._content is not None:
            self.entries()
            self._content = None
        file = self._disk.open(self.path, create=True)
        try:
            end = file.size() // _ENTRY.size * _ENTRY.size
            file.pwrite(_ENTRY.pack(0, *aborted), end)
        finally:
            file.close()
        if self._known is not None:
            self._known.append(aborted)

    def entries(self) -> list[AbortedTransaction]:
        """In the order of their markers. Not to be changed by the caller."""
        if self._known is None:
            self._known = self._load()
        return self._known

    def is_sane(self, base_offset: int) -> bool:
        """Whether the file can be what was written for a segment that begins at `base_offset`."""
        content = files.read_all(self._disk, self.path)
        if len(content) % _ENTRY.size:
            return False
        before = base_offset - 1
        for version, producer_id, first, last, stable in _ENTRY.iter_unpack(content):
            if version or producer_id < 0 or not 0 <= first < last or last <= before:
                return False
            if not 0 <= stable <= last + 1:
                return False
            before = last
        return True

    def _load(self) -> list[AbortedTransaction]:
        content = self._content
        if content is None:
            try:
                content = files.read_all(self._disk, self.path)
            except FileNotFoundError:
                return []
        whole = len(content) // _ENTRY.size * _ENTRY.size
        return [AbortedTransaction(*fields[1:]) for fields in _ENTRY.iter_unpack(content[:whole])]

    def collect(self, offset: int, end: int, found: list[AbortedTransaction]) -> bool:
        """Add those that a reader of the offsets from `offset` to before `end` has to know. True if no later
        segment can hold another: everything before `end` was decided when the last of these was."""
        for entry in self.entries():
            if entry.last_offset >= offset and entry.first_offset < end:
                found.append(entry)
            if entry.last_stable_offset >= end:
                return True
        return False

    def truncate_to(self, offset: int) -> None:
        """Drop what was aborted by markers at `offset` or beyond."""
        self._changes += 1
        kept = [entry for entry in self.entries() if entry.last_offset < offset]
        self._known, self._content = kept, None
        if self._disk.exists(self.path):
            file = self._disk.open(self.path)
            try:
                file.truncate(len(kept) * _ENTRY.size)
            finally:
                file.close()

    def reset(self) -> None:
        self._changes += 1
        self._known, self._content = [], None
        if self._disk.exists(self.path):
            self._disk.remove(self.path)
