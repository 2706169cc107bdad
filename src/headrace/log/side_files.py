"""Checksums of the files beside a segment that nothing in them proves: `.txnindex` and `.snapshot`.

Both have Kafka's form, which does not say whose they are. One of another segment looks as good as the right
one, and a segment whose index of aborted transactions is missing looks like one that has no aborted
transaction: its records would be given to readers of committed ones. So their checksums stand in the
manifest, and for the last segment in `headrace.claims`. What differs is not believed, and made anew from the
batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from crc32c import crc32c

from headrace.core.ports import Disk
from headrace.log import files

UNKNOWN: Final = -1
_UNKNOWN_WORD: Final = "-"


class SideFiles(NamedTuple):
    aborted: int = UNKNOWN
    """Of the index of aborted transactions; 0 if there is none, which is the checksum of nothing."""
    producers: int = UNKNOWN
    """Of the snapshot of the producers as of the end of the segment."""

    @property
    def is_known(self) -> bool:
        return self.aborted != UNKNOWN


class AtStop(NamedTuple):
    """How a clean stop leaves the files of a log."""

    end_offset: int = -1
    """Where the log ended when an earlier one left them; -1 if none did."""
    side: SideFiles = SideFiles()
    """Beside the active segment: as of `end_offset`, or of when the log is closed."""


class Expected(NamedTuple):
    """What was noted of the files of a log that is opened."""

    aborted: Mapping[int, int] = {}
    """By the base offset of the segment."""
    producers: Mapping[int, int] = {}
    """By the offset of the snapshot."""
    unnoted: int = UNKNOWN
    """The offset of a snapshot that a clean stop has left, where nothing is noted of it."""
    is_lost: bool = False
    """The notes themselves are, so that no such file is believed."""
    unlisted: Mapping[int, int] = {}
    """Base offset and end of each sealed segment that the manifest leaves out, as it does with one that is in
    doubt: what lies beside it is not believed."""

    def may_lack_index(self, base_offset: int) -> bool:
        return self.is_lost or base_offset in self.unlisted or bool(self.aborted.get(base_offset))

    def has_index(self, disk: Disk, path: str, base_offset: int) -> bool:
        """Whether the index of aborted transactions is what it was, as far as that is known."""
        if base_offset in self.unlisted:
            return False
        noted = self.aborted.get(base_offset)
        return not self.is_lost if noted is None else checksum(disk, path, missing=0) == noted

    def believes(self, offset: int, snapshot: bytes) -> bool:
        """An earlier release has noted none; whoever has noted some has noted all that are needed."""
        if self.is_lost or offset in self.unlisted.values():
            return False
        if not self.producers or offset == self.unnoted:
            return True
        return self.producers.get(offset) == crc32c(snapshot)


def look(disk: Disk, folder: str, base_offset: int, end: int) -> SideFiles:
    """As they are now."""
    return SideFiles(
        checksum(disk, f"{folder}/{files.numbered(base_offset)}{files.TXN_INDEX}", missing=0),
        checksum(disk, f"{folder}/{files.numbered(end)}{files.SNAPSHOT}", missing=UNKNOWN),
    )


def checksum(disk: Disk, path: str, *, missing: int) -> int:
    try:
        return int(crc32c(files.read_all(disk, path)))
    except FileNotFoundError:
        return missing
    except OSError:
        return UNKNOWN  # something else lies there, and whoever needs it finds out


def to_words(side: SideFiles) -> Iterable[str]:
    """For a line of text. None where nothing is known."""
    if side == SideFiles():
        return ()
    return [_UNKNOWN_WORD if each == UNKNOWN else f"{each:08x}" for each in side]


def from_words(words: Iterable[str]) -> SideFiles:
    """Raises ValueError, or TypeError if there are too many."""
    return SideFiles(*(UNKNOWN if word == _UNKNOWN_WORD else int(word, 16) for word in words))
