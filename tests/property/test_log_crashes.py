"""Two thousand crashes of a log on a disk that loses, tears and flips.

What was synced is there after the restart; what is corrupt is never served; everything that is derived from
the batches (indexes, producers, epochs) agrees with them. A failing seed says how to run it alone.
"""

from __future__ import annotations

import os
from random import Random
from typing import Any
from uuid import UUID

import pytest

from headrace.core.errors import CorruptLog, StorageError
from headrace.core.ids import TopicPartition
from headrace.log import scan
from headrace.log.directory_identity import DirectoryIdentity
from headrace.log.leader_epochs import LeaderEpochs
from headrace.log.manager import LogManager
from headrace.log.producer_replay import apply_batch
from headrace.log.producer_state import ProducerStates
from headrace.protocol.batch import BatchHeader, check
from headrace.protocol.records import NewRecord, Record, decode_records, encode_batch
from headrace.testing.disk import SimulatedDisk
from tests.property.seeds import run_all
from tests.unit.log.material import NOW, topic_config, whole_batches
from tests.unit.log.transactional_writes import marker, write

SEEDS = int(os.environ.get("HEADRACE_CRASH_SEEDS", "2000"))
CHUNKS = 8
PARTITION = TopicPartition("t", 0)
TRANSACTIONAL = (7, 8, 9)
LIVES = 3


class Campaign:
    """One seed: a few lives of one log, each ended by a crash, and what must be true of it."""

    gapless = True

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.disk = SimulatedDisk(seed)
        self.config = topic_config(
            segment_bytes=self.random.choice((450, 700, 3000)),
            index_interval_bytes=self.random.choice((0, 150, 600)),
        )
        self.records: dict[int, tuple[bytes, int]] = {}
        """What was appended last at each offset: value and timestamp."""
        self.end = 0
        self.synced = 0
        self.promised = 0
        """The recovery point on the disk: damage below it is noticed as such."""
        self.start = self.start_on_disk = self.highest_start = 0
        self.epoch = 0
        self.sequences: dict[int, int] = {}
        self.flipped_log = False
        """For good: a bit of an old leader epoch, which no checksum covers, stays as it is."""
        self.flipped_index = False
        """For good too: nothing covers the index of aborted transactions, as with Kafka."""
        self.manager = self.open_manager()
        self.log = self.manager.create(PARTITION, UUID(int=5), NOW)

    def open_manager(self) -> LogManager:
        manager = LogManager(
            self.disk,
            ["/data"],
            DirectoryIdentity("c", 1),
            lambda _: self.config,
            new_uuid=lambda: UUID(int=self.random.getrandbits(128)),
            threads_per_directory=1,
        )
        manager.open_all(NOW)
        return manager

    # --- a life ---

    def step(self) -> None:
        act = self.random.choices(
            (
                self.append,
                self.append_in_transaction,
                self.end_transaction,
                self.flush,
                self.checkpoint,
                self.roll,
                self.truncate,
                self.delete,
                self.new_epoch,
            ),
            (46, 8, 6, 12, 8, 6, 4, 4, 4),
        )[0]
        act()

    def append(self) -> None:
        count = self.random.randint(1, 3)
        values = [self.random.randbytes(self.random.randint(1, 120)) for _ in range(count)]
        times = [NOW + self.random.randint(0, 10_000) for _ in values]
        fields: dict[str, Any] = {}
        producer = self.random.randint(0, 4)
        if producer < 3:
            sequence = self.sequences.get(producer, 0)
            fields = {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequence}
            self.sequences[producer] = sequence + count
        batch = encode_batch(
            [NewRecord(value, None, when) for value, when in zip(values, times, strict=True)], **fields
        )
        header = check(batch)
        done = self.log.append_as_leader(batch, header, leader_epoch=self.epoch, now_ms=NOW)
        assert done.base_offset == self.end
        for offset, found in enumerate(zip(values, times, strict=True), self.end):
            self.records[offset] = found
        self.end += count
        if fields and self.random.random() < 0.2:
            again = self.log.append_as_leader(batch, header, leader_epoch=self.epoch, now_ms=NOW)
            assert again.duplicate
            assert again.base_offset == done.base_offset

    def append_in_transaction(self) -> None:
        producer = self.random.choice(TRANSACTIONAL)
        known = self.log.producers.get(producer)
        epoch, sequence = (0, 0) if known is None else (known.epoch, known.last_sequence + 1)
        values = [self.random.randbytes(self.random.randint(1, 60)) for _ in range(self.random.randint(1, 2))]
        write(self.log, producer, sequence, *values, epoch=epoch, leader_epoch=self.epoch)
        for place, value in enumerate(values):
            self.records[self.end] = (value, NOW + place)
            self.end += 1

    def end_transaction(self) -> None:
        """With an epoch that is raised, or with the same."""
        open_ones = [entry for entry in self.log.active_producers() if entry.txn_first_offset >= 0]
        if open_ones:
            entry = self.random.choice(open_ones)
            raised = self.random.randint(0, 1)
            commit = self.random.random() < 0.5
            batch = marker(entry.producer_id, entry.epoch + raised, commit=commit)
            self.log.append_as_leader(
                batch, check(batch), leader_epoch=self.epoch, now_ms=NOW, from_client=False
            )
            record = next(decode_records(batch))
            self.records[self.end] = (bytes(record.value or b""), NOW)
            self.end += 1

    def flush(self) -> None:
        self.log.flush()
        assert self.log.recovery_point == self.end
        self.synced = self.end

    def checkpoint(self) -> None:
        start, promised = self.log.log_start_offset, self.log.recovery_point
        for job in self.manager.take_checkpoint({}):
            job.run()
        self.start_on_disk, self.promised = start, promised

    def roll(self) -> None:
        self.log.roll(NOW)

    def truncate(self) -> None:
        if self.end > self.start:
            self.log.truncate_to(self.random.randint(self.start, self.end))
            self.end = self.log.end_offset
            self.synced = min(self.synced, self.end)
            self.promised = min(self.promised, self.end)
            assert self.log.log_start_offset == self.start
            self.sequences = {}
            for entry in self.log.active_producers():
                self.sequences[entry.producer_id] = entry.last_sequence + 1

    def delete(self) -> None:
        self.start = self.log.delete_records_before(self.random.randint(self.start, self.end))
        self.highest_start = max(self.start, self.highest_start)
        self.log.enforce_retention(NOW, self.end)
        self.log.folder.delete_expired_files(NOW + self.random.choice((0, 100_000)))

    def new_epoch(self) -> None:
        self.epoch += 1

    # --- the crash ---

    def crash(self) -> None:
        self.disk.crash()
        if self.random.random() < 0.5:
            self.flip()

    def flip(self) -> None:
        """A bit somewhere, as often as not in a `.log`; never in the checkpoints of the whole directory."""
        under = self.disk.files(f"/data/{PARTITION}/")
        logs = [path for path in under if path.endswith(".log") and self.disk.size(path)]
        others = [path for path in under if not path.endswith(".log") and self.disk.size(path)]
        chosen = self.random.choice((logs, others)) or logs or others
        if chosen:
            path = self.random.choice(chosen)
            self.disk.flip(path, self.random.randrange(self.disk.size(path) * 8))
            self.flipped_log |= path.endswith(".log")
            self.flipped_index |= path.endswith(".txnindex")

    def restart(self) -> bool:
        """False when the partition was put aside, which only damage to its synced batches may do."""
        self.manager = self.open_manager()
        if PARTITION in self.manager.quarantined:
            assert self.flipped_log, self.manager.quarantined[PARTITION]
            with pytest.raises(StorageError):
                self.manager.get(PARTITION)
            return False
        if PARTITION not in self.manager.logs:
            assert self.synced == 0, "the whole partition is gone"
            return False
        self.log = self.manager.get(PARTITION)
        return True

    # --- what must be true ---

    def verify(self) -> bool:
        """False when a corrupt batch was met by the check of a cold read, and so not served."""
        log = self.log
        assert log.end_offset >= (self.promised if self.flipped_log else self.synced)
        assert log.end_offset <= max(self.end, log.log_start_offset)
        assert self.start_on_disk <= log.log_start_offset <= max(self.start, log.end_offset)
        try:
            self.verify_served(self.serve())
        except CorruptLog:
            assert self.flipped_log
            return False
        self.end = log.end_offset
        self.synced = self.promised = log.recovery_point
        self.start = log.log_start_offset
        return True

    def verify_served(self, served: list[Record]) -> None:
        offsets = [record.offset for record in served]
        assert offsets == self.expected_offsets()
        for record in served:
            assert (record.value, record.timestamp) == self.records[record.offset]
        self.verify_derived(served)

    def expected_offsets(self) -> list[int]:
        return list(range(self.log.log_start_offset, self.log.end_offset))

    def serve(self) -> list[Record]:
        """Everything, asked for at each batch, and checked as a cold read is."""
        served: list[Record] = []
        self.headers: list[BatchHeader] = []
        self.batches: list[bytes] = []
        at = self.log.log_start_offset
        while at < self.log.end_offset:
            found = self.log.read(at, 1 << 20, limit=self.log.end_offset, min_one=True)
            scan.verify_range(found.file, found.position, found.length, at, gapless=self.gapless)
            data, place = found.file.pread(found.length, found.position), 0
            batches = whole_batches(data)
            assert batches, f"nothing is served at {at}"
            for header, inside in batches:
                served += [record for record in inside if record.offset >= self.log.log_start_offset]
                self.headers.append(header)
                self.batches.append(bytes(data[place : place + header.size]))
                place += header.size
                at = header.next_offset
        return served

    def verify_derived(self, served: list[Record]) -> None:
        log = self.log
        for header in self.headers:
            found = log.read(
                max(header.base_offset, log.log_start_offset), 1, limit=log.end_offset, min_one=True
            )
            assert found.length == header.size
        when = NOW + self.random.randint(0, 10_000)
        expected = next((record for record in served if record.timestamp >= when), None)
        looked_up = log.offset_for_timestamp(when, log.end_offset)
        assert (looked_up and looked_up.offset) == (expected and expected.offset)
        if self.flipped_log or log.log_start_offset > 0:
            return  # epochs and producers also know what lies before the log start
        states, epochs = ProducerStates(), LeaderEpochs(self.disk, "/nowhere")
        aborted = []
        for header, batch in zip(self.headers, self.batches, strict=True):
            ended = apply_batch(states, header, lambda found=batch: found)  # type: ignore[misc]  # mypy cannot infer a lambda with defaults
            if ended is not None and ended.aborted:
                stable = states.first_undecided_offset
                decided = ended.last_offset + 1 if stable is None else stable
                aborted.append((ended.producer_id, ended.first_offset, ended.last_offset, decided))
            epochs.note(header.leader_epoch, header.base_offset)
        if not self.flipped_index:
            indexed = [each for segment in log.segments for each in segment.transactions.entries()]
            assert indexed == aborted
        assert log.last_stable_offset(log.end_offset) == states.first_unstable_offset(log.end_offset) or (
            states.first_undecided_offset is None and log.last_stable_offset(log.end_offset) == log.end_offset
        )
        assert _from(epochs.entries, self.highest_start) == _from(log.epochs.entries, self.highest_start)
        known = {entry.producer_id: entry.as_snapshot() for entry in log.active_producers()}
        assert known == {entry.producer_id: entry.as_snapshot() for entry in states}

    def go_on(self) -> None:
        self.epoch = max(self.epoch, self.log.latest_epoch) + 1
        self.sequences = {entry.producer_id: entry.last_sequence + 1 for entry in self.log.active_producers()}


def _from(entries: list[tuple[int, int]], start: int) -> list[tuple[int, int]]:
    """Epochs as they are known from `start` on. What was deleted may come back, its epochs need not."""
    earlier = [epoch for epoch, begins in entries if begins <= start]
    later = [entry for entry in entries if entry[1] > start]
    return [(earlier[-1], start), *later] if earlier else later


def run_seed(seed: int) -> None:
    campaign = Campaign(seed)
    for _ in range(LIVES):
        for _ in range(campaign.random.randint(3, 18)):
            campaign.step()
        campaign.crash()
        if not campaign.restart() or not campaign.verify():
            return
        campaign.go_on()


@pytest.mark.parametrize("seed", [21093])
def test_what_long_campaigns_found(seed: int) -> None:
    """21093: a flipped bit in the base offset of a sealed batch made a read answer with nothing, for ever."""
    run_seed(seed)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_crash_loses_nothing_that_was_synced(chunk: int) -> None:
    run_all(run_seed, range(chunk, SEEDS, CHUNKS))


def test_the_records_of_a_seed_are_readable() -> None:
    """The campaign's own reading is not blind: a batch that was changed fails it."""
    campaign = Campaign(1)
    campaign.append()
    campaign.flush()
    found = campaign.log.read(0, 1 << 20, limit=campaign.end, min_one=True)
    batch = bytearray(found.file.pread(found.length, found.position))
    assert [record.offset for record in decode_records(batch)] == list(range(campaign.end))
    campaign.disk.flip(f"/data/{PARTITION}/{0:020d}.log", 8 * (len(batch) - 1))
    campaign.flipped_log = True
    assert campaign.verify() is False


class Damaged(Campaign):
    """After the crash a file is lost as well, of which the disk had promised to hold everything."""

    def lose_a_file(self) -> bool:
        """A segment with something between the log start and the recovery point that are on the disk."""
        bases = [segment.base_offset for segment in self.log.segments]
        ends = [*bases[1:], self.log.end_offset]
        paths = [f"/data/{PARTITION}/{base:020d}.log" for base in bases]
        promised = [
            path
            for path, base, end in zip(paths, bases, ends, strict=True)
            if base < self.promised and end > self.start and self.disk.exists(path)
        ]
        if promised:
            self.disk.remove(self.random.choice(promised))
        return bool(promised)


def run_damaged_seed(seed: int) -> None:
    campaign = Damaged(seed)
    for _ in range(LIVES - 1):
        for _ in range(campaign.random.randint(3, 18)):
            campaign.step()
        campaign.disk.crash()
        if not campaign.restart():
            return  # nothing of it was ever synced
        assert campaign.verify()
        campaign.go_on()
    for _ in range(campaign.random.randint(3, 18)):
        campaign.step()
    campaign.flush()
    campaign.checkpoint()
    campaign.disk.crash()
    if not campaign.lose_a_file():
        return
    left = {path: campaign.disk.size(path) for path in campaign.disk.files() if path.endswith(".log")}
    for _ in range(2):  # the second start has forgotten nothing of it
        manager = campaign.open_manager()
        assert PARTITION in manager.quarantined, "a log without one of its files is believed"
        assert {path: campaign.disk.size(path) for path in left} == left


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_file_that_is_lost_with_the_crash_is_noticed(chunk: int) -> None:
    run_all(run_damaged_seed, range(chunk, SEEDS // 4, CHUNKS))
