"""Idempotent producers: sequences, epochs, duplicates, expiry, transactions, restarts."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.core.errors import InvalidProducerEpoch, OutOfOrderSequence, TooManyProducers
from headrace.log import producer_snapshot
from headrace.log.os_disk import OsDisk
from headrace.log.partition_log import AppendResult, PartitionLog
from headrace.log.producer_entry import ProducerEntry
from headrace.log.producer_snapshot import CorruptSnapshot, SnapshotEntry
from headrace.log.producer_state import QUIET_MS, ProducerStates
from headrace.log.transaction_index import AbortedTransaction
from tests.unit.log.material import NOW, append, batch_of, open_at
from tests.unit.log.written_partition import verify, write_transaction

LAST = 0x7FFFFFFF


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    return open_at(OsDisk(), str(tmp_path))


def send(log: PartitionLog, sequence: int, *values: bytes, epoch: int = 0, producer: int = 5) -> AppendResult:
    return append(
        log, *(values or (b"x",)), producer_id=producer, producer_epoch=epoch, base_sequence=sequence
    )


def test_sequences_follow_one_another(log: PartitionLog) -> None:
    send(log, 0, b"a", b"b")
    send(log, 2)
    for wrong in (2 + 2, 100):
        with pytest.raises(OutOfOrderSequence):
            send(log, wrong)
    assert send(log, 3).base_offset == 3


def test_the_last_five_batches_are_recognised(log: PartitionLog) -> None:
    for sequence in range(7):
        send(log, sequence)
    for sequence in range(2, 7):
        again = send(log, sequence)
        assert (again.duplicate, again.base_offset, again.last_offset) == (True, sequence, sequence)
    for sequence in (0, 1):
        with pytest.raises(OutOfOrderSequence):
            send(log, sequence)
    assert log.end_offset == 7


def test_a_batch_that_only_begins_like_a_known_one_is_refused(log: PartitionLog) -> None:
    send(log, 0, b"a", b"b")
    with pytest.raises(OutOfOrderSequence):
        send(log, 0, b"a")


def test_sequences_wrap(log: PartitionLog) -> None:
    send(log, LAST - 1, b"a", b"b", b"c")
    entry = log.producers.get(5)
    assert entry is not None
    assert entry.last_sequence == 0
    send(log, 1)
    send(log, LAST, producer=6)
    assert send(log, 0, producer=6).base_offset == 5
    assert send(log, LAST - 1, b"a", b"b", b"c").duplicate


def test_an_unknown_producer_may_begin_anywhere(log: PartitionLog) -> None:
    assert not send(log, 4711).duplicate
    send(log, 4712)


def test_a_new_epoch_begins_with_zero(log: PartitionLog) -> None:
    send(log, 0)
    with pytest.raises(OutOfOrderSequence, match="began its epoch 1"):
        send(log, 1, epoch=1)
    send(log, 0, epoch=1)
    assert send(log, 0, epoch=1).duplicate
    with pytest.raises(InvalidProducerEpoch):
        send(log, 1, epoch=0)


def test_silent_producers_are_forgotten(log: PartitionLog) -> None:
    send(log, 0)
    append(log, b"x", timestamp=NOW + 50, producer_id=6, producer_epoch=0, base_sequence=0)
    assert log.expire_producers(NOW, 0, 100) == 0
    assert log.expire_producers(NOW + 99, 100, 100) == 0
    assert log.expire_producers(NOW + 100, 100, 100) == 1
    assert [entry.producer_id for entry in log.active_producers()] == [6]
    send(log, 77)


def test_a_clock_that_jumps_makes_no_producer_unknown(log: PartitionLog) -> None:
    """Fault 15. What it had under way would be written twice."""
    day = 24 * 60 * 60 * 1000
    send(log, 0)
    assert log.expire_producers(NOW + day, 5000, day) == 0
    send(log, 1)
    assert log.expire_producers(NOW + day, 5000 + QUIET_MS, day) == 0
    assert send(log, 1).duplicate
    assert log.expire_producers(NOW + day, 5000 + 2 * QUIET_MS, day) == 1


def test_batches_under_way_are_known_after_a_clean_stop(tmp_path: Path) -> None:
    """A leader was stopped and started while five batches of a producer waited for their answers: all of them
    are sent again, and the first one is not the last that was written."""
    log = open_at(OsDisk(), str(tmp_path))
    for sequence in range(7):
        send(log, sequence)
    log.close()
    again = open_at(OsDisk(), str(tmp_path))
    for sequence in range(2, 7):
        assert send(again, sequence).duplicate
    with pytest.raises(OutOfOrderSequence):
        send(again, 1)
    again.close()


def test_a_snapshot_of_kafka_has_one_batch_for_each_producer() -> None:
    written = [SnapshotEntry(5, 0, 9, 20, 3, NOW, -1, 18), SnapshotEntry(6, 1, 2, 4, 0, NOW, -1, -1)]
    states = ProducerStates()
    states.restore(written, 21)
    assert {entry.producer_id: entry.last_sequence for entry in states} == {5: 9, 6: 2}
    assert states.snapshot() == written


def test_producers_survive_a_clean_stop_and_a_kill(tmp_path: Path) -> None:
    log = open_at(OsDisk(), str(tmp_path))
    for sequence in range(6):
        send(log, sequence, b"a", b"b") if sequence == 0 else send(log, sequence + 1)
    log.close()
    log = open_at(OsDisk(), str(tmp_path), clean=True, recovery_point=7)
    assert send(log, 6).duplicate, "a snapshot keeps the last batch"
    send(log, 7)
    del log
    killed = open_at(OsDisk(), str(tmp_path), recovery_point=7)
    assert [batch.last_sequence for batch in _entry(killed).batches] == [3, 4, 5, 6, 7]
    assert send(killed, 7).duplicate
    with pytest.raises(OutOfOrderSequence):
        send(killed, 9)


def _entry(log: PartitionLog, producer: int = 5) -> ProducerEntry:
    entry = log.producers.get(producer)
    assert entry is not None
    return entry


def test_a_truncation_takes_producers_back(log: PartitionLog) -> None:
    for sequence in range(4):
        send(log, sequence)
    log.truncate_to(2)
    with pytest.raises(OutOfOrderSequence):
        send(log, 4)
    assert send(log, 2).base_offset == 2
    log.truncate_fully_and_start_at(100)
    assert not list(log.active_producers())


def test_a_snapshot_is_written_at_each_roll_and_at_the_close(tmp_path: Path) -> None:
    log = open_at(OsDisk(), str(tmp_path))
    send(log, 0)
    log.roll(NOW)
    send(log, 1)
    log.close()
    names = sorted(path.name for path in Path(log.path).glob("*.snapshot"))
    assert names == [f"{1:020d}.snapshot", f"{2:020d}.snapshot"]
    content = (Path(log.path) / names[1]).read_bytes()
    assert producer_snapshot.decode(content) == [
        SnapshotEntry(5, 0, 0, 0, 0, NOW, -1, -1),
        SnapshotEntry(5, 0, 1, 1, 0, NOW, -1, -1),
    ]


def test_the_bytes_of_a_snapshot() -> None:
    entry = SnapshotEntry(1, 2, 3, 4, 5, 6, 7, -1)
    content = producer_snapshot.encode([entry])
    assert content[:2] == b"\0\1"
    assert content[6:10] == b"\0\0\0\1"
    assert content[10:] == bytes.fromhex(
        "0000000000000001000200000003000000000000000400000005000000000000000600000007" + "ff" * 8
    )
    assert producer_snapshot.decode(content) == [entry]
    assert producer_snapshot.decode(producer_snapshot.encode([])) == []


@pytest.mark.parametrize("position", range(10 + 46))
def test_a_changed_snapshot_is_refused(position: int) -> None:
    content = bytearray(producer_snapshot.encode([SnapshotEntry(1, 2, 3, 4, 5, 6, 7, 8)]))
    content[position] ^= 4
    with pytest.raises(CorruptSnapshot):
        producer_snapshot.decode(bytes(content))
    with pytest.raises(CorruptSnapshot):
        producer_snapshot.decode(bytes(content[:position]))


def test_transactions_hold_back_the_stable_offset_and_aborts_are_indexed(log: PartitionLog) -> None:
    append(log, b"plain")
    verify(log, 8)
    append(log, b"open", producer_id=8, producer_epoch=0, base_sequence=0, transactional=True)
    assert log.last_stable_offset(log.end_offset) == 1
    write_transaction(log, producer_id=9, sequence=0, commit=False)
    assert log.active_segment.transactions.entries() == [AbortedTransaction(9, 2, 3, 1)]
    assert log.last_stable_offset(log.end_offset) == 1
    write_transaction(log, producer_id=9, sequence=1, commit=True)
    assert len(log.active_segment.transactions.entries()) == 1
    assert _entry(log, 9).coordinator_epoch == 3
    log.expire_producers(NOW * 2, 0, 1)
    assert log.expire_producers(NOW * 2, 1, 1) == 1, "the one with an open transaction stays"


def test_aborts_are_indexed_again_by_recovery(tmp_path: Path) -> None:
    log = open_at(OsDisk(), str(tmp_path))
    write_transaction(log, producer_id=9, sequence=0, commit=False)
    verify(log, 8)
    append(log, b"open", leader_epoch=1, producer_id=8, producer_epoch=0, base_sequence=0, transactional=True)
    before = log.active_segment.transactions.entries()
    log.truncate_to(3)
    again = open_at(OsDisk(), str(tmp_path))
    assert again.active_segment.transactions.entries() == before == [AbortedTransaction(9, 0, 1, 2)]
    assert again.last_stable_offset(3) == 2
    again.truncate_to(1)
    assert again.active_segment.transactions.entries() == []
    assert again.last_stable_offset(1) == 0, "the transaction is open again"


def test_a_state_knows_nothing_at_first() -> None:
    states = ProducerStates()
    assert states.check(batch_of(b"a", producer_id=1, producer_epoch=3, base_sequence=9)[1]) is None
    assert len(states) == 0
    assert states.first_undecided_offset is None
    assert states.first_unstable_offset(0) is None


def test_a_producer_that_is_new_needs_room_and_one_that_is_known_does_not(log: PartitionLog) -> None:
    asked = 0

    def refuse() -> bool:
        nonlocal asked
        asked += 1
        return False

    send(log, 0)
    log.directory.on_new_producer = refuse
    send(log, 1)
    assert not asked, "whoever is known costs nothing"
    with pytest.raises(TooManyProducers):
        send(log, 0, producer=6)
    log.truncate_to(1)
    with pytest.raises(TooManyProducers):
        send(log, 0, producer=6)
    log.directory.on_new_producer = lambda: True
    send(log, 0, producer=6)


def test_room_is_made_of_those_who_are_silent(log: PartitionLog) -> None:
    send(log, 0)
    send(log, 0, producer=6)
    assert log.producers.forget_silent(1000, 500) == 0, "from the first look on"
    send(log, 1, producer=6)
    assert log.producers.forget_silent(1499, 500) == 0
    assert log.producers.forget_silent(1500, 500) == 1
    assert [entry.producer_id for entry in log.active_producers()] == [6]
