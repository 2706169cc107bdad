"""Logs as a list says they are, written as brokers write them: segments, indexes, checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct

from headrace.core.ids import TopicPartition
from headrace.log import checkpoints, files
from headrace.log.producer_snapshot import SnapshotEntry, encode
from headrace.protocol.batch import read_header
from headrace.protocol.control_records import end_marker
from headrace.protocol.records import NewRecord, Record, decode_records, encode_batch, rebuild_batch

PARTITION = TopicPartition("orders", 3)
_OFFSET = Struct(">ii")
_TIME = Struct(">qi")


@dataclass
class WrittenSegment:
    base_offset: int
    data: bytearray = field(default_factory=bytearray)
    index: bytearray = field(default_factory=bytearray)
    max_timestamp: int = -1
    max_at: int = 0


class WrittenLog:
    """`visible` is what a consumer of committed records gets, if all is below the high watermark."""

    def __init__(self, start: int = 0) -> None:
        self.start = start
        self.end = start
        self.segments = [WrittenSegment(start)]
        self.snapshots: dict[int, bytes] = {}
        self._records: list[tuple[Record, int]] = []
        """With the producer of an open or ended transaction, -1 for none."""
        self._gap = 0
        self._open: dict[int, int] = {}
        self.aborted_transactions: list[tuple[int, int, int]] = []
        """Producer, first offset, and that of the marker."""
        self._aborted: set[int] = set()
        """Offsets of records that were given up."""

    @property
    def last_stable_offset(self) -> int:
        return min(self._open.values(), default=self.end)

    @property
    def visible(self) -> list[Record]:
        return [
            record
            for record, _ in self._records
            if record.offset < self.last_stable_offset and record.offset not in self._aborted
        ]

    @property
    def all_records(self) -> list[Record]:
        return [record for record, _ in self._records]

    def roll(self) -> None:
        if self.segments[-1].data:
            self._leave_gap()
            self.segments.append(WrittenSegment(self.end))
            entries = (SnapshotEntry(each, 0, 0, 0, 0, 0, 0, first) for each, first in self._open.items())
            self.snapshots[self.end] = encode(entries)

    def append(
        self,
        records: Sequence[NewRecord],
        *,
        codec: int = 0,
        producer_id: int = -1,
        transactional: bool = False,
        kept: Iterable[int] | None = None,
        append_time: bool = False,
    ) -> None:
        """`kept`: the places of those that compaction has left."""
        self._leave_gap()
        batch = encode_batch(
            records,
            base_offset=self.end,
            compression=codec,
            producer_id=producer_id,
            producer_epoch=0,
            transactional=transactional,
            log_append_time=append_time,
        )
        if transactional:
            self._open.setdefault(producer_id, self.end)
        if kept is not None:
            places = set(kept)
            left = [each for place, each in enumerate(decode_records(batch)) if place in places]
            batch = rebuild_batch(read_header(batch), left)
        self._write(batch)
        owner = producer_id if transactional else -1
        self._records += [(record, owner) for record in decode_records(batch)]

    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        self._leave_gap()
        first = self._open.pop(producer_id, None)
        if first is not None and not commit:
            self.aborted_transactions.append((producer_id, first, self.end))
            self._aborted |= {
                record.offset
                for record, owner in self._records
                if owner == producer_id and record.offset >= first
            }
        marker = end_marker(commit=commit, coordinator_epoch=0, timestamp=5)
        self._write(
            encode_batch(
                [marker], base_offset=self.end, producer_id=producer_id, control=True, transactional=True
            )
        )

    def skip(self, offsets: int) -> None:
        """A gap, if something follows: all batches in it were compacted away."""
        self._gap += offsets

    def _leave_gap(self) -> None:
        self.end, self._gap = self.end + self._gap, 0

    def _write(self, batch: bytearray) -> None:
        header = read_header(batch)
        segment = self.segments[-1]
        if len(segment.data) % 3 == 0:  # some batches have an entry
            segment.index += _OFFSET.pack(header.last_offset - segment.base_offset, len(segment.data))
        if header.max_timestamp > segment.max_timestamp:
            segment.max_timestamp, segment.max_at = header.max_timestamp, header.last_offset
        segment.data += batch
        self.end = header.next_offset

    def save(self, directory: Path, *, watermark: int | None = None, log_start: int | None = None) -> Path:
        """Into a log directory; its path."""
        folder = directory / str(PARTITION)
        folder.mkdir(parents=True, exist_ok=True)
        for segment in self.segments:
            stem = folder / files.numbered(segment.base_offset)
            stem.with_suffix(files.LOG).write_bytes(segment.data)
            stem.with_suffix(files.INDEX).write_bytes(segment.index)
            relative = segment.max_at - segment.base_offset
            times = _TIME.pack(segment.max_timestamp, relative) if segment.max_timestamp >= 0 else b""
            stem.with_suffix(files.TIME_INDEX).write_bytes(times)
        for offset, content in self.snapshots.items():
            (folder / f"{files.numbered(offset)}{files.SNAPSHOT}").write_bytes(content)
        ends = {PARTITION: self.end if watermark is None else watermark}
        (directory / checkpoints.HIGH_WATERMARKS).write_bytes(checkpoints.format_offsets(ends))
        if log_start is not None:
            content = checkpoints.format_offsets({PARTITION: log_start})
            (directory / checkpoints.LOG_START_OFFSETS).write_bytes(content)
        return directory
