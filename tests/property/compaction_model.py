"""A compacted log, everything that may happen to it, and what must be true of it afterwards.

The model knows every record that is in the log as it was written. The log may lack some of them, by rules
that are stated here and nowhere taken from the cleaner. A disk that runs out of power after any number of
steps is part of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import UUID

from headrace.core.errors import CorruptLog
from headrace.core.ids import TopicPartition
from headrace.core.ports import FileRange
from headrace.log import scan
from headrace.log.cleaner.job import CleanedGroup, PassEnd
from headrace.log.cleaner.passes import clean
from headrace.log.cleaner.plan import Limits, find_dirt, make_job, segments_before
from headrace.log.cleaner.swap import SegmentSwap
from headrace.log.directory_identity import DirectoryIdentity
from headrace.log.manager import LogManager
from headrace.log.partition_log import PartitionLog
from headrace.protocol.batch import BatchHeader
from headrace.protocol.control_records import end_marker
from headrace.protocol.records import NewRecord, Record, encode_batch
from tests.unit.log.fused_disk import FusedDisk
from tests.unit.log.invariants import check_invariants
from tests.unit.log.material import NOW, topic_config, whole_batches

PARTITION = TopicPartition("t", 0)
RETENTION = 1000


class Written(NamedTuple):
    key: bytes | None
    value: bytes | None
    timestamp: int
    producer: int
    """-1: of no transaction. Otherwise `Model.ended` knows what became of it."""
    written_at: int


class Pass:
    """One pass of the cleaner that is under way."""

    def __init__(self, log: PartitionLog, steps: Iterator[CleanedGroup | PassEnd], swap: SegmentSwap) -> None:
        self.log = log
        self.steps = steps
        self.swap = swap


class Model:
    def __init__(self, seed: int, **settings: Any) -> None:
        self.disk = FusedDisk(seed)
        self.now = NOW
        self.config = topic_config(
            **{
                "cleanup_policy": frozenset({"compact"}),
                "segment_bytes": 700,
                "index_interval_bytes": 100,
                "delete_retention_ms": RETENTION,
                "file_delete_delay_ms": 500,
                **settings,
            }
        )
        self.records: dict[int, Written] = {}
        self.aborted: dict[int, None] = {}
        """Offsets of records of aborted transactions."""
        self.open: dict[int, list[int]] = {}
        """By producer: the offsets of its open transaction."""
        self.sequences: dict[int, int] = {}
        self.end = 0
        self.committed = 0
        """The high watermark: no leader asks for anything below it to be cut off."""
        self.synced = 0
        self.touched = 0
        """No pass was allowed to touch anything from here on."""
        self.epoch = 0
        self.running: Pass | None = None
        self.held: list[tuple[FileRange, bytes]] = []
        self.manager = self._open()
        self.log = self.manager.create(PARTITION, UUID(int=5), self.now)

    def _open(self) -> LogManager:
        manager = LogManager(
            self.disk,
            ["/data"],
            DirectoryIdentity("c", 1),
            lambda _: self.config,
            new_uuid=lambda: UUID(int=9),
            threads_per_directory=1,
        )
        manager.open_all(self.now)
        return manager

    # --- what clients do ---

    def append(
        self, pairs: list[tuple[bytes | None, bytes | None]], *, codec: int = 0, producer: int = -1
    ) -> None:
        """`producer` -1 is none, 0 and 1 are idempotent, 2 and 3 transactional."""
        fields: dict[str, Any] = {}
        if producer >= 0:
            fields = {
                "producer_id": producer,
                "producer_epoch": 0,
                "base_sequence": self.sequences.get(producer, 0),
                "transactional": producer >= 2,
            }
        new = [NewRecord(value, key, self.now + at) for at, (key, value) in enumerate(pairs)]
        self._write(
            encode_batch(new, base_offset=self.end, leader_epoch=self.epoch, compression=codec, **fields)
        )
        for at, (key, value) in enumerate(pairs, self.end):
            self.records[at] = Written(key, value, self.now + at - self.end, producer, self.now)
            if producer >= 2:
                self.open.setdefault(producer, []).append(at)
        if producer >= 0:
            self.sequences[producer] = self.sequences.get(producer, 0) + len(pairs)
        self.end += len(pairs)

    def end_transaction(self, producer: int, *, commit: bool) -> None:
        if producer not in self.open:
            return
        marker = end_marker(commit=commit, coordinator_epoch=0, timestamp=self.now)
        self._write(
            encode_batch(
                [marker],
                base_offset=self.end,
                leader_epoch=self.epoch,
                producer_id=producer,
                producer_epoch=0,
                transactional=True,
                control=True,
            )
        )
        ended = self.open.pop(producer)
        if not commit:
            self.aborted.update(dict.fromkeys(ended))
        self.end += 1

    def _write(self, batch: bytearray) -> None:
        self.log.append_as_follower(batch, now_ms=self.now)

    def fetch(self, share: float) -> None:
        """Read somewhere, and keep what was answered until it is sent."""
        start = self.log.log_start_offset
        at = start + int((self.end - start) * share)
        found = self.log.read(at, 400, limit=self.log.end_offset, min_one=True)
        self.held.append((found, found.file.pread(found.length, found.position)))
        del self.held[:-5]

    # --- what the broker does ---

    def roll(self) -> None:
        self.log.roll(self.now)

    def flush(self) -> None:
        self.log.flush()
        self.synced = self.end

    def checkpoint(self) -> None:
        for swap in self.manager.take_checkpoint({PARTITION: self.log.end_offset}):
            swap.run()

    def pass_time(self, milliseconds: int) -> None:
        self.now += milliseconds
        self.disk.now_ms = self.now
        self.log.folder.delete_expired_files(self.now)

    def commit(self, share: float) -> None:
        self.committed += int((self.end - self.committed) * share)
        whole = [batch.next_offset for batch in self._headers() if batch.next_offset <= self.committed]
        self.committed = max([self.log.log_start_offset, *whole[-1:]])

    def new_epoch(self) -> None:
        self.epoch += 1

    def truncate(self, share: float) -> None:
        self._cut(self.committed + int((self.end - self.committed) * share))
        assert self.end >= self.committed

    def truncate_deep(self, share: float) -> None:
        """An unclean election cuts what was committed."""
        start = self.log.log_start_offset
        self._cut(start + int((self.end - start) * share))
        # What made others void may be gone, and they are too: what is there now is the truth.
        # What was deleted at the beginning may come back with a crash, and stays known.
        left = {record.offset: None for record in self.served()}
        start = self.log.log_start_offset
        self.records = {at: record for at, record in self.records.items() if at in left or at < start}

    def _cut(self, offset: int) -> None:
        self.log.truncate_to(offset)
        self.held = []  # the file was cut under them
        self._forget_from(self.log.end_offset)

    def _forget_from(self, end: int) -> None:
        """The log ends there. Markers that were cut off leave their transactions open again."""
        self.end = end
        self.committed = min(self.committed, end)
        self.synced, self.touched = min(self.synced, end), min(self.touched, end)
        self.records = {at: record for at, record in self.records.items() if at < end}
        self.aborted = {at: None for at in self.aborted if at < end}
        self._read_transactions_again()
        self.sequences = {entry.producer_id: entry.last_sequence + 1 for entry in self.log.active_producers()}

    def _read_transactions_again(self) -> None:
        """By what the log says is open: it has all its markers, or nothing of their records."""
        opened = {
            entry.producer_id: entry.txn_first_offset
            for entry in self.log.active_producers()
            if entry.txn_first_offset >= 0
        }
        self.open = {
            producer: [
                at for at, record in self.records.items() if at >= first and record.producer == producer
            ]
            for producer, first in opened.items()
        }
        reopened = {at for offsets in self.open.values() for at in offsets}
        self.aborted = {at: None for at in self.aborted if at not in reopened}

    def delete_records(self, share: float) -> None:
        start = self.log.log_start_offset
        stable = self.log.last_stable_offset(self.committed)
        self.log.delete_records_before(start + int(max(stable - start, 0) * share))
        self.log.enforce_retention(self.now, stable)

    # --- what the cleaner does ---

    def begin_pass(self, map_bytes: int) -> None:
        self.flush()
        self.checkpoint()
        saved = self.manager.checkpoints_of(self.log)
        stable = self.log.last_stable_offset(self.committed)
        clean_until = saved.clean_offsets.get(PARTITION, self.log.log_start_offset)
        dirt = find_dirt(self.log, clean_until, stable, saved.recovery_points[PARTITION], self.now)
        assert dirt.end <= stable
        assert dirt.end <= self.log.active_segment.base_offset
        sources = segments_before(self.log, dirt.end)
        job = make_job(self.log, dirt, sources, Limits(map_bytes, 1 << 16, 1e308), self.now)
        self.touched = max(self.touched, dirt.end)
        self.running = Pass(self.log, clean(self.disk, job, lambda _: None), SegmentSwap(self.log, sources))

    def step_pass(self) -> None:
        running = self.running
        if running is None:
            return
        try:
            step = next(running.steps)
        except FileNotFoundError:
            # A segment was removed under it. Nothing else may make a file vanish.
            assert (
                running.log is not self.log
                or running.swap.truncations != self.log.truncations
                or (self.log.segments[0].base_offset > running.swap.sources[0].base_offset)
            )
            self.running = None
            return
        except CorruptLog:
            assert running.swap.truncations != self.log.truncations
            self.running = None
            return
        if isinstance(step, PassEnd):
            self.running = None
            if running.swap.is_valid:
                self.manager.checkpoints_of(self.log).take_clean_offset(self.log, step.clean_until).run()
                self.verify_clean(step.clean_until)
            return
        if not running.swap.holds(step):
            running.swap.discard(step)
            self.running = None
        elif step.changed:
            running.swap.swap(step, self.now)
        else:
            running.swap.discard(step)

    # --- the end of a life ---

    def crash(self) -> None:
        self.disk.fuse = -1
        self.disk.crash()
        self._restart()
        assert self.log.end_offset >= self.synced

    def kill(self) -> None:
        self.disk.fuse = -1
        self.disk.kill()
        self._restart()

    def stop(self) -> None:
        producers, epochs = self._producers(), list(self.log.epochs.entries)
        self.manager.shut_down(1, {PARTITION: self.end})
        self._restart()
        assert self.log.end_offset == self.end
        assert self._producers() == producers
        assert self.log.epochs.entries == epochs

    def _restart(self) -> None:
        self.running, self.held = None, []
        self.manager = self._open()
        assert not self.manager.quarantined, self.manager.quarantined
        if PARTITION in self.manager.logs:
            self.log = self.manager.get(PARTITION)
        else:
            assert self.synced == 0
            self.log = self.manager.create(PARTITION, UUID(int=5), self.now)
        self._forget_from(self.log.end_offset)
        self.synced = self.end
        self.epoch = max(self.epoch, self.log.latest_epoch)

    def _producers(self) -> dict[int, tuple[int, int]]:
        return {e.producer_id: (e.epoch, e.last_sequence) for e in self.log.active_producers()}

    # --- what must be true ---

    def _headers(self) -> Iterator[BatchHeader]:
        for segment in self.log.segments:
            for _, header in scan.headers(segment.file(), 0, segment.size) if segment.size else ():
                yield header

    def served(self) -> list[Record]:
        """Everything, as a consumer reads it, without markers."""
        log, found = self.log, []
        at = log.log_start_offset
        while at < log.end_offset:
            part = log.read(at, 1 << 20, limit=log.end_offset, min_one=True)
            batches = whole_batches(part.file.pread(part.length, part.position))
            assert batches, f"nothing is served at {at} of {log.end_offset}"
            for header, inside in batches:
                assert header.next_offset > at
                at = header.next_offset
                if not header.is_control:
                    found += [record for record in inside if record.offset >= log.log_start_offset]
        return found

    def verify(self) -> None:
        check_invariants(self.log)
        assert self.log.end_offset == self.end
        served = self.served()
        offsets = [record.offset for record in served]
        assert offsets == sorted(set(offsets))
        for record in served:
            written = self.records[record.offset]
            assert (record.key, record.value, record.timestamp) == written[:3]
        self._verify_nothing_lost(dict.fromkeys(offsets))
        self._verify_latest(served)
        self._verify_lookup(served)
        for part, data in self.held:
            assert part.file.pread(part.length, part.position) == data

    def _verify_nothing_lost(self, offsets: dict[int, None]) -> None:
        for at in self.records:
            if at >= max(self.touched, self.log.log_start_offset):
                assert at in offsets, f"{at} is gone, though nobody was allowed to touch it"

    def _verify_latest(self, served: list[Record]) -> None:
        undecided = {at for offsets in self.open.values() for at in offsets}
        left_out = undecided | set(self.aborted)
        by_key: dict[bytes, list[int]] = {}
        for record in served:
            if record.key is not None and record.offset not in left_out:
                by_key.setdefault(record.key, []).append(record.offset)
        latest: dict[bytes, int] = {}
        for at, written in self.records.items():
            if written.key is not None and at not in left_out and at >= self.log.log_start_offset:
                latest[written.key] = at
        for key, at in latest.items():
            found = by_key.get(key, [])
            if found:
                assert found[-1] == at, f"{key!r}: {found[-1]} is served, {at} is the latest"
            else:
                written = self.records[at]
                assert written.value is None, f"{key!r} is lost: {at}"
                assert written.written_at + RETENTION <= self.now, f"the tombstone {at} went too early"

    def _verify_lookup(self, served: list[Record]) -> None:
        when = self.now - 3
        expected = next((record.offset for record in served if record.timestamp >= when), None)
        looked_up = self.log.offset_for_timestamp(when, self.log.end_offset)
        if expected is not None:
            assert looked_up is not None
            assert looked_up.offset <= expected  # a marker may come before it

    def verify_clean(self, until: int) -> None:
        """After a whole pass: one record of each key, and nothing aborted."""
        seen: dict[bytes | None, int] = {}
        for record in self.served():
            if record.offset >= until:
                break
            assert record.offset not in self.aborted
            assert record.key is not None
            assert record.key not in seen, f"{record.key!r} is at {seen[record.key]} and {record.offset}"
            seen[record.key] = record.offset
