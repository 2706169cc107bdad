"""A leader's partition as a copy of another cluster's: what it asks there, and what it does with the answer.
Pure.

The other cluster serves it as it serves consumers: up to its high watermark. What comes is appended at its
own offsets, in this leader's epoch. So towards its own followers this leader is like any other: its epochs
say where logs part, whatever the epochs are over there.

Over there they say it too, and each fetch names the one that the last batch had. Who has just come to lead
does not know it. So it begins with the batch that it has last, and compares (`continuity.py`).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final
from uuid import UUID

from headrace.core.errors import CorruptBatch, DoesNotFollow
from headrace.core.ids import TopicPartition
from headrace.protocol.batch import HEADER_SIZE
from headrace.protocol.batch_epochs import adopt_epoch, last_epoch
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.replica_fetch_codec import FetchedPartitionData
from headrace.replication.following import NO_EPOCH, FetchPosition
from headrace.replication.partition import Partition

NO_START: Final = -1
"""A consumer tells nobody where its log begins."""
_CLOSED: Final = -2
_NONE: Final = int(ErrorCode.NONE)
_OUT_OF_RANGE: Final = int(ErrorCode.OFFSET_OUT_OF_RANGE)
DAMAGED: Final = int(ErrorCode.CORRUPT_MESSAGE)
_GONE: Final = (int(ErrorCode.UNKNOWN_TOPIC_ID), int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
"""Nobody over there says how far it is."""
_LEADERS: Final = frozenset(
    int(code)
    for code in (
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    )
)


class LinkOutcome(IntEnum):
    UP_TO_DATE = 0
    APPENDED = 1
    PROVE = 2
    """It begins with the batch that this log has last, or should: compare them, then call `proven`."""
    TRUNCATING = 3
    """The log has to begin elsewhere. Run `log.truncation`; until then it asks for nothing."""
    STALE = 4
    RANGE = 5
    """There is nothing at that offset over there: ask where that log begins and ends, then call
    `on_range`."""
    LEADER = 6
    """Another leads over there, or the topic is another one: ask for metadata."""
    BACK_OFF = 7
    STOPPED = 8
    """`stopped` says why. A person has to decide."""


class LinkedPartition:
    """In one leader epoch here. Whatever began in an earlier one finds `is_current` false."""

    __slots__ = (
        "_epoch",
        "_held",
        "corrupt_answers",
        "error_code",
        "is_proven",
        "last_source_epoch",
        "lost_records",
        "partition",
        "source_end",
        "source_epoch",
        "source_leader",
        "source_start",
        "source_topic",
        "stopped",
        "topic_id",
        "topic_partition",
    )

    def __init__(self, partition: Partition, source_topic: str, source_topic_id: UUID) -> None:
        self.partition = partition
        self.source_topic = source_topic
        self.topic_partition: TopicPartition = partition.topic_partition
        self.topic_id = source_topic_id
        """The source's: a fetch is made with it."""
        self._epoch = partition.leader_epoch
        self._held: FetchedPartitionData | None = None
        self.source_leader = -1
        self.source_epoch = NO_EPOCH
        self.last_source_epoch = NO_EPOCH
        """Of the last batch, as it was over there; not known before the first one."""
        log = partition.log
        self.is_proven = log.log_start_offset == log.end_offset
        """An empty log continues any."""
        self.source_start = -1
        self.source_end = -1
        """As the last answer told: what is committed over there."""
        self.lost_records = 0
        """They were deleted over there before they were copied: by retention, as our own consumers would
        see."""
        self.stopped: str | None = None
        self.error_code = _NONE
        """Of the last answer, for people."""
        self.corrupt_answers = 0

    @property
    def is_current(self) -> bool:
        return self.partition.is_leader and self.partition.leader_epoch == self._epoch

    @property
    def lag(self) -> int:
        """Records that are committed over there and not here; -1 if nothing was heard yet."""
        if self.source_end < 0:
            return -1
        return max(0, self.source_end - self.partition.high_watermark)

    @property
    def must_sync_before_ack(self) -> bool:
        return self.partition.must_sync_before_ack

    def fetch_position(self) -> FetchPosition | None:
        log = self.partition.log
        if not self.is_current or self.stopped or self.partition.is_offline or log.truncation is not None:
            return None
        if self.is_proven:
            return FetchPosition(log.end_offset, self.source_epoch, self.last_source_epoch, NO_START)
        return FetchPosition(log.end_offset - 1, self.source_epoch, NO_EPOCH, NO_START)

    def on_leader(self, leader: int, epoch: int) -> None:
        """Who leads it over there."""
        self.source_leader = leader
        self.source_epoch = epoch

    def on_source_lost(self, error_code: int = _NONE) -> None:
        """Nobody over there says how far it is, so its lag is not known."""
        self.source_end = -1
        self.error_code = error_code

    def on_fetched(self, sent: FetchPosition, data: FetchedPartitionData, now_ms: int) -> LinkOutcome:
        if sent != self.fetch_position():
            return LinkOutcome.STALE
        self.error_code = error_code = data.error_code
        if error_code != _NONE:
            if error_code == _OUT_OF_RANGE:
                return LinkOutcome.RANGE
            if error_code in _GONE:
                self.source_end = -1
            return LinkOutcome.LEADER if error_code in _LEADERS else LinkOutcome.BACK_OFF
        if data.diverging is not None:
            return self._stop(
                "the source's log has another history than this copy: there, leader epoch"
                f" {data.diverging[0]} ends at offset {data.diverging[1]}, and this copy goes up to"
                f" {sent.fetch_offset}. The source has lost records, as after an unclean election"
            )
        if not -1 <= data.log_start_offset <= data.high_watermark:
            return self._damaged()  # to follow such a start would delete what nobody has deleted
        self.source_end = data.high_watermark
        self.source_start = data.log_start_offset
        if not len(data.records):
            self._follow_start(data.log_start_offset)
            if not self.is_proven:
                return self._cut_off(sent.fetch_offset + 1, data.high_watermark)
            return LinkOutcome.UP_TO_DATE
        if not self.is_proven:
            return LinkOutcome.PROVE
        return self._append(data, now_ms)

    def _cut_off(self, own_end: int, source_end: int) -> LinkOutcome:
        """Nothing came at an offset that this copy has. A new leader over there may not know yet how far it
        is committed: then its end is lower for a moment, and no record is missing."""
        return LinkOutcome.BACK_OFF if source_end < own_end else LinkOutcome.UP_TO_DATE

    def _append(self, data: FetchedPartitionData, now_ms: int) -> LinkOutcome:
        log, records = self.partition.log, data.records
        if len(records) >= HEADER_SIZE and log.log_start_offset == log.end_offset:
            first = int.from_bytes(records[:8], "big", signed=True)
            if 0 <= first < log.end_offset:
                # After DeleteRecords a log may begin inside a batch. This one then begins with all of it: it
                # is kept until the log begins there, as nobody sends it to one who asks from there on.
                self._held = data._replace(records=memoryview(bytearray(records)))
                log.take_truncation(first, fully=True)
                return LinkOutcome.TRUNCATING
        before = log.end_offset
        epoch = last_epoch(records)
        if records.readonly:
            records = memoryview(bytearray(records))
        size = adopt_epoch(records, self._epoch)
        try:
            log.append_as_follower(records[:size], now_ms=now_ms, leader_epoch=self._epoch)
        except DoesNotFollow as error:
            return self._stop(f"what the source sends does not continue this copy: {error}")
        except CorruptBatch:
            return self._damaged()
        if log.end_offset == before:
            return LinkOutcome.UP_TO_DATE
        self._take_source_epoch(epoch)
        self.partition.metrics.bytes_in += size
        self.partition.on_linked_append(size)
        log.producers.settle(self.partition.high_watermark)
        self._follow_start(data.log_start_offset)
        return LinkOutcome.APPENDED

    def _damaged(self) -> LinkOutcome:
        self.corrupt_answers += 1
        self.error_code = DAMAGED
        return LinkOutcome.BACK_OFF

    def _take_source_epoch(self, epoch: int) -> None:
        """No checksum covers it. A source that is asked with an epoch of which it does not know may send
        nothing any more."""
        if self.source_epoch != NO_EPOCH and not 0 <= epoch <= self.source_epoch:
            self._doubt()
        else:
            self.last_source_epoch = epoch

    def _doubt(self) -> None:
        """The last batch's epoch over there is not known: begin with that batch, and compare."""
        log = self.partition.log
        self.last_source_epoch = NO_EPOCH
        self.is_proven = log.log_start_offset == log.end_offset

    @property
    def has_held(self) -> bool:
        """Whether the log has to begin with what came, and can now."""
        return self._held is not None and self.fetch_position() is not None

    def append_held(self, now_ms: int) -> LinkOutcome:
        held, self._held = self._held, None
        return LinkOutcome.STALE if held is None else self._append(held, now_ms)

    def _follow_start(self, source_start: int) -> None:
        """What is deleted over there is deleted here, as far as it is committed here."""
        start = min(source_start, self.partition.high_watermark)
        if start > self.partition.log.log_start_offset:
            self.partition.log.delete_records_before(start)
            self.partition.on_start_raised()

    def proven(self, agrees: bool | None, data: FetchedPartitionData, now_ms: int) -> LinkOutcome:
        """`agrees`: whether the source's batches continue this log; None if compaction left nothing to
        compare. `data` is the answer of which `PROVE` was said, kept since."""
        if not self.is_current or self.is_proven or self.stopped:
            return LinkOutcome.STALE
        if agrees is False:
            return self._stop(
                f"the record at offset {self.partition.log.end_offset - 1} is another one at the source: its"
                " log was cut there and written anew, as after an unclean election"
            )
        self.is_proven = True
        rest = _from(data.records, self.partition.log.end_offset)
        if not len(rest):
            return LinkOutcome.UP_TO_DATE
        return self._append(data._replace(records=rest), now_ms)

    def on_range(self, start: int, end: int) -> LinkOutcome:
        """Where the source's log begins and how far it is committed, after `RANGE`."""
        log = self.partition.log
        if not self.is_current or self.stopped or log.truncation is not None:
            return LinkOutcome.STALE
        self.source_start, self.source_end = start, end
        if start > log.end_offset:
            # Retention has overtaken this copy. Consumers there see the same: what lies before is gone.
            if log.end_offset:
                self.lost_records += start - log.end_offset
            self.is_proven = True
            log.take_truncation(start, fully=True)
            return LinkOutcome.TRUNCATING
        if not self.is_proven and start == log.end_offset:
            self.is_proven = True  # all that could be compared is deleted over there
            return LinkOutcome.UP_TO_DATE
        if end < log.end_offset:
            return self._stop(
                f"the source's log ends at offset {end}, this copy at {log.end_offset}: the source has lost"
                " records that were committed, as after an unclean election or a restored disk"
            )
        if self.last_source_epoch != NO_EPOCH:
            self._doubt()  # Apache Kafka answers so too where it does not know the epoch
        return LinkOutcome.BACK_OFF

    def stop_for(self, reason: str) -> LinkOutcome:
        return self._stop(reason)

    def close(self) -> None:
        """It is copied no more: what is under way finds nobody."""
        self._epoch = _CLOSED

    def _stop(self, reason: str) -> LinkOutcome:
        self.stopped = reason
        return LinkOutcome.STOPPED


def _from(records: memoryview, offset: int) -> memoryview:
    """Without the batches that end before `offset`."""
    at = 0
    while len(records) - at >= HEADER_SIZE:
        base = int.from_bytes(records[at : at + 8], "big", signed=True)
        delta = int.from_bytes(records[at + 23 : at + 27], "big", signed=True)
        if base + delta >= offset:
            break
        at += int.from_bytes(records[at + 8 : at + 12], "big", signed=True) + 12
    return records[at:]
