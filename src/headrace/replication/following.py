"""A follower in one leader epoch: what it asks its leader for, and what it does with the answer.

One fetch is outstanding per partition (rule 8). It says where the log ends and in which epoch its last
record was written, so every fetch reconciles (rules 1 and 7): if the logs diverge, the leader says where,
and the follower truncates its own log there and asks again.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from headrace.core.errors import CorruptBatch, DoesNotFollow
from headrace.log.claims_file import FirstBatch, first_checksum
from headrace.log.partition_log import PartitionLog
from headrace.protocol.batch import HEADER_SIZE, check
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.replica_fetch_codec import FetchedPartitionData
from headrace.replication.continuity import first_batch
from headrace.replication.safeguards import Safeguards

NO_EPOCH: Final = -1
IN_DOUBT: Final = -2
"""Instead of a log start: this fetch says nothing of what the replica has. Nobody is admitted for it, and
nothing is committed by it."""
_NONE: Final = int(ErrorCode.NONE)
_OUT_OF_RANGE: Final = int(ErrorCode.OFFSET_OUT_OF_RANGE)
_DAMAGED: Final = int(ErrorCode.KAFKA_STORAGE_ERROR)
_MOVED: Final = int(ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE)
MOST_DISAGREEMENTS: Final = 5
"""In a row, with pauses that grow: until then the leader may find that it is the one with damage."""
_EPOCH_ERRORS: Final = (
    int(ErrorCode.FENCED_LEADER_EPOCH),
    int(ErrorCode.UNKNOWN_LEADER_EPOCH),
    int(ErrorCode.NOT_LEADER_OR_FOLLOWER),
)
_BASE_OFFSET: Final = Struct(">q")


class FetchPosition(NamedTuple):
    """What a fetch says of one partition. A follower applies an answer only while its position is still this.

    The log start is the durable one, because DeleteRecords succeeds only when no replica can bring the
    records back; or it is IN_DOUBT.
    """

    fetch_offset: int
    current_leader_epoch: int
    last_fetched_epoch: int
    log_start_offset: int


class FetchOutcome(IntEnum):
    UP_TO_DATE = 0
    """Nothing new but perhaps the high watermark. Ask again."""
    APPENDED = 1
    """Ask again from the new position, after a sync if the topic demands one."""
    TRUNCATING = 2
    """The logs diverge, or this log has to start at another offset. Run `log.truncation`, call
    `on_truncated`, and ask again from the new position, at once. Until then ask for nothing."""
    STALE = 3
    """The follower is no longer at the position that this answer belongs to. The answer was dropped."""
    WAIT_FOR_METADATA = 4
    """Leader and follower are not in the same epoch: one of them has yet to hear of it. Back off."""
    BACK_OFF = 5
    """The leader could not serve it, or what came was damaged. Nothing was appended."""
    IN_STORE = 6
    """The leader has what comes next in an object store only. This replica has to begin behind that."""


class Following:
    __slots__ = (
        "_asks_for_end",
        "_differs",
        "_elsewhere",
        "_held",
        "_is_vouched",
        "_log",
        "_reconciles",
        "_safeguards",
        "_unanswered",
        "corrupt_answers",
        "disagreements",
        "is_out_of_reach",
        "leader_epoch",
        "leader_high_watermark",
        "leader_id",
        "uncommitted_bytes",
    )

    def __init__(
        self, log: PartitionLog, leader_id: int, leader_epoch: int, reconciles: bool, safeguards: Safeguards
    ) -> None:
        self._log = log
        self._held: FetchedPartitionData | None = None
        """The answer to append first, once a truncation has emptied the log."""
        self._safeguards = safeguards
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.leader_high_watermark = 0
        """As the last answer told. Only for people who ask how far this replica is behind."""
        self._reconciles = reconciles and safeguards.reconcile_before_append
        """Rules 1 and 7. Off only in tests."""
        self._is_vouched = not safeguards.doubtful_compared
        """Rule 13: everything here is of this log."""
        self._asks_for_end = self._differs = False
        """The leader had something else than what is compared, or nothing: do the logs part before the end of
        this one? Then it is cut."""
        self._elsewhere: tuple[FirstBatch, FirstBatch] | None = None
        """How a doubtful segment begins, and what of it is compared instead: the leader has deleted that."""
        self.is_out_of_reach = False
        """The leader has deleted what is doubtful here, and nothing else of that segment can be compared."""
        self._unanswered = 0
        """How often in a row the leader could not give what is doubtful here: it is damaged there."""
        self.corrupt_answers = 0
        self.disagreements = 0
        """How many answers in a row were intact but did not continue this log. Asking again changes nothing:
        one of the two logs is wrong."""
        self.uncommitted_bytes = 0
        """About how many copied bytes are not committed yet. When the high watermark moves, this
        tells how many bytes were committed. Fetches that wait for `min_bytes` need that number."""

    @property
    def cannot_compare(self) -> bool:
        return self._unanswered >= MOST_DISAGREEMENTS

    @property
    def is_at_odds(self) -> bool:
        """Asking again does not help."""
        return self.cannot_compare or self.disagreements >= MOST_DISAGREEMENTS

    def position(self) -> FetchPosition:
        log = self._log
        doubtful = self._doubtful()
        if doubtful is not None:
            at = log.end_offset if self._asks_for_end else self._compared(doubtful).base_offset
            return FetchPosition(at, self.leader_epoch, log.latest_epoch, IN_DOUBT)
        return FetchPosition(
            log.end_offset,
            self.leader_epoch,
            log.latest_epoch if self._reconciles else NO_EPOCH,
            log.durable_start,
        )

    def apply(self, sent: FetchPosition, data: FetchedPartitionData, now_ms: int) -> FetchOutcome:
        """Cut the log or extend it as the leader says. The caller moves the high watermark."""
        if self._log.truncation is not None:
            return FetchOutcome.STALE
        if not self._belongs_to(sent) and self._safeguards.stale_answer_dropped:
            return FetchOutcome.STALE
        doubtful = self._doubtful()
        outcome = self._apply(data, now_ms) if doubtful is None else self._compare(doubtful, data)
        if outcome <= FetchOutcome.TRUNCATING:
            self.disagreements = 0
        return outcome

    def _doubtful(self) -> FirstBatch | None:
        if self._is_vouched:
            return None
        doubtful = self._log.doubtful
        if doubtful is None:
            self._is_vouched, self._unanswered = True, 0
        return doubtful

    def _compared(self, doubtful: FirstBatch) -> FirstBatch:
        if self._elsewhere is not None and self._elsewhere[0] == doubtful:
            return self._elsewhere[1]
        return doubtful

    def _compare(self, doubtful: FirstBatch, data: FetchedPartitionData) -> FetchOutcome:
        """Rule 13: nothing is appended, and nothing that the leader says of what is committed is believed of
        this log, before it has the batch that the doubtful segment begins with, or another one of it."""
        error_code = data.error_code
        self._unanswered = self._unanswered + 1 if error_code == _DAMAGED else 0
        self.is_out_of_reach = False
        if error_code == _OUT_OF_RANGE:
            return self._out_of_reach(doubtful, data.log_start_offset)
        if error_code == _MOVED:
            return FetchOutcome.IN_STORE
        if error_code != _NONE:
            return _refused(error_code)
        asked_for_end, self._asks_for_end = self._asks_for_end, False
        differs, self._differs = self._differs, False
        if data.diverging is not None:
            return self._truncate(data.diverging[0], data.diverging[1])
        if asked_for_end:
            # The leader's log goes as far, in the same epoch: what differs is of another log.
            self.disagreements += differs
            return FetchOutcome.BACK_OFF if differs else FetchOutcome.STALE
        compared, batch = self._compared(doubtful), first_batch(data.records)
        if batch is not None:
            try:
                check(batch)
            except CorruptBatch:
                self.corrupt_answers += 1
                return FetchOutcome.BACK_OFF
            if first_checksum(batch) == compared.checksum:
                self._log.vouch(doubtful)
                self.disagreements = 0
                return FetchOutcome.STALE
        if batch is None and data.high_watermark > compared.base_offset:
            return FetchOutcome.STALE  # there was no room in the answer: its turn comes
        self._asks_for_end, self._differs = True, batch is not None
        return FetchOutcome.STALE

    def _out_of_reach(self, doubtful: FirstBatch, leader_start: int) -> FetchOutcome:
        """The leader has deleted what there is to compare: all that lies here, or a part of it. Of a segment
        that goes on behind that, what the leader begins with is compared."""
        if leader_start >= self._log.end_offset:
            self._log.take_truncation(leader_start, fully=True)
            return FetchOutcome.TRUNCATING
        if self._log.pass_over_doubts(leader_start):
            return FetchOutcome.STALE
        if leader_start > self._compared(doubtful).base_offset:
            there = self._log.batch_in_memory(leader_start)
            if there is not None:
                self._elsewhere = doubtful, there
                return FetchOutcome.STALE
        self.is_out_of_reach = True
        self.disagreements += 1
        return FetchOutcome.BACK_OFF

    def _apply(self, data: FetchedPartitionData, now_ms: int) -> FetchOutcome:
        error_code = data.error_code
        if error_code != _NONE:
            if error_code == _OUT_OF_RANGE:
                return self._out_of_range(data.log_start_offset)
            return FetchOutcome.IN_STORE if error_code == _MOVED else _refused(error_code)
        if self._log.latest_epoch > self.leader_epoch and self._reconciles:
            return self._truncate_later_epochs()
        if data.diverging is not None:
            return self._truncate(data.diverging[0], data.diverging[1])
        if not len(data.records):
            return FetchOutcome.UP_TO_DATE
        first = self._earlier_first(data.records)
        if first is None:
            return self.append(data.records, now_ms)
        return self._begin_with(first, data)

    def _begin_with(self, first: int, data: FetchedPartitionData) -> FetchOutcome:
        try:
            self._log.check_run(data.records, first, self.leader_epoch)
        except CorruptBatch:
            self.corrupt_answers += 1
            return FetchOutcome.BACK_OFF
        self._held = data._replace(records=memoryview(bytes(data.records)))
        self._log.take_truncation(first, fully=True)
        return FetchOutcome.TRUNCATING

    def take_held(self) -> FetchedPartitionData | None:
        held, self._held = self._held, None
        return held

    def _belongs_to(self, sent: FetchPosition) -> bool:
        """Rule 8: same epoch, same end offset, same last epoch."""
        log = self._log
        if not self._is_vouched:
            return sent == self.position()
        return (
            sent.current_leader_epoch == self.leader_epoch
            and sent.fetch_offset == log.end_offset
            and (sent.last_fetched_epoch == log.latest_epoch or not self._reconciles)
        )

    def _truncate(self, epoch: int, leader_end: int) -> FetchOutcome:
        """Rule 1: truncate to the smaller of the two ends of that epoch, then ask again.

        If this log does not have that epoch, its largest earlier epoch counts, which ends where the next one
        begins. If it has no earlier epoch either, no part of the log is known to agree.
        """
        log = self._log
        own_epoch, own_end = log.end_offset_for_epoch(epoch)
        if own_epoch < 0:
            own_end = leader_end if epoch > log.latest_epoch else log.log_start_offset
        elif own_epoch < epoch:
            own_end = min(own_end, leader_end)
        target = min(own_end, leader_end)
        if target >= log.end_offset or target < 0:
            self.disagreements += 1
            return FetchOutcome.BACK_OFF  # the leader says that the logs differ, not where
        # The target may lie before the log start: the next batch from the leader may begin there.
        log.take_truncation(target)
        return FetchOutcome.TRUNCATING

    def _truncate_later_epochs(self) -> FetchOutcome:
        """The leader is of the latest epoch that there is, and the last batches here say a later one. No
        checksum covers that: they are damaged, and the leader has them."""
        _, end = self._log.end_offset_for_epoch(self.leader_epoch)
        self._log.take_truncation(max(end, self._log.log_start_offset))
        return FetchOutcome.TRUNCATING

    def _out_of_range(self, leader_start: int) -> FetchOutcome:
        """The leader's log begins after this one ends, or this one is empty and is not at the leader's start.

        A log with records that ends after the leader's is not cut here: the leader epochs decide that.
        """
        log = self._log
        is_empty = log.log_start_offset == log.end_offset
        if leader_start > log.end_offset or (is_empty and 0 <= leader_start != log.end_offset):
            log.take_truncation(leader_start, fully=True)
            return FetchOutcome.TRUNCATING
        return FetchOutcome.BACK_OFF

    def _earlier_first(self, records: memoryview) -> int | None:
        """After DeleteRecords the leader's log may start inside a batch. An empty log then begins with that
        whole batch: return its base offset."""
        log = self._log
        if log.log_start_offset == log.end_offset and len(records) >= HEADER_SIZE:
            first: int = _BASE_OFFSET.unpack_from(records)[0]
            if 0 <= first < log.end_offset:
                return first
        return None

    def append(self, records: memoryview, now_ms: int) -> FetchOutcome:
        log = self._log
        before = log.end_offset
        try:
            # Refuse batches of later epochs: a leader that has lost its leadership meanwhile may have
            # truncated its log, and may send what it has copied since. Those need not continue this log.
            log.append_as_follower(records, now_ms=now_ms, leader_epoch=self.leader_epoch)
        except DoesNotFollow:
            self.disagreements += 1
            return FetchOutcome.BACK_OFF
        except CorruptBatch:
            self.corrupt_answers += 1
            return FetchOutcome.BACK_OFF
        return FetchOutcome.APPENDED if log.end_offset != before else FetchOutcome.UP_TO_DATE


def _refused(error_code: int) -> FetchOutcome:
    return FetchOutcome.WAIT_FOR_METADATA if error_code in _EPOCH_ERRORS else FetchOutcome.BACK_OFF
