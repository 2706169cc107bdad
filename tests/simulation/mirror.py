"""What a replica's log holds, batch by batch, kept beside the log so that comparing costs little."""

from __future__ import annotations

from typing import NamedTuple

from headrace.log.partition_log import PartitionLog
from headrace.protocol.batch import iterate

_EVERYTHING = 1 << 30


class Entry(NamedTuple):
    """One batch. Two replicas hold the same batch if these are equal."""

    base_offset: int
    next_offset: int
    epoch: int
    checksum: int


class Mirror:
    """Follows one log. `update` reads only what is new, unless the log was cut."""

    __slots__ = ("_truncations", "entries", "log")

    def __init__(self, log: PartitionLog) -> None:
        self.log = log
        self.entries: list[Entry] = []
        self._truncations = log.truncations
        self._read_on()

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

    def _read_on(self) -> None:
        log = self.log
        at = self.entries[-1].next_offset if self.entries else log.log_start_offset
        while at < log.end_offset:
            part = log.read(at, _EVERYTHING, limit=log.end_offset, min_one=True)
            if part.length == 0:
                return
            data = part.file.pread(part.length, part.position)
            for _, header in iterate(data):
                entry = Entry(header.base_offset, header.next_offset, header.leader_epoch, header.crc)
                if entry.base_offset >= at:
                    self.entries.append(entry)
                at = header.next_offset
