"""What the coordinator does by itself: it aborts what takes too long, and forgets what nobody uses."""

from __future__ import annotations

import pytest

from headrace.core.errors import InvalidProducerIdMapping, InvalidTransactionState, ProducerFenced
from headrace.transactions import shard as shards
from headrace.transactions.states import TransactionState
from headrace.transactions.transaction import Producer
from tests.unit.transactions.coordinator import ID, TIMEOUT_MS, MemoryCoordinator

S = TransactionState
WEEK_MS = 7 * 24 * 3600 * 1000


@pytest.fixture
def coordinator() -> MemoryCoordinator:
    return MemoryCoordinator()


def test_the_timers_are_set_when_a_shard_begins(coordinator: MemoryCoordinator) -> None:
    assert {name: delay for name, (delay, _) in coordinator.timers.due.items()} == {
        "abort": 10_000,
        "expiry": 3_600_000,
    }


def test_a_transaction_has_its_time(coordinator: MemoryCoordinator) -> None:
    producer = coordinator.producer()
    coordinator.add(producer)
    coordinator.pass_time(TIMEOUT_MS)
    coordinator.fire("abort")
    assert not coordinator.markers
    coordinator.pass_time(1)
    coordinator.fire("abort")
    assert coordinator.state is S.PREPARE_ABORT
    assert "abort" in coordinator.timers.due


@pytest.mark.parametrize("level", [0, 1, 2])
def test_who_takes_too_long_is_fenced(level: int) -> None:
    coordinator = MemoryCoordinator(level=level)
    slow = coordinator.producer()
    coordinator.add(slow)
    coordinator.pass_time(TIMEOUT_MS + 1)
    coordinator.fire("abort")
    (markers,) = coordinator.write_markers()
    assert not markers.commit
    assert markers.producer == Producer(slow.producer_id, slow.epoch + 1)
    with pytest.raises(ProducerFenced):
        coordinator.add(slow)
    with pytest.raises((ProducerFenced, InvalidTransactionState)):
        coordinator.end(slow, commit=True)
    with pytest.raises(ProducerFenced):
        coordinator.end(slow, commit=True, version=4)
    assert coordinator.state is S.COMPLETE_ABORT


def test_who_aborts_what_was_aborted_goes_on(coordinator: MemoryCoordinator) -> None:
    """It learns its new epoch as if the abort had been its own, and repeated."""
    slow = coordinator.producer()
    coordinator.add(slow)
    coordinator.pass_time(TIMEOUT_MS + 1)
    coordinator.fire("abort")
    coordinator.write_markers()
    after = coordinator.end(slow, commit=False)
    assert after == Producer(slow.producer_id, slow.epoch + 1)
    coordinator.add(after)


def test_only_open_transactions_time_out(coordinator: MemoryCoordinator) -> None:
    producer = coordinator.producer()
    coordinator.pass_time(WEEK_MS // 2)
    coordinator.fire("abort")
    assert not coordinator.markers
    coordinator.add(producer)
    coordinator.end(producer, commit=True)
    coordinator.pass_time(TIMEOUT_MS * 10)
    coordinator.fire("abort")
    assert coordinator.state is S.PREPARE_COMMIT


def test_many_are_aborted_in_turns(coordinator: MemoryCoordinator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "ABORTS_AT_ONCE", 2)
    for number in range(3):
        name = f"id{number}"
        coordinator.add(coordinator.producer(name=name), name=name)
    coordinator.pass_time(TIMEOUT_MS + 1)
    coordinator.fire("abort")
    assert len(coordinator.markers) == 2
    assert coordinator.timers.due["abort"][0] == 0
    coordinator.fire("abort")
    assert len(coordinator.markers) == 3
    assert coordinator.timers.due["abort"][0] == 10_000


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_an_unused_id_is_forgotten(coordinator: MemoryCoordinator, state: TransactionState) -> None:
    producer = coordinator.producer()
    if state is not S.EMPTY:
        coordinator.add(producer)
        producer = coordinator.end(producer, commit=state is S.COMPLETE_COMMIT)
        coordinator.write_markers()
    coordinator.pass_time(WEEK_MS - 1)
    coordinator.fire("expiry")
    assert coordinator.state is state
    coordinator.pass_time(1)
    coordinator.fire("expiry")
    assert ID not in coordinator.shard.transactions
    coordinator.fail_over()
    with pytest.raises(InvalidProducerIdMapping):
        coordinator.add(producer)
    assert coordinator.producer(producer).producer_id != producer.producer_id


@pytest.mark.parametrize("ends", [False, True])
def test_an_id_in_use_is_not_forgotten(coordinator: MemoryCoordinator, ends: bool) -> None:
    producer = coordinator.producer()
    coordinator.add(producer)
    if ends:
        coordinator.end(producer, commit=True)
    coordinator.pass_time(10 * WEEK_MS)
    coordinator.fire("expiry")
    assert ID in coordinator.shard.transactions


def test_many_are_forgotten_in_turns(coordinator: MemoryCoordinator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "EXPIRED_AT_ONCE", 2)
    for number in range(3):
        coordinator.producer(name=f"id{number}")
    coordinator.pass_time(WEEK_MS)
    coordinator.fire("expiry")
    assert len(coordinator.shard.transactions) == 1
    assert coordinator.timers.due["expiry"][0] == 0
    coordinator.fire("expiry")
    assert not coordinator.shard.transactions
