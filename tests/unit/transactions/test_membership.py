"""Which partitions are in a transaction."""

from __future__ import annotations

import pytest

from headrace.core.errors import ConcurrentTransactions, InvalidProducerIdMapping, ProducerFenced
from headrace.transactions.states import TransactionState
from headrace.transactions.transaction import Producer
from tests.unit.transactions.coordinator import ORDERS, MemoryCoordinator

S = TransactionState


@pytest.fixture
def coordinator() -> MemoryCoordinator:
    return MemoryCoordinator()


def test_the_first_partition_begins_a_transaction(coordinator: MemoryCoordinator) -> None:
    producer = coordinator.producer()
    coordinator.pass_time(5_000)
    coordinator.add(producer, ("orders", 2), ("bills", 0))
    assert coordinator.state is S.ONGOING
    assert coordinator.transaction.start_ms == coordinator.now_ms
    assert coordinator.transaction.partitions == {"orders": (2,), "bills": (0,)}


def test_later_partitions_do_not_begin_it_again(coordinator: MemoryCoordinator) -> None:
    producer = coordinator.producer()
    coordinator.add(producer, ("orders", 2))
    started = coordinator.now_ms
    coordinator.pass_time(5_000)
    coordinator.add(producer, ("orders", 0), ("bills", 0))
    assert coordinator.transaction.partitions == {"orders": (0, 2), "bills": (0,)}
    assert coordinator.transaction.start_ms == started


def test_partitions_that_are_in_it_are_not_written_again(coordinator: MemoryCoordinator) -> None:
    producer = coordinator.producer()
    coordinator.add(producer, ("orders", 2), ("orders", 3))
    written = len(coordinator.log)
    coordinator.add(producer, ("orders", 3))
    assert len(coordinator.log) == written


def test_a_transaction_after_another_begins_with_nothing(coordinator: MemoryCoordinator) -> None:
    producer = coordinator.producer()
    coordinator.add(producer, ("orders", 2))
    producer = coordinator.end(producer, commit=True)
    with pytest.raises(ConcurrentTransactions):
        coordinator.add(producer, ("orders", 3))
    coordinator.write_markers()
    coordinator.pass_time(1_000)
    coordinator.add(producer, ("orders", 3))
    assert coordinator.transaction.partitions == {"orders": (3,)}
    assert coordinator.transaction.start_ms == coordinator.now_ms


def test_partitions_are_verified(coordinator: MemoryCoordinator) -> None:
    producer = coordinator.producer()
    assert coordinator.missing(producer, ORDERS) == [ORDERS]
    coordinator.add(producer, ("orders", 0), ("bills", 1))
    assert coordinator.missing(producer, ("orders", 0), ("orders", 1), ("bills", 1)) == [("orders", 1)]
    producer = coordinator.end(producer, commit=True, version=4)
    with pytest.raises(ConcurrentTransactions):
        coordinator.missing(producer, ORDERS)
    coordinator.write_markers()
    assert coordinator.missing(producer, ORDERS) == [ORDERS]  # a late batch of the old transaction


@pytest.mark.parametrize("ends", [False, True])
def test_a_late_batch_of_an_ended_transaction_is_fenced(coordinator: MemoryCoordinator, ends: bool) -> None:
    late = coordinator.producer()
    coordinator.add(late)
    now = coordinator.end(late, commit=False)
    coordinator.write_markers()
    if not ends:
        coordinator.add(now)
    with pytest.raises(ProducerFenced):
        coordinator.missing(late, ORDERS)
    with pytest.raises(ProducerFenced):
        coordinator.add(late, ORDERS)


def test_strangers_are_refused(coordinator: MemoryCoordinator) -> None:
    with pytest.raises(InvalidProducerIdMapping):
        coordinator.add(Producer(1, 0))
    producer = coordinator.producer()
    with pytest.raises(InvalidProducerIdMapping):
        coordinator.add(Producer(producer.producer_id + 1, 0))
    with pytest.raises(InvalidProducerIdMapping):
        coordinator.missing(Producer(producer.producer_id + 1, 0), ORDERS)
    with pytest.raises(ProducerFenced):
        coordinator.add(Producer(producer.producer_id, 1))
    assert coordinator.state is S.EMPTY
