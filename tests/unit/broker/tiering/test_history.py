"""One partition's history over a store in memory: what is copied, what may go from the disk, what is read."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from crc32c import crc32c

from headrace.broker.tiering.chunks import ChunkCache
from headrace.broker.tiering.fetch_job import HistoryReader
from headrace.broker.tiering.history import PartitionHistory
from headrace.config.broker import BrokerConfig
from headrace.core.errors import CorruptBatch, HistoryUnavailable
from headrace.core.ports_objects import Found
from headrace.log.os_disk import OsDisk
from headrace.log.producer_snapshot import decode as decode_producers
from headrace.testing.simulation.memory_objects import MemoryObjects
from headrace.tier.calls import carry_out
from headrace.tier.jobs import UploadJob
from tests.unit.log.material import NOW, batch_of
from tests.unit.replication.replicas import (
    LOCAL,
    answer,
    append,
    fetched,
    finish_truncation,
    new_partition,
    registered,
    row,
)
from tests.unit.tier.scripted import PLACE

SEGMENTS = 8
IN_EACH = 5
SETTINGS: dict[str, Any] = {
    "segment_bytes": 1 << 20,
    "remote_storage_enable": True,
    "local_retention_bytes": 0,
    "retention_ms": -1,
}


class Tiered:
    """A replica on a disk of its own, with the store that all share."""

    def __init__(self, store: MemoryObjects, directory: Path) -> None:
        directory.mkdir()
        self.store = store
        self.partition = new_partition(OsDisk(), str(directory), **SETTINGS)
        numbers = count(1)
        self.history = PartitionHistory(
            self.partition,
            PLACE,
            BrokerConfig.parse({}),
            lambda: UUID(int=next(numbers) + id(self)),
            lambda _: None,
        )
        self.partition.history = self.history
        self.cache = ChunkCache(OsDisk(), str(directory), 1 << 30)

    def lead(self, epoch: int, isr: tuple[int, ...] = (1,)) -> None:
        self.partition.assign(row(LOCAL, epoch, isr, replicas=(1, 2)), LOCAL, 0.0)
        self.history.follow_role()

    def fill(self, segments: int = SEGMENTS, **fields: int) -> None:
        for _ in range(segments):
            for _ in range(IN_EACH):
                offset = self.partition.log.end_offset
                append(self.partition, b"value of %d" % offset * 50, timestamp=NOW + offset, **fields)
            self.partition.log.roll(NOW)

    def settle(self) -> None:
        """All jobs that there are."""
        while (job := self.history.machine.take(self.history.local(), NOW)) is not None:
            self.history.machine.done(job, carry_out(self.store, job.run(), 5.0), NOW)

    def forget_locally(self) -> int:
        job = self.history.take_local_retention(NOW)
        if job is None:
            return 0
        job.run()
        return job.done(NOW)

    def reader(self) -> HistoryReader:
        manifest = self.history.manifest
        assert manifest is not None
        return HistoryReader(self.store, PLACE, manifest, self.cache, 5.0)


@pytest.fixture
def store() -> MemoryObjects:
    return MemoryObjects(lambda: NOW)


@pytest.fixture
def leader(store: MemoryObjects, tmp_path: Path) -> Tiered:
    tiered = Tiered(store, tmp_path / "leader")
    tiered.lead(1)
    tiered.fill()
    return tiered


def test_tier_invariant_05_nothing_goes_from_the_disk_before_a_manifest_was_read(leader: Tiered) -> None:
    assert leader.forget_locally() == 0
    leader.settle()
    assert leader.forget_locally() == SEGMENTS
    assert leader.partition.log.log_start_offset == SEGMENTS * IN_EACH
    assert leader.history.log_start_offset == 0


def test_tier_invariant_06_where_it_begins_is_not_known_before_a_manifest_was_read(leader: Tiered) -> None:
    assert leader.history.log_start_offset is None
    assert leader.history.durable_log_start == -1
    leader.partition.log.take_removal(IN_EACH)
    with pytest.raises(HistoryUnavailable):
        leader.partition.diverging(0, SEGMENTS * IN_EACH)


def test_a_producer_is_told_where_the_history_begins_and_not_the_disk(leader: Tiered) -> None:
    def told() -> int:
        batch, header = batch_of(b"one more")
        return leader.partition.append(batch, header, acks=1, now_ms=NOW).log_start_offset

    assert told() == -1, "the manifest was not read yet"
    leader.settle()
    assert leader.forget_locally() == SEGMENTS
    assert told() == 0


def test_tier_invariant_17_checksums_in_the_manifest_are_those_of_the_bytes(
    leader: Tiered, store: MemoryObjects
) -> None:
    leader.settle()
    manifest = leader.history.manifest
    assert manifest is not None
    assert len(manifest.segments) == SEGMENTS
    for each in manifest.segments:
        for key, stored in (
            (PLACE.folder.records(each.name), each.records),
            (PLACE.folder.indexes(each.name), each.indexes),
        ):
            found = store.get(key, deadline_seconds=5.0)
            assert isinstance(found, Found)
            assert (len(found.data), crc32c(found.data)) == stored


def test_what_is_damaged_on_the_disk_is_not_uploaded(leader: Tiered) -> None:
    path = Path(leader.partition.log.segments[0].path(".log"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptBatch):
        leader.settle()


@pytest.mark.parametrize("offset", [0, 3, IN_EACH, SEGMENTS * IN_EACH - 1])
def test_history_is_read_from_any_offset(leader: Tiered, offset: int) -> None:
    leader.settle()
    chunk = leader.reader().chunk_at(offset)
    assert chunk.first_offset <= offset < chunk.next_offset
    found = chunk.range_from(offset, 1, min_one=True)
    assert found is not None
    assert b"value of %d" % offset in found.file.pread(found.length, found.position)


def test_what_is_damaged_in_the_store_is_not_given_to_a_reader(leader: Tiered, store: MemoryObjects) -> None:
    leader.settle()
    assert leader.history.manifest is not None
    key = PLACE.folder.records(leader.history.manifest.segments[0].name)
    found = store.get(key, deadline_seconds=5.0)
    assert isinstance(found, Found)
    data = bytearray(found.data)
    data[len(data) // 2] ^= 1
    store.put(key, bytes(data), deadline_seconds=5.0)
    with pytest.raises(HistoryUnavailable):
        leader.reader().chunk_at(0)


@pytest.mark.parametrize("offset", [0, 1, 7, SEGMENTS * IN_EACH - 1])
def test_tier_invariant_15_a_time_is_found_in_the_store(leader: Tiered, offset: int) -> None:
    leader.settle()
    found = leader.reader().first_at(NOW + offset, 0, SEGMENTS * IN_EACH)
    assert found is not None
    assert (found.offset, found.timestamp, found.leader_epoch) == (offset, NOW + offset, 1)
    assert leader.reader().first_at(NOW + 1_000, 0, SEGMENTS * IN_EACH) is None
    newest = leader.reader().newest(0)
    assert newest is not None
    assert newest.offset == SEGMENTS * IN_EACH - 1


def test_epochs_before_the_local_log_are_those_of_the_manifest(leader: Tiered) -> None:
    leader.lead(4)
    leader.fill()
    leader.settle()
    leader.forget_locally()
    end = SEGMENTS * IN_EACH
    assert leader.partition.log.epochs.entries == [(4, 2 * end)]
    assert leader.partition.end_offset_for_epoch(1) == (1, end)
    assert leader.partition.diverging(1, end) is None
    assert leader.partition.diverging(1, end + 1) == (1, end)
    assert leader.history.epoch_of(3) == 1


def test_a_follower_that_kept_more_of_the_log_is_admitted(leader: Tiered) -> None:
    """What it has before the leader's log begins was compared by the epochs of the manifest."""
    leader.settle()
    leader.forget_locally()
    leader.lead(2)
    partition = leader.partition
    partition.on_replica_fetch(2, 100, partition.log.end_offset, 0.0, 0)
    proposal = partition.proposed_isr(0.0, 10.0, registered)
    assert proposal is not None
    assert proposal.isr == (1, 2)


def test_tier_invariant_13_a_follower_begins_where_the_store_ends_with_what_is_known_there(
    leader: Tiered, store: MemoryObjects, tmp_path: Path
) -> None:
    leader.settle()
    follower = Tiered(store, tmp_path / "follower")
    follower.partition.assign(row(2, 1, (2,), replicas=(1, 2)), LOCAL, 0.0)
    sent = follower.partition.fetch_position()
    assert sent is not None
    moved = answer(error=109, log_start=0)
    fetched(follower.partition, sent, moved)
    assert follower.history.wants_begin
    follower.settle()
    beginning = follower.reader().beginning()
    assert follower.history.begin_at(beginning)
    finish_truncation(follower.partition)
    log, end = follower.partition.log, SEGMENTS * IN_EACH
    assert (log.log_start_offset, log.end_offset, log.latest_epoch) == (end, end, 1)
    assert log.producers.snapshot() == beginning.producers
    snapshot = leader.partition.log.folder.snapshot_path(end)
    assert beginning.producers == decode_producers(Path(snapshot).read_bytes())
    assert follower.history.log_start_offset == 0


def test_history_before_a_gap_is_given_up(leader: Tiered) -> None:
    leader.settle()
    leader.fill(1)
    end = leader.partition.log.end_offset
    leader.partition.delete_records_before(end)
    assert leader.history.log_start_offset == end
    leader.settle()
    manifest = leader.history.manifest
    assert manifest is not None
    assert (manifest.start, manifest.ranges) == (end, ())


def test_tier_invariant_16_deleted_records_count_as_deleted_once_the_manifest_says_so(leader: Tiered) -> None:
    leader.settle()
    leader.forget_locally()
    assert leader.partition.delete_records_before(7) == 7
    assert leader.history.log_start_offset == 7
    assert leader.partition.low_watermark(lambda _: False) == 0
    leader.settle()
    assert leader.partition.low_watermark(lambda _: False) == 7


def test_switched_off_all_of_it_goes_and_the_log_stays(leader: Tiered) -> None:
    leader.settle()
    leader.history.machine.gives_up_history = True
    leader.settle()
    manifest = leader.history.manifest
    assert manifest is not None
    assert not manifest.ranges
    assert len(manifest.removed) == SEGMENTS
    assert leader.history.log_start_offset == leader.partition.log.log_start_offset == 0


def test_only_one_upload_is_made_at_a_time(leader: Tiered) -> None:
    leader.settle()
    leader.fill(2)
    first = leader.history.machine.take(leader.history.local(), NOW)
    assert isinstance(first, UploadJob)
    assert leader.history.machine.take(leader.history.local(), NOW) is None


def test_records_without_a_time_are_as_old_as_their_file(store: MemoryObjects, tmp_path: Path) -> None:
    """They are not older than everything: retention would delete them at once."""
    tiered = Tiered(store, tmp_path / "timeless")
    tiered.lead(1)
    append(tiered.partition, b"a", timestamp=-1)
    tiered.partition.log.roll(NOW)
    path = tiered.partition.log.segments[0].path(".log")
    written = OsDisk().modified_ms(path)
    tiered.settle()
    manifest = tiered.history.manifest
    assert manifest is not None
    assert [each.max_timestamp for each in manifest.segments] == [written]


def test_local_retention_asks_no_disk_for_times_that_memory_does_not_have(leader: Tiered) -> None:
    for segment in leader.partition.log.segments[:-1]:
        segment.forget_timestamps()
    assert all(each.max_timestamp > NOW + 10**12 for each in leader.history.local().sealed)
    leader.settle()
    assert [each.max_timestamp for each in leader.history.local().sealed] == [
        NOW + (number + 1) * IN_EACH - 1 for number in range(SEGMENTS)
    ]
