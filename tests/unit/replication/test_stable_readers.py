"""Who reads only what transactions have decided is woken when more is decided, not when more is committed."""

from __future__ import annotations

import pytest

from headrace.core.errors import InvalidTransactionState
from headrace.protocol.batch import check
from headrace.replication.partition import Partition
from headrace.testing.disk import SimulatedDisk
from tests.unit.log.material import NOW
from tests.unit.log.transactional_writes import marker, verify
from tests.unit.replication.replicas import LOCAL, Listener, append, copy, fetch, new_partition, row


def leading(isr: tuple[int, ...] = (1,)) -> Partition:
    partition = new_partition()
    partition.assign(row(LOCAL, 1, isr), LOCAL, 0.0)
    return partition


def write(partition: Partition, producer: int, sequence: int, value: bytes = b"value") -> int:
    if partition.log.producers.needs_verification(producer, 0):
        verify(partition.log, producer, sequence=sequence)
    return append(
        partition, value, producer_id=producer, producer_epoch=0, base_sequence=sequence, transactional=True
    )


def end(partition: Partition, producer: int, *, commit: bool = True) -> int:
    batch = marker(producer, 0, commit=commit)
    done = partition.append(batch, check(batch), acks=-1, now_ms=NOW, from_client=False)
    return done.base_offset


def listen(partition: Partition, *, read_committed: bool) -> Listener:
    listener = Listener()
    partition.watch(listener, read_committed=read_committed)
    return listener


def test_open_transactions_wake_only_who_reads_everything() -> None:
    partition = leading()
    every, stable = listen(partition, read_committed=False), listen(partition, read_committed=True)
    write(partition, 5, 0)
    write(partition, 5, 1)
    assert [size > 0 for size in every.committed] == [True, True]
    assert stable.committed == [0, 0], "they hear of it, and have nothing to read"
    end(partition, 5)
    assert stable.committed[2] == sum(every.committed), "all of it became readable at once"


def test_a_part_becomes_readable_while_another_transaction_is_open() -> None:
    partition = leading()
    stable = listen(partition, read_committed=True)
    write(partition, 5, 0, b"x" * 500)
    write(partition, 6, 0, b"y" * 500)
    end(partition, 5)
    first = stable.committed[-1]
    assert 0 < first < 1000
    end(partition, 6)
    assert stable.committed[-1] > 500
    assert partition.last_stable_offset == partition.high_watermark == 4


def test_whoever_comes_late_hears_of_what_was_there() -> None:
    partition = leading()
    append(partition, b"plain")
    write(partition, 5, 0, b"x" * 1000)
    stable = listen(partition, read_committed=True)
    end(partition, 5)
    assert stable.committed[-1] > 1000


def test_a_marker_wakes_when_it_is_committed() -> None:
    partition = leading((1, 2))
    stable = listen(partition, read_committed=True)
    write(partition, 5, 0)
    end(partition, 5)
    assert stable.committed == []
    fetch(partition, 2, 1)
    assert (partition.high_watermark, partition.last_stable_offset, stable.committed) == (1, 0, [0])
    fetch(partition, 2, 2)
    assert (partition.last_stable_offset, stable.committed[-1] > 0) == (2, True)


def test_a_watcher_that_left_hears_nothing() -> None:
    partition = leading()
    stable = listen(partition, read_committed=True)
    partition.unwatch(stable)
    append(partition, b"plain")
    assert stable.committed == []
    again = listen(partition, read_committed=True)
    partition.delete_records_before(1)
    assert again.changes == 1


def test_a_follower_knows_what_is_decided() -> None:
    leader, follower = leading((1, 2)), new_partition(SimulatedDisk())
    follower.assign(row(LOCAL, 1, (1, 2)), 2, 0.0)
    write(leader, 5, 0)
    write(leader, 6, 0)
    end(leader, 5, commit=False)
    for _ in range(3):
        copy(leader, follower)
    assert (follower.high_watermark, follower.last_stable_offset) == (3, 1)
    found = follower.read(0, 1 << 20, read_committed=True)
    assert follower.aborted_in(0, found) == leader.aborted_in(0, found) == [(5, 0)]
    end(leader, 6)
    for _ in range(3):
        copy(leader, follower)
    assert follower.last_stable_offset == 4


def test_a_new_term_begins_without_proofs() -> None:
    partition = leading()
    verify(partition.log, 5)
    partition.assign(row(LOCAL, 2, (1,)), LOCAL, 0.0)
    batch = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    with pytest.raises(InvalidTransactionState):
        append(partition, b"value", **batch)


def test_ended_transactions_do_not_pile_up() -> None:
    partition = leading()
    for number in range(50):
        write(partition, 5, number)
        end(partition, 5)
    assert len(partition.log.producers._ended) <= 1
