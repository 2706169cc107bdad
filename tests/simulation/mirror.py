"""What a replica's log holds, batch by batch, kept beside the log so that comparing costs little."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from headrace.core.errors import CorruptLog
from headrace.log.partition_log import PartitionLog
from headrace.protocol.batch import BatchHeader, check, iterate
from headrace.testing.disk import SimulatedDisk

_EVERYTHING = 1 << 30


class Entry(NamedTuple):
    """One batch. Two replicas hold the same batch if these are equal."""

    base_offset: int
    next_offset: int
    epoch: int
    checksum: int
    size: int
    timestamp: int

    @classmethod
    def of(cls, header: BatchHeader) -> Entry:
        return cls(
            header.base_offset,
            header.next_offset,
            header.leader_epoch,
            header.crc,
            header.size,
            header.max_timestamp,
        )


def place_of(entries: Sequence[Entry], offset: int) -> int:
    """Where the first entry is that begins at `offset` or later."""
    return bisect_left(entries, offset, key=lambda entry: entry.base_offset)


def holds(entries: Sequence[Entry], entry: Entry) -> bool:
    place = place_of(entries, entry.base_offset)
    return place < len(entries) and entries[place] == entry


def leads_to(entries: Sequence[Entry], start: int, end: int) -> bool:
    """Whether they follow each other from `start` to `end`, with nothing missing."""
    for entry in entries:
        if entry.base_offset != start:
            return False
        start = entry.next_offset
    return start == end


class Mirror:
    """Follows one log. `update` reads only what is new, unless the log was cut."""

    __slots__ = ("_is_doubted", "_truncations", "begin", "entries", "log")

    def __init__(self, log: PartitionLog) -> None:
        self.log = log
        self.entries: list[Entry] = []
        self._is_doubted = False
        """Of a damaged log nothing is believed without its checksum."""
        self.begin = log.log_start_offset
        """Where the log began when its first entry was read."""
        self._truncations = log.truncations

    @property
    def end(self) -> int:
        return self.entries[-1].next_offset if self.entries else self.log.log_start_offset

    def update(self) -> bool:
        """True if something was cut."""
        log = self.log
        cut = log.truncations != self._truncations
        if cut:
            self._truncations = log.truncations
            # What was cut may have been written again meanwhile: nothing above the cut is known.
            self.entries.clear()
        self._read_on()
        return cut

    def begin_at(self, offset: int) -> None:
        """Forget what was read, and read from `offset` on: what lies before it is beyond reading."""
        self.entries.clear()
        self._is_doubted = True
        self._truncations = self.log.truncations
        self.begin = offset
        self._read_from(offset)

    def _read_on(self) -> None:
        log = self.log
        if self.end < log.log_start_offset:  # what lies between was never seen, and is deleted
            self.entries.clear()
        if not self.entries:
            self.begin = log.log_start_offset
        self._read_from(self.end)

    def _read_from(self, at: int) -> None:
        log, disk = self.log, self.log.directory.disk
        assert isinstance(disk, SimulatedDisk)
        while at < log.end_offset:
            with disk.unseen():
                part = log.read(at, _EVERYTHING, limit=log.end_offset, min_one=True)
                data = part.file.pread(part.length, part.position)
            if part.length == 0:
                return
            began = at
            for position, header in iterate(data):
                if self._is_doubted:
                    check(data, position, position + header.size)
                entry = Entry.of(header)
                if entry.base_offset >= at:
                    self.entries.append(entry)
                at = header.next_offset
            if at <= began:  # a damaged header leads back: a walk that does not advance never ends
                raise CorruptLog(f"nothing reaches offset {began}")
