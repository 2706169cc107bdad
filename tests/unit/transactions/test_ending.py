"""Every row of the table: state, wish, epoch, by the rules of EndTxn 5 and by the old ones."""

from __future__ import annotations

import pytest

from headrace.core.errors import (
    ConcurrentTransactions,
    HeadraceError,
    InvalidProducerIdMapping,
    InvalidTransactionState,
    ProducerFenced,
)
from headrace.transactions.states import TransactionState
from headrace.transactions.transaction import HIGHEST_EPOCH, LAST_GIVEN_EPOCH, Producer
from tests.unit.transactions.coordinator import ID, ORDERS, MemoryCoordinator

S = TransactionState


def in_state(state: TransactionState, version: int) -> tuple[MemoryCoordinator, Producer, Producer]:
    """A coordinator with the id in `state`; the producer as it was before that, and as it is now."""
    coordinator = MemoryCoordinator()
    before = coordinator.producer()
    if state is S.EMPTY:
        return coordinator, Producer(before.producer_id, before.epoch - 1), before
    coordinator.add(before)
    if state is S.ONGOING:
        return coordinator, Producer(before.producer_id, before.epoch - 1), before
    commit = state in (S.PREPARE_COMMIT, S.COMPLETE_COMMIT)
    now = coordinator.end(before, commit=commit, version=version)
    if not state.is_prepared:
        coordinator.write_markers()
    assert coordinator.state is state
    return coordinator, before, now


RAISING = [
    # state, which epoch is sent, commit, what comes of it
    (S.EMPTY, "before", False, ProducerFenced),
    (S.EMPTY, "now", False, S.PREPARE_ABORT),
    (S.EMPTY, "before", True, ProducerFenced),
    (S.EMPTY, "now", True, InvalidTransactionState),
    (S.ONGOING, "before", False, ProducerFenced),
    (S.ONGOING, "now", False, S.PREPARE_ABORT),
    (S.ONGOING, "before", True, ProducerFenced),
    (S.ONGOING, "now", True, S.PREPARE_COMMIT),
    (S.PREPARE_COMMIT, "before", True, ConcurrentTransactions),
    (S.PREPARE_COMMIT, "before", False, InvalidTransactionState),
    (S.PREPARE_COMMIT, "now", True, ConcurrentTransactions),
    (S.PREPARE_COMMIT, "now", False, ConcurrentTransactions),
    (S.PREPARE_ABORT, "before", False, ConcurrentTransactions),
    (S.PREPARE_ABORT, "before", True, InvalidTransactionState),
    (S.PREPARE_ABORT, "now", True, ConcurrentTransactions),
    (S.PREPARE_ABORT, "now", False, ConcurrentTransactions),
    (S.COMPLETE_COMMIT, "before", True, None),
    (S.COMPLETE_COMMIT, "before", False, InvalidTransactionState),
    (S.COMPLETE_COMMIT, "now", True, InvalidTransactionState),
    (S.COMPLETE_COMMIT, "now", False, S.PREPARE_ABORT),
    (S.COMPLETE_ABORT, "before", False, None),
    (S.COMPLETE_ABORT, "before", True, InvalidTransactionState),
    (S.COMPLETE_ABORT, "now", True, InvalidTransactionState),
    (S.COMPLETE_ABORT, "now", False, S.PREPARE_ABORT),
]

KEEPING = [
    (S.EMPTY, False, InvalidTransactionState),
    (S.EMPTY, True, InvalidTransactionState),
    (S.ONGOING, False, S.PREPARE_ABORT),
    (S.ONGOING, True, S.PREPARE_COMMIT),
    (S.PREPARE_COMMIT, True, ConcurrentTransactions),
    (S.PREPARE_COMMIT, False, InvalidTransactionState),
    (S.PREPARE_ABORT, False, ConcurrentTransactions),
    (S.PREPARE_ABORT, True, InvalidTransactionState),
    (S.COMPLETE_COMMIT, True, None),
    (S.COMPLETE_COMMIT, False, InvalidTransactionState),
    (S.COMPLETE_ABORT, False, None),
    (S.COMPLETE_ABORT, True, InvalidTransactionState),
]


@pytest.mark.parametrize("fails_over", [False, True])
@pytest.mark.parametrize(("state", "epoch", "commit", "outcome"), RAISING)
def test_an_end_that_raises_the_epoch(
    state: TransactionState,
    epoch: str,
    commit: bool,
    outcome: type[HeadraceError] | TransactionState | None,
    fails_over: bool,
) -> None:
    coordinator, before, now = in_state(state, version=5)
    if fails_over:
        coordinator.fail_over()
    sent = before if epoch == "before" else now
    if isinstance(outcome, type):
        with pytest.raises(outcome):
            coordinator.end(sent, commit=commit)
        assert coordinator.state is state
    elif outcome is None:
        assert coordinator.end(sent, commit=commit) == now
        assert coordinator.state is state
    else:
        assert coordinator.end(sent, commit=commit) == Producer(now.producer_id, now.epoch + 1)
        assert coordinator.state is outcome


@pytest.mark.parametrize("fails_over", [False, True])
@pytest.mark.parametrize(("state", "commit", "outcome"), KEEPING)
def test_an_end_that_keeps_the_epoch(
    state: TransactionState,
    commit: bool,
    outcome: type[HeadraceError] | TransactionState | None,
    fails_over: bool,
) -> None:
    coordinator, before, now = in_state(state, version=4)
    assert state in (S.EMPTY, S.ONGOING) or before == now
    if fails_over:
        coordinator.fail_over()
    if isinstance(outcome, type):
        with pytest.raises(outcome):
            coordinator.end(now, commit=commit, version=4)
    else:
        assert coordinator.end(now, commit=commit, version=4) == now
        assert coordinator.state is (outcome or state)


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("state", [s for s in S if s not in (S.DEAD, S.PREPARE_EPOCH_FENCE)])
def test_strangers_are_refused_in_every_state(state: TransactionState, version: int) -> None:
    coordinator, _, now = in_state(state, version)
    with pytest.raises(InvalidProducerIdMapping):
        coordinator.end(Producer(now.producer_id + 7, now.epoch), commit=True, version=version)
    for epoch in (now.epoch + 1, now.epoch - 2):
        with pytest.raises(ProducerFenced):
            coordinator.end(Producer(now.producer_id, epoch), commit=True, version=version)


def test_an_unknown_id_is_refused() -> None:
    with pytest.raises(InvalidProducerIdMapping):
        MemoryCoordinator().end(Producer(1, 0), commit=True)


def test_markers_carry_the_raised_epoch_and_every_partition() -> None:
    coordinator = MemoryCoordinator()
    producer = coordinator.producer()
    coordinator.add(producer, ("a", 1), ("b", 0))
    coordinator.add(producer, ("a", 0), version=2)
    coordinator.end(producer, commit=True)
    (markers,) = coordinator.markers
    assert markers.producer == Producer(producer.producer_id, producer.epoch + 1)
    assert markers.partitions == {"a": (0, 1), "b": (0,)}
    assert markers.commit
    assert markers.client_version == 2


def test_markers_of_an_older_client_carry_its_epoch() -> None:
    coordinator = MemoryCoordinator()
    producer = coordinator.producer()
    coordinator.add(producer)
    coordinator.end(producer, commit=False, version=3)
    (markers,) = coordinator.markers
    assert (markers.producer, markers.commit, markers.client_version) == (producer, False, 0)


def test_a_failover_begins_the_markers_again() -> None:
    coordinator = MemoryCoordinator()
    producer = coordinator.producer()
    coordinator.add(producer)
    coordinator.end(producer, commit=True)
    sent = list(coordinator.markers)
    coordinator.fail_over()
    assert coordinator.markers == sent
    coordinator.write_markers()
    assert coordinator.state is S.COMPLETE_COMMIT
    coordinator.fail_over()
    assert not coordinator.markers


def test_a_completion_of_another_transaction_changes_nothing() -> None:
    coordinator = MemoryCoordinator()
    producer = coordinator.producer()
    coordinator.add(producer)
    late = Producer(producer.producer_id, producer.epoch + 1)
    now = coordinator.end(producer, commit=True)
    coordinator.write_markers()
    coordinator.add(now)
    assert coordinator.decide(lambda: coordinator.shard.complete(ID, late, 0)) is False
    coordinator.end(now, commit=False)
    assert coordinator.decide(lambda: coordinator.shard.complete(ID, late, 0)) is False
    assert coordinator.state is S.PREPARE_ABORT


def exhausted() -> tuple[MemoryCoordinator, Producer]:
    """A producer in its last epoch."""
    coordinator = MemoryCoordinator()
    producer = coordinator.producer()
    coordinator.set_state(coordinator.transaction._replace(producer_epoch=LAST_GIVEN_EPOCH))
    return coordinator, Producer(producer.producer_id, LAST_GIVEN_EPOCH)


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("fails_over", [True, False])
def test_the_last_epoch_ends_with_a_new_producer_id(commit: bool, fails_over: bool) -> None:
    coordinator, producer = exhausted()
    coordinator.add(producer)
    new = coordinator.end(producer, commit=commit)
    assert new.epoch == 0
    assert new.producer_id != producer.producer_id
    (markers,) = coordinator.markers
    assert markers.producer == Producer(producer.producer_id, HIGHEST_EPOCH)
    if fails_over:
        coordinator.fail_over()
    with pytest.raises(ConcurrentTransactions):
        coordinator.end(producer, commit=commit)  # repeated while the markers are on their way
    with pytest.raises(ConcurrentTransactions):
        coordinator.producer()
    with pytest.raises(ConcurrentTransactions):
        coordinator.add(new)  # its next transaction, which may not wait for the markers of this one
    with pytest.raises(ConcurrentTransactions):
        coordinator.end(new, commit=False)
    with pytest.raises(ConcurrentTransactions):
        coordinator.producer(expected=new)
    coordinator.write_markers()
    if fails_over:
        coordinator.fail_over()
    assert coordinator.end(producer, commit=commit) == new  # and afterwards
    with pytest.raises(InvalidTransactionState):
        coordinator.end(producer, commit=not commit)
    coordinator.add(new)
    with pytest.raises(InvalidProducerIdMapping):
        coordinator.add(producer)


def test_an_older_client_uses_up_no_epochs_by_ends() -> None:
    coordinator, producer = exhausted()
    coordinator.add(producer)
    assert coordinator.end(producer, commit=True, version=4) == producer


def test_with_an_older_level_nobody_gets_another_epoch() -> None:
    coordinator = MemoryCoordinator(level=1)
    producer = coordinator.producer()
    coordinator.add(producer)
    assert coordinator.end(producer, commit=True, version=5) == producer


def test_records_of_level_0_are_those_of_the_first_version() -> None:
    coordinator = MemoryCoordinator(level=0)
    producer = coordinator.producer()
    coordinator.add(producer, ORDERS)
    coordinator.end(producer, commit=True, version=1)
    coordinator.write_markers()
    assert [record.value[:2] for record in coordinator.log if record.value] == [b"\0\0"] * 4
    coordinator.level = 1
    coordinator.add(producer, ORDERS)
    assert (coordinator.log[-1].value or b"")[:2] == b"\0\1"


def test_a_zombie_is_not_taken_for_an_older_client_that_repeats_itself() -> None:
    """The owner keeps its epoch at its end, so the epoch before belongs to somebody else."""
    coordinator = MemoryCoordinator()
    zombie = coordinator.producer()
    owner = coordinator.producer()
    coordinator.add(owner)
    coordinator.end(owner, commit=True, version=4)
    with pytest.raises(ProducerFenced):
        coordinator.end(zombie, commit=True)
    coordinator.write_markers()
    with pytest.raises(ProducerFenced):
        coordinator.end(zombie, commit=True)
