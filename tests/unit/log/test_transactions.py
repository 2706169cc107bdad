"""Transactions in one log: who may write, what is decided, and what a reader has to pass over."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.core.errors import (
    InvalidProducerEpoch,
    InvalidTransactionState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)
from headrace.log.os_disk import OsDisk
from headrace.log.partition_log import PartitionLog
from headrace.log.producer_entry import ProducerEntry
from headrace.log.transaction_index import AbortedTransaction
from headrace.protocol.batch import check
from headrace.protocol.records import encode_batch
from tests.unit.log.material import NOW, append, open_at, records, topic_config
from tests.unit.log.transactional_writes import end, verify, write


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    return open_at(OsDisk(), str(tmp_path))


def entry(log: PartitionLog, producer: int = 5) -> ProducerEntry:
    found = log.producers.get(producer)
    assert found is not None
    return found


# --- who may write -----------------------------------------------------------------------------------------


def test_a_batch_that_nobody_has_verified_is_refused(log: PartitionLog) -> None:
    with pytest.raises(InvalidTransactionState):
        write(log, 5, 0, verified=False)
    assert log.end_offset == 0
    write(log, 5, 0)
    write(log, 5, 1, verified=False)
    assert entry(log).txn_first_offset == 0


def test_after_a_marker_the_next_transaction_is_verified_again(log: PartitionLog) -> None:
    write(log, 5, 0)
    end(log, 5, commit=True)
    assert log.producers.needs_verification(5, 0)
    with pytest.raises(InvalidTransactionState):
        write(log, 5, 1, verified=False)
    write(log, 5, 1)


def test_a_marker_takes_the_proof_away_before_and_after_the_answer(log: PartitionLog) -> None:
    asked = log.producers.begin_verification(5, 0, 0, raises_epochs=False, now_ms=NOW)
    assert asked is not None
    end(log, 5, commit=False)
    assert not log.producers.end_verification(5, asked), "the answer speaks of a transaction that is over"
    with pytest.raises(InvalidTransactionState):
        write(log, 5, 0, verified=False)
    verify(log, 5)
    end(log, 5, commit=False)
    with pytest.raises(InvalidTransactionState):
        write(log, 5, 0, verified=False)


def test_an_answer_for_an_older_question_proves_nothing(log: PartitionLog) -> None:
    old = log.producers.begin_verification(5, 0, 0, raises_epochs=False, now_ms=NOW)
    assert old is not None
    end(log, 5, commit=False)
    new = log.producers.begin_verification(5, 0, 0, raises_epochs=False, now_ms=NOW)
    assert new is not None
    assert not log.producers.end_verification(5, old)
    assert log.producers.needs_verification(5, 0)


def test_a_newer_epoch_is_verified_by_itself(log: PartitionLog) -> None:
    verify(log, 5, epoch=0)
    assert log.producers.needs_verification(5, 1)
    verify(log, 5, epoch=1)
    with pytest.raises(InvalidProducerEpoch):
        log.producers.begin_verification(5, 0, 0, raises_epochs=False, now_ms=NOW)
    with pytest.raises(InvalidTransactionState):
        write(log, 5, 0, epoch=0, verified=False)
    write(log, 5, 0, epoch=1, verified=False)


def test_a_newer_epoch_that_nobody_has_confirmed_fences_nobody(log: PartitionLog) -> None:
    claimed = log.producers.begin_verification(5, 9, 0, raises_epochs=False, now_ms=NOW)
    assert claimed is not None
    beside = log.producers.begin_verification(5, 0, 0, raises_epochs=False, now_ms=NOW)
    assert beside is not None
    assert not log.producers.end_verification(5, beside), "the newer one may yet be confirmed"
    log.producers.refute_verification(5, claimed)
    verify(log, 5, epoch=0)
    write(log, 5, 0, epoch=0, verified=False)


def test_a_confirmed_epoch_is_not_refuted_by_a_late_answer(log: PartitionLog) -> None:
    verify(log, 5, epoch=1)
    stale = log.producers.begin_verification(5, 1, 0, raises_epochs=False, now_ms=NOW)
    assert stale is not None
    log.producers.refute_verification(5, stale)
    write(log, 5, 0, epoch=1, verified=False)


def test_an_older_epoch_is_fenced_before_anybody_is_asked(log: PartitionLog) -> None:
    write(log, 5, 0, epoch=3)
    with pytest.raises(InvalidProducerEpoch):
        log.producers.begin_verification(5, 2, 0, raises_epochs=False, now_ms=NOW)
    with pytest.raises(InvalidProducerEpoch):
        write(log, 5, 0, epoch=2, verified=False)


def test_a_batch_outside_of_an_open_transaction_is_refused(log: PartitionLog) -> None:
    write(log, 5, 0)
    with pytest.raises(InvalidTransactionState):
        append(log, b"x", producer_id=5, producer_epoch=0, base_sequence=1)
    end(log, 5, commit=True)
    append(log, b"x", producer_id=5, producer_epoch=0, base_sequence=1)


def test_a_repeated_batch_is_recognised_after_its_transaction(log: PartitionLog) -> None:
    assert write(log, 5, 0).base_offset == 0
    end(log, 5, commit=True)
    again = write(log, 5, 0, verified=False)
    assert (again.duplicate, again.base_offset) == (True, 0)


def test_sequences_go_on_over_transactions_of_one_epoch(log: PartitionLog) -> None:
    write(log, 5, 0, b"a", b"b")
    end(log, 5, commit=True)
    with pytest.raises(OutOfOrderSequence):
        write(log, 5, 3)
    write(log, 5, 2)
    end(log, 5, commit=True)
    for wrong in (0, 1):
        with pytest.raises(OutOfOrderSequence):
            write(log, 5, wrong)


def test_a_raised_epoch_begins_with_sequence_zero(log: PartitionLog) -> None:
    write(log, 5, 0)
    end(log, 5, commit=True, epoch=1, version=2)
    with pytest.raises(OutOfOrderSequence):
        write(log, 5, 1, epoch=1)
    assert not write(log, 5, 0, epoch=1).duplicate


def test_a_later_batch_waits_for_the_first(log: PartitionLog) -> None:
    verify(log, 5, sequence=7)
    verify(log, 5, sequence=4)
    with pytest.raises(OutOfOrderSequence):
        write(log, 5, 7, verified=False)
    write(log, 5, 4, b"a", b"b", b"c", verified=False)
    write(log, 5, 7, verified=False)


def test_a_producer_that_begins_each_epoch_anew_begins_with_zero(log: PartitionLog) -> None:
    verify(log, 5, sequence=3, raises_epochs=True)
    with pytest.raises(OutOfOrderSequence):
        write(log, 5, 3, verified=False)
    verify(log, 5, sequence=0, raises_epochs=True)
    write(log, 5, 0, verified=False)


def test_a_coordinator_writes_without_a_sequence(log: PartitionLog) -> None:
    batch = encode_batch(
        records(b"a", b"b", timestamp=NOW), producer_id=5, producer_epoch=2, transactional=True
    )

    def send() -> None:
        log.append_as_leader(batch, check(batch), leader_epoch=0, now_ms=NOW, from_client=False)

    with pytest.raises(InvalidTransactionState):
        send()
    verify(log, 5, epoch=2, sequence=-1)
    send()
    send()
    assert (entry(log).last_sequence, entry(log).txn_first_offset) == (-1, 0)
    end(log, 5, epoch=3, commit=True, version=2)
    with pytest.raises(InvalidProducerEpoch):
        send()


def test_questions_that_nobody_came_back_to_are_forgotten(log: PartitionLog) -> None:
    verify(log, 5)
    log.expire_producers(NOW + 99, 0, 100)
    assert not log.producers.needs_verification(5, 0)
    log.expire_producers(NOW + 100, 0, 100)
    assert log.producers.needs_verification(5, 0)


# --- markers -----------------------------------------------------------------------------------------------


def test_a_marker_of_an_older_epoch_is_refused(log: PartitionLog) -> None:
    write(log, 5, 0, epoch=4)
    with pytest.raises(InvalidProducerEpoch):
        end(log, 5, commit=True, epoch=3)
    end(log, 5, commit=True, epoch=4)
    end(log, 5, commit=False, epoch=5)
    assert entry(log).epoch == 5


def test_a_marker_of_an_older_coordinator_is_refused(log: PartitionLog) -> None:
    write(log, 5, 0)
    end(log, 5, commit=True, coordinator_epoch=7)
    write(log, 5, 1)
    with pytest.raises(TransactionCoordinatorFenced):
        end(log, 5, commit=True, coordinator_epoch=6)
    end(log, 5, commit=True, coordinator_epoch=7)
    assert entry(log).coordinator_epoch == 7


def test_where_epochs_are_raised_a_marker_has_a_higher_one(log: PartitionLog) -> None:
    write(log, 5, 0, epoch=4)
    with pytest.raises(InvalidProducerEpoch):
        end(log, 5, commit=True, epoch=4, version=2)
    end(log, 5, commit=True, epoch=5, version=2)
    end(log, 5, commit=True, epoch=5, version=2)  # sent once more: nothing is open
    write(log, 5, 0, epoch=5)
    with pytest.raises(InvalidProducerEpoch):
        end(log, 5, commit=True, epoch=5, version=2)
    assert entry(log).txn_first_offset == 3


def test_the_last_epoch_of_all_cannot_be_raised(log: PartitionLog) -> None:
    write(log, 5, 0, epoch=0x7FFF)
    end(log, 5, commit=False, epoch=0x7FFF, version=2)
    assert entry(log).txn_first_offset == -1


def test_a_marker_without_a_transaction_ends_nothing(log: PartitionLog) -> None:
    end(log, 5, commit=False)
    assert log.active_segment.transactions.entries() == []
    assert log.last_stable_offset(log.end_offset) == 1


# --- what is decided ---------------------------------------------------------------------------------------


def test_a_marker_decides_once_it_is_committed(log: PartitionLog) -> None:
    append(log, b"plain")
    write(log, 5, 0)
    append(log, b"plain")
    assert [log.last_stable_offset(mark) for mark in (0, 1, 2, 3)] == [0, 1, 1, 1]
    end(log, 5, commit=True)
    assert [log.last_stable_offset(mark) for mark in (2, 3, 4)] == [1, 1, 4]


def test_an_ended_transaction_holds_back_less_than_an_older_open_one(log: PartitionLog) -> None:
    write(log, 5, 0)
    write(log, 6, 0)
    end(log, 6, commit=True)
    assert log.last_stable_offset(2) == 0
    end(log, 5, commit=True)
    assert log.last_stable_offset(2) == 0
    assert log.last_stable_offset(3) == 0, "the marker of 6 is committed, that of 5 is not"
    assert log.last_stable_offset(4) == 4


def test_an_ended_transaction_may_hold_back_more_than_an_open_one(log: PartitionLog) -> None:
    write(log, 6, 0)
    write(log, 5, 0)
    end(log, 6, commit=True)
    assert log.last_stable_offset(2) == 0
    assert log.last_stable_offset(3) == 1


def test_deleted_records_hold_back_nobody(log: PartitionLog) -> None:
    write(log, 5, 0, b"a", b"b", b"c")
    append(log, b"plain")
    log.delete_records_before(2)
    assert log.last_stable_offset(4) == 2
    log.delete_records_before(4)
    assert log.last_stable_offset(4) == 4
    assert entry(log).txn_first_offset == 0, "it is still open"
    end(log, 5, commit=False)
    assert log.active_segment.transactions.entries() == [AbortedTransaction(5, 0, 4, 5)]


def test_retention_may_remove_an_open_transaction(tmp_path: Path) -> None:
    config = topic_config(retention_ms=1000)
    log = open_at(OsDisk(), str(tmp_path), config=config)
    write(log, 5, 0)
    log.roll(NOW)
    append(log, b"plain", timestamp=NOW + 5000)
    assert log.enforce_retention(NOW + 5000, log.end_offset) == 1
    assert (log.log_start_offset, log.last_stable_offset(2)) == (1, 1)
    log.close()
    again = open_at(OsDisk(), str(tmp_path), config=config, clean=True, recovery_point=2, log_start_offset=1)
    assert (entry(again).txn_first_offset, again.last_stable_offset(2)) == (0, 1)


@pytest.mark.parametrize("clean", [True, False])
def test_a_restart_knows_open_and_ended_transactions(tmp_path: Path, clean: bool) -> None:
    log = open_at(OsDisk(), str(tmp_path))
    write(log, 5, 0)
    write(log, 6, 0)
    log.roll(NOW)
    end(log, 5, commit=True, epoch=1, version=2)
    write(log, 7, 0)
    end(log, 7, commit=False)
    before = [each.as_snapshot() for each in log.active_producers()]
    if clean:
        log.close()
    again = open_at(OsDisk(), str(tmp_path), clean=clean, recovery_point=5 if clean else 0)
    assert [each.as_snapshot() for each in again.active_producers()] == before
    assert again.last_stable_offset(5) == 1
    assert again.segments[1].transactions.entries() == [AbortedTransaction(7, 3, 4, 1)]
    with pytest.raises(InvalidTransactionState):
        write(again, 8, 0, verified=False)


def test_recovery_holds_back_a_marker_that_is_not_committed(tmp_path: Path) -> None:
    log = open_at(OsDisk(), str(tmp_path))
    write(log, 5, 0)
    end(log, 5, commit=True)
    again = open_at(OsDisk(), str(tmp_path))
    assert (again.last_stable_offset(1), again.last_stable_offset(2)) == (0, 2)


def test_a_truncated_marker_opens_the_transaction_again(log: PartitionLog) -> None:
    write(log, 5, 0)
    write(log, 6, 0)
    end(log, 5, commit=False)
    log.truncate_to(2)
    assert (entry(log).txn_first_offset, log.last_stable_offset(2)) == (0, 0)
    write(log, 5, 1, verified=False)
    end(log, 5, commit=True)
    assert log.active_segment.transactions.entries() == []


# --- what a reader passes over -----------------------------------------------------------------------------


def test_aborted_transactions_of_a_range(log: PartitionLog) -> None:
    write(log, 5, 0)  # 0
    write(log, 6, 0)  # 1
    end(log, 5, commit=False)  # 2
    append(log, b"plain")  # 3
    write(log, 5, 1)  # 4
    end(log, 6, commit=False)  # 5
    end(log, 5, commit=True)  # 6

    def aborted(offset: int) -> list[tuple[int, int]]:
        found = log.read(offset, 1 << 20, limit=log.end_offset, min_one=True)
        return [(each.producer_id, each.first_offset) for each in log.aborted_in(offset, found)]

    assert aborted(0) == [(5, 0), (6, 1)]
    assert aborted(2) == [(5, 0), (6, 1)], "the marker itself is read"
    assert aborted(3) == [(6, 1)]
    assert aborted(6) == []


def test_a_marker_in_a_later_segment_is_found(tmp_path: Path) -> None:
    log = open_at(OsDisk(), str(tmp_path), config=topic_config(index_interval_bytes=0))
    write(log, 5, 0)
    for number in range(3):
        append(log, b"plain")
        write(log, 6, number)
        log.roll(NOW)
        end(log, 6, commit=number != 1)
    end(log, 5, commit=False)
    assert [len(segment.transactions.entries()) for segment in log.segments] == [0, 0, 1, 1]
    first = log.read(0, 1 << 20, limit=log.end_offset, min_one=True)
    assert [each[:2] for each in log.aborted_in(0, first)] == [(5, 0)], "what begins behind it is no concern"
    small = log.read(3, 1, limit=log.end_offset, min_one=True)
    assert [each[:2] for each in log.aborted_in(3, small)] == [(5, 0)]
    second = log.read(3, 1 << 20, limit=log.end_offset, min_one=True)
    assert [each[:2] for each in log.aborted_in(3, second)] == [(6, 5), (5, 0)]


def test_the_search_ends_where_everything_was_decided(tmp_path: Path) -> None:
    log = open_at(OsDisk(), str(tmp_path), config=topic_config(index_interval_bytes=0))
    for number in range(20):
        write(log, 5, number)
        end(log, 5, commit=False)
    found = log.read(10, 1, limit=log.end_offset, min_one=True)
    assert len(log.aborted_in(10, found)) <= 2
    assert log.aborted_in(10, found)[0] == AbortedTransaction(5, 10, 11, 12)


# --- damage ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("position", [0, 2, 10, 18, 26, 33, None])
def test_a_broken_index_of_aborted_transactions_is_made_anew(
    tmp_path: Path, clean: bool, position: int | None
) -> None:
    """A version, a negative number, offsets the wrong way round, half an entry."""
    log = open_at(OsDisk(), str(tmp_path))
    write(log, 5, 0)
    write(log, 6, 0)
    log.roll(NOW)
    end(log, 6, commit=False)
    end(log, 5, commit=False)
    log.roll(NOW)
    append(log, b"plain")
    log.close()
    before = log.segments[1].transactions.entries()
    assert before == [AbortedTransaction(6, 1, 2, 0), AbortedTransaction(5, 0, 3, 4)]
    path = Path(log.segments[1].transactions.path)
    content = bytearray(path.read_bytes())
    if position is None:
        content += b"half"
    else:
        content[position] ^= 0x80
    path.write_bytes(content)
    again = open_at(OsDisk(), str(tmp_path), clean=clean, recovery_point=5)
    found = again.segments[1].transactions.entries()
    assert found == before


def test_an_index_without_aborts_is_not_looked_for(tmp_path: Path) -> None:
    log = open_at(OsDisk(), str(tmp_path))
    write(log, 5, 0)
    end(log, 5, commit=True)
    log.close()
    assert not list(Path(log.path).glob("*.txnindex"))
