"""Which files of a directory were read. Pure.

A position is one record of the log, so a file that was read is kept there as twelve bytes: eight of its
name's hash and four of its version's, which is size and time. Two names with the same eight bytes would be
told as a file that has changed; among 25,000 files one such pair is to be expected once in sixty billion
directories.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from headrace.connect.api import GiveUp
from headrace.connect.position import Position

MOST_FILES: Final = 25_000
"""A decision has its own position and the one before it, and a broker takes records of a megabyte."""
_NAME: Final = 8
_VERSION: Final = 4


class FoundFile(NamedTuple):
    path: str
    """Below the directory of the connector."""
    size: int
    modified_ns: int

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def version(self) -> bytes:
        return _hash(f"{self.size} {self.modified_ns}", _VERSION)


class Begun(NamedTuple):
    """A large file, of which some is published."""

    path: str
    version: bytes
    at: int


class Seen:
    """A value, made of a position: one partition of it for each folder."""

    def __init__(
        self, folders: Mapping[str, Mapping[bytes, bytes]] | None = None, begun: Begun | None = None
    ) -> None:
        self._folders: Final = {name: dict(files) for name, files in (folders or {}).items()}
        self.begun: Final = begun

    @classmethod
    def of(cls, position: Position) -> Seen:
        """Raises GiveUp for what `position` has not written."""
        folders: dict[str, dict[bytes, bytes]] = {}
        begun = None
        for partition, offset in position:
            try:
                folder = str(partition["directory"])
                folders[folder] = _unpacked(offset["read"])
                if "begun" in offset:
                    said = offset["begun"]
                    path = f"{folder}/{said['file']}" if folder else str(said["file"])
                    begun = Begun(path, bytes.fromhex(said["version"]), int(said["at"]))
            except (KeyError, TypeError, ValueError):
                raise GiveUp(
                    f"{offset} of {partition} is no position in a directory: they are partitions "
                    '{"directory": PATH} with offsets as GET /connectors/NAME/offsets shows them, or null to '
                    "read a directory again"
                ) from None
        return cls(folders, begun)

    def __len__(self) -> int:
        return sum(len(files) for files in self._folders.values())

    def version(self, file: FoundFile) -> bytes | None:
        """The version that was read, or None if none was."""
        return self._folders.get(file.folder, {}).get(_hash(file.name, _NAME))

    def with_read(self, files: Iterable[FoundFile], begun: Begun | None) -> Seen:
        """`begun` replaces the one before: it is read to its end, or further than it was."""
        folders = {name: dict(known) for name, known in self._folders.items()}
        for each in files:
            folders.setdefault(each.folder, {})[_hash(each.name, _NAME)] = each.version
        if begun is not None:
            folders.setdefault(begun.path.rpartition("/")[0], {})
        return Seen(folders, begun)

    def without(self, paths: Iterable[str]) -> Seen:
        """These files are gone, so their names may come again."""
        folders = {name: dict(known) for name, known in self._folders.items()}
        for each in paths:
            folder, _, name = each.rpartition("/")
            folders.get(folder, {}).pop(_hash(name, _NAME), None)
        return Seen(folders, self.begun)

    def only(self, files: Iterable[FoundFile]) -> Seen:
        """Without those that are not there any more."""
        there: dict[str, dict[bytes, bytes]] = {}
        for each in files:
            known = self.version(each)
            if known is not None:
                there.setdefault(each.folder, {})[_hash(each.name, _NAME)] = known
        if self.begun is not None:
            there.setdefault(self.begun.path.rpartition("/")[0], {})
        return Seen(there, self.begun)

    def position(self) -> Position:
        found = Position()
        for folder in sorted(self._folders):
            files = self._folders[folder]
            offset: dict[str, Any] = {"files": len(files), "read": _packed(files)}
            if self.begun is not None and self.begun.path.rpartition("/")[0] == folder:
                name = self.begun.path.rpartition("/")[2]
                offset["begun"] = {"file": name, "version": self.begun.version.hex(), "at": self.begun.at}
            if files or "begun" in offset:
                found = found.moved({"directory": folder}, offset)
        return found


def _hash(text: str, size: int) -> bytes:
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=size).digest()


def _packed(files: Mapping[bytes, bytes]) -> str:
    return base64.b64encode(b"".join(name + files[name] for name in sorted(files))).decode()


def _unpacked(text: str) -> dict[bytes, bytes]:
    data = base64.b64decode(text, validate=True)
    if len(data) % (_NAME + _VERSION):
        raise ValueError("it was cut")
    entries = [data[at : at + _NAME + _VERSION] for at in range(0, len(data), _NAME + _VERSION)]
    return {each[:_NAME]: each[_NAME:] for each in entries}
