"""The log against a plain list: whatever is done to it, it answers as the list would.

The model is a list of batches. Everything is read back after each step, at every offset and by time.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headrace.core.errors import InvalidProducerEpoch, OffsetOutOfRange, OutOfOrderSequence
from headrace.log.partition_log import PartitionLog
from headrace.protocol.batch import check
from headrace.protocol.records import NewRecord, encode_batch
from headrace.testing.disk import SimulatedDisk
from tests.unit.log.invariants import check_invariants
from tests.unit.log.material import NOW, open_at, read_bytes, read_records, topic_config, whole_batches

times = st.integers(0, 200).map(lambda step: NOW + step)
values = st.lists(st.tuples(st.binary(max_size=40), times), min_size=1, max_size=4)


class Batch(NamedTuple):
    base_offset: int
    records: list[tuple[bytes, int]]
    producer: int
    epoch: int
    sequence: int
    size: int

    @property
    def next_offset(self) -> int:
        return self.base_offset + len(self.records)


class LogModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.disk = SimulatedDisk(3)
        self.config = topic_config(segment_bytes=500, index_interval_bytes=120)
        self.batches: list[Batch] = []
        self.start = 0
        self.end = 0
        self.leader_epoch = 0
        self.log = open_at(self.disk, "/data", config=self.config)

    # --- appending ---

    @rule(records=values)
    def append(self, records: list[tuple[bytes, int]]) -> None:
        self._append(records, -1, -1, -1)

    @rule(records=values, producer=st.integers(0, 2), bump=st.booleans())
    def append_idempotent(self, records: list[tuple[bytes, int]], producer: int, bump: bool) -> None:
        epoch, sequence = self._next(producer)
        if bump:
            epoch, sequence = epoch + 1, 0
        self._append(records, producer, epoch, sequence)

    def _next(self, producer: int) -> tuple[int, int]:
        """The epoch and sequence that the log expects of a producer, by the model."""
        mine = [batch for batch in self.batches if batch.producer == producer]
        if not mine:
            return 0, 0
        return mine[-1].epoch, mine[-1].sequence + len(mine[-1].records)

    def _append(self, records: list[tuple[bytes, int]], producer: int, epoch: int, sequence: int) -> None:
        batch = self._encode(records, producer, epoch, sequence)
        result = self.log.append_as_leader(
            batch, check(batch), leader_epoch=self.leader_epoch, now_ms=NOW + 1000
        )
        assert (result.base_offset, result.duplicate) == (self.end, False)
        self.batches.append(Batch(self.end, records, producer, epoch, sequence, len(batch)))
        self.end += len(records)
        assert result.last_offset == self.end - 1

    def _encode(
        self, records: list[tuple[bytes, int]], producer: int, epoch: int, sequence: int
    ) -> bytearray:
        return encode_batch(
            [NewRecord(value, None, when) for value, when in records],
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=sequence,
        )

    @precondition(lambda self: any(batch.producer >= 0 for batch in self.batches))
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        """A batch of a producer's last five is recognised; an older one, or of an older epoch, is refused."""
        mine = [batch for batch in self.batches if batch.producer >= 0]
        chosen = data.draw(st.sampled_from(mine))
        same = [batch for batch in mine if batch.producer == chosen.producer]
        entry = self.log.producers.get(chosen.producer)
        assert entry is not None
        batch = self._encode(chosen.records, chosen.producer, chosen.epoch, chosen.sequence)

        def again() -> tuple[int, bool]:
            result = self.log.append_as_leader(
                batch, check(batch), leader_epoch=self.leader_epoch, now_ms=NOW + 1000
            )
            return result.base_offset, result.duplicate

        known = [remembered.first_offset for remembered in entry.batches]
        if chosen.epoch < same[-1].epoch:
            with pytest.raises(InvalidProducerEpoch):
                again()
        elif chosen.base_offset in known:
            assert again() == (chosen.base_offset, True)
        else:
            with pytest.raises(OutOfOrderSequence):
                again()

    @precondition(lambda self: any(batch.producer >= 0 for batch in self.batches))
    @rule(data=st.data(), gap=st.integers(1, 5))
    def skip_a_sequence(self, data: st.DataObject, gap: int) -> None:
        producer = data.draw(st.sampled_from([b.producer for b in self.batches if b.producer >= 0]))
        epoch, sequence = self._next(producer)
        batch = self._encode([(b"x", NOW)], producer, epoch, sequence + gap)
        with pytest.raises(OutOfOrderSequence):
            self.log.append_as_leader(batch, check(batch), leader_epoch=self.leader_epoch, now_ms=NOW + 1000)

    @rule()
    def new_leader(self) -> None:
        self.leader_epoch += 1

    # --- shortening ---

    @rule()
    def roll(self) -> None:
        self.log.roll(NOW)

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        target = data.draw(st.integers(self.start, self.end))
        self.log.truncate_to(target)
        if target == self.end:
            return
        kept = [batch for batch in self.batches if batch.next_offset <= target]
        boundary = kept[-1].next_offset if kept else min(target, self.start)
        if boundary < self.start or target <= self.start:
            self.batches, self.end = [], self.start
        else:
            self.batches, self.end = kept, boundary

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        target = data.draw(st.integers(self.start, self.end))
        assert self.log.delete_records_before(target) == target
        self.start = target

    @rule(keep_bytes=st.integers(0, 3000))
    def retain_by_size(self, keep_bytes: int) -> None:
        self.log.update_config(
            topic_config(
                segment_bytes=500, index_interval_bytes=120, retention_bytes=keep_bytes, retention_ms=-1
            )
        )
        sizes = [segment.size for segment in self.log.segments]
        bases = [segment.base_offset for segment in self.log.segments]
        surplus = sum(sizes) - keep_bytes
        gone = 0
        while gone < len(sizes) - 1 and bases[gone + 1] <= self.start:
            surplus -= sizes[gone]  # goes because of the log start, before sizes are compared
            gone += 1
        while gone < len(sizes) - 1 and surplus >= sizes[gone]:
            surplus -= sizes[gone]
            gone += 1
        self._retain(gone, NOW)

    @rule(now=times.map(lambda when: when + 100))
    def retain_by_time(self, now: int) -> None:
        self.log.update_config(
            topic_config(segment_bytes=500, index_interval_bytes=120, retention_ms=100, retention_bytes=-1)
        )
        bases = [*(segment.base_offset for segment in self.log.segments), self.end]
        gone = 0
        while gone < len(bases) - 2 and bases[gone + 1] <= self.start:
            gone += 1
        while gone < len(bases) - 1 and bases[gone] < bases[gone + 1]:
            inside = [b for b in self.batches if bases[gone] <= b.base_offset < bases[gone + 1]]
            if not inside or now - max(when for b in inside for _, when in b.records) <= 100:
                break
            gone += 1
        self._retain(gone, now)

    def _retain(self, gone: int, now: int) -> None:
        bases = [*(segment.base_offset for segment in self.log.segments), self.end]
        removed = self.log.enforce_retention(now, self.end)
        if (
            gone == len(bases) - 1 and removed == gone - 1
        ):  # the active one has to be flushed with its indexes
            self.log.flush()
            removed += self.log.enforce_retention(now, self.end)
        assert removed == gone
        if gone:
            self.start = max(self.start, bases[gone])
        self.log.folder.delete_expired_files(now + 60_000)

    # --- stopping ---

    @rule()
    def flush(self) -> None:
        self.log.flush()
        assert self.log.unflushed_messages == 0

    @rule()
    def stop_and_start(self) -> None:
        self.log.close()
        self._open(clean=True, recovery_point=self.end)

    @rule()
    def kill_and_start(self) -> None:
        recovery_point = self.log.recovery_point
        self.disk.kill()
        self._open(clean=False, recovery_point=recovery_point)

    @rule()
    def lose_power_after_a_flush(self) -> None:
        self.log.flush()
        self.disk.crash(keep=0.0)
        self._open(clean=False, recovery_point=self.end)

    def _open(self, *, clean: bool, recovery_point: int) -> None:
        self.log = open_at(
            self.disk,
            "/data",
            config=self.config,
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=self.start,
        )

    # --- what must be true ---

    @invariant()
    def ends_agree(self) -> None:
        assert (self.log.log_start_offset, self.log.end_offset) == (self.start, self.end)
        check_invariants(self.log)

    @invariant()
    def everything_is_read_back(self) -> None:
        expected = [
            (batch.base_offset + index, value, when)
            for batch in self.batches
            for index, (value, when) in enumerate(batch.records)
            if batch.base_offset + index >= self.start
        ]
        found = read_records(self.log)
        assert [(record.offset, record.value, record.timestamp) for record in found] == expected

    @invariant()
    def each_offset_leads_to_its_batch(self) -> None:
        for offset in range(self.start, self.end):
            header, _ = whole_batches(read_bytes(self.log, offset, 1))[0]
            assert header.base_offset <= offset <= header.last_offset
        for outside in (self.start - 1, self.end + 1):
            with pytest.raises(OffsetOutOfRange):
                self.log.read(outside, 1, limit=self.end, min_one=True)

    @invariant()
    def each_time_leads_to_its_record(self) -> None:
        records = [
            (when, batch.base_offset + index)
            for batch in self.batches
            for index, (_, when) in enumerate(batch.records)
            if batch.base_offset + index >= self.start
        ]
        for step in (0, 50, 100, 150, 200):
            expected = next(((at, when) for when, at in records if when >= NOW + step), None)
            assert _pair(self.log, NOW + step) == expected
        found = self.log.max_timestamp_offset(self.end)
        assert (found and (found.timestamp, found.offset)) == _largest(records)


def _pair(log: PartitionLog, when: int) -> tuple[int, int] | None:
    found = log.offset_for_timestamp(when, log.end_offset)
    return None if found is None else (found.offset, found.timestamp)


def _largest(records: list[tuple[int, int]]) -> tuple[int, int] | None:
    if not records:
        return None
    largest = max(when for when, _ in records)
    return next((when, at) for when, at in records if when == largest)


LogModel.TestCase.settings = settings(
    max_examples=200, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLogModel = LogModel.TestCase
