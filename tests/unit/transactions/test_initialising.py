"""Who owns a transactional id: new processes, producers that go on, fencing, what is kept for an owner."""

from __future__ import annotations

import pytest

from headrace.core.errors import (
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidTransactionState,
    InvalidTransactionTimeout,
    ProducerFenced,
    TransactionalIdNotAuthorized,
    UnsupportedVersion,
)
from headrace.transactions.shard import TransactionSettings
from headrace.transactions.states import TransactionState
from headrace.transactions.transaction import (
    FOREVER_MS,
    HIGHEST_EPOCH,
    LAST_GIVEN_EPOCH,
    Producer,
)
from tests.unit.transactions.coordinator import TIMEOUT_MS, MemoryCoordinator

S = TransactionState
TWO_PHASE = TransactionSettings(two_phase_commit=True)


@pytest.fixture
def coordinator() -> MemoryCoordinator:
    return MemoryCoordinator()


# --- an id for the first time, and for another process ------------------------------------------------------


def test_a_new_id_begins_with_epoch_0(coordinator: MemoryCoordinator) -> None:
    producer = coordinator.producer()
    assert producer.epoch == 0
    assert coordinator.state is S.EMPTY
    assert coordinator.transaction.timeout_ms == TIMEOUT_MS


def test_another_process_fences_the_one_before(coordinator: MemoryCoordinator) -> None:
    zombie = coordinator.producer()
    owner = coordinator.producer()
    assert owner == Producer(zombie.producer_id, zombie.epoch + 1)
    with pytest.raises(ProducerFenced):
        coordinator.add(zombie)
    with pytest.raises(ProducerFenced):
        coordinator.end(zombie, commit=True)
    with pytest.raises(ProducerFenced):
        coordinator.producer(zombie)  # a zombie cannot take it back by naming what it has
    coordinator.add(owner)


@pytest.mark.parametrize("commit", [True, False])
def test_an_id_at_rest_is_taken_over(coordinator: MemoryCoordinator, commit: bool) -> None:
    first = coordinator.producer()
    coordinator.add(first)
    first = coordinator.end(first, commit=commit)
    coordinator.write_markers()
    assert coordinator.producer() == Producer(first.producer_id, first.epoch + 1)
    assert coordinator.state is S.EMPTY
    assert coordinator.transaction.start_ms == -1


@pytest.mark.parametrize("level", [0, 1, 2])
def test_an_open_transaction_is_aborted_first(level: int) -> None:
    coordinator = MemoryCoordinator(level=level)
    zombie = coordinator.producer()
    coordinator.add(zombie)
    with pytest.raises(ConcurrentTransactions):
        coordinator.producer()
    assert coordinator.state is S.PREPARE_ABORT
    with pytest.raises(ConcurrentTransactions):
        coordinator.producer()
    (markers,) = coordinator.write_markers()
    assert not markers.commit
    assert markers.producer == Producer(zombie.producer_id, zombie.epoch + 1)
    assert markers.client_version == (2 if level == 2 else 0)
    owner = coordinator.producer()
    assert owner == Producer(zombie.producer_id, zombie.epoch + 2)
    with pytest.raises(ProducerFenced):
        coordinator.add(zombie)


@pytest.mark.parametrize("version", [4, 5])
def test_a_decided_transaction_is_completed_first(coordinator: MemoryCoordinator, version: int) -> None:
    first = coordinator.producer()
    coordinator.add(first)
    coordinator.end(first, commit=True, version=version)
    with pytest.raises(ConcurrentTransactions):
        coordinator.producer()
    assert coordinator.state is S.PREPARE_COMMIT


# --- a producer that names what it has (KIP-360) ------------------------------------------------------------


def test_a_producer_goes_on_with_its_next_epoch(coordinator: MemoryCoordinator) -> None:
    first = coordinator.producer()
    second = coordinator.producer(first)
    assert second == Producer(first.producer_id, first.epoch + 1)
    assert coordinator.producer(first) == second  # the same request again: its answer was lost
    assert coordinator.producer(second) == Producer(first.producer_id, first.epoch + 2)
    with pytest.raises(ProducerFenced):
        coordinator.producer(first)


def test_a_repeated_request_is_not_known_after_another_process_came(coordinator: MemoryCoordinator) -> None:
    first = coordinator.producer()
    coordinator.producer(first)
    coordinator.producer()
    with pytest.raises(ProducerFenced):
        coordinator.producer(first)


def test_a_repeated_request_is_refused_after_a_failover(coordinator: MemoryCoordinator) -> None:
    """As in Kafka: the records have no place for the epoch before."""
    first = coordinator.producer()
    coordinator.producer(first)
    coordinator.fail_over()
    with pytest.raises(ProducerFenced):
        coordinator.producer(first)


def test_a_producer_that_missed_the_answer_to_its_end_goes_on(coordinator: MemoryCoordinator) -> None:
    first = coordinator.producer()
    coordinator.add(first)
    second = coordinator.end(first, commit=True)
    coordinator.write_markers()
    assert coordinator.producer(first) == second


def test_a_stranger_is_fenced(coordinator: MemoryCoordinator) -> None:
    producer = coordinator.producer()
    with pytest.raises(ProducerFenced):
        coordinator.producer(Producer(producer.producer_id + 1, producer.epoch))


def test_a_forgotten_producer_gets_a_new_id(coordinator: MemoryCoordinator) -> None:
    forgotten = Producer(77, 5)
    producer = coordinator.producer(forgotten)
    assert producer.producer_id != forgotten.producer_id
    assert producer.epoch == 0


# --- epochs that are used up --------------------------------------------------------------------------------


def used_up(epoch: int = LAST_GIVEN_EPOCH) -> tuple[MemoryCoordinator, Producer]:
    coordinator = MemoryCoordinator()
    producer = coordinator.producer()
    coordinator.set_state(coordinator.transaction._replace(producer_epoch=epoch))
    return coordinator, Producer(producer.producer_id, epoch)


def test_the_last_epoch_is_followed_by_a_new_id() -> None:
    coordinator, last = used_up()
    owner = coordinator.producer()
    assert owner.epoch == 0
    assert owner.producer_id != last.producer_id
    with pytest.raises(ProducerFenced):
        coordinator.producer(last)  # it was another process that took the new id
    with pytest.raises(InvalidProducerIdMapping):
        coordinator.add(last)


def test_a_producer_goes_on_with_a_new_id() -> None:
    coordinator, last = used_up()
    owner = coordinator.producer(last)
    assert owner.epoch == 0
    assert coordinator.producer(last) == owner  # once more


def test_a_fenced_last_epoch_is_followed_by_a_new_id() -> None:
    coordinator, last = used_up()
    coordinator.add(last)
    with pytest.raises(ConcurrentTransactions):
        coordinator.producer()
    (markers,) = coordinator.write_markers()
    assert markers.producer == Producer(last.producer_id, HIGHEST_EPOCH)
    with pytest.raises(ProducerFenced):
        coordinator.end(last, commit=False)  # nobody may go on with the highest epoch
    assert coordinator.producer().producer_id != last.producer_id


def test_an_older_producer_than_the_last_epoch_is_fenced() -> None:
    coordinator, last = used_up()
    with pytest.raises(ProducerFenced):
        coordinator.producer(Producer(last.producer_id, last.epoch - 3))


# --- timeouts and two phases (KIP-939) ----------------------------------------------------------------------


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_has_bounds(coordinator: MemoryCoordinator, timeout_ms: int) -> None:
    with pytest.raises(InvalidTransactionTimeout):
        coordinator.producer(timeout_ms=timeout_ms)
    assert not coordinator.log


def test_two_phases_have_to_be_granted(coordinator: MemoryCoordinator) -> None:
    with pytest.raises(TransactionalIdNotAuthorized):
        coordinator.producer(two_phase=True)


def test_a_two_phase_transaction_never_times_out() -> None:
    coordinator = MemoryCoordinator(settings=TWO_PHASE)
    producer = coordinator.producer(two_phase=True, timeout_ms=0)
    assert coordinator.transaction.timeout_ms == FOREVER_MS
    coordinator.add(producer)
    coordinator.pass_time(400 * 24 * 3600 * 1000)
    coordinator.fire("abort")
    assert coordinator.state is S.ONGOING
    coordinator.fail_over()
    assert coordinator.end(producer, commit=True).epoch == producer.epoch + 1


def test_the_next_producer_of_the_id_may_have_a_timeout_again() -> None:
    coordinator = MemoryCoordinator(settings=TWO_PHASE)
    coordinator.producer(two_phase=True)
    coordinator.producer()
    assert coordinator.transaction.timeout_ms == TIMEOUT_MS


def kept() -> tuple[MemoryCoordinator, Producer, Producer]:
    """A transaction that its writer left open, and that another process took over."""
    coordinator = MemoryCoordinator(settings=TWO_PHASE)
    writer = coordinator.producer(two_phase=True)
    coordinator.add(writer, ("orders", 0), ("orders", 1))
    answer = coordinator.initialise(two_phase=True, keep=True)
    assert answer.ongoing == writer
    assert coordinator.state is S.ONGOING
    return coordinator, writer, answer.producer


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("fails_over", [True, False])
def test_a_kept_transaction_is_ended_by_its_new_owner(commit: bool, fails_over: bool) -> None:
    coordinator, writer, owner = kept()
    assert owner == Producer(writer.producer_id, writer.epoch + 1)
    if fails_over:
        coordinator.fail_over()
    with pytest.raises(ProducerFenced):
        coordinator.end(writer, commit=commit)
    after = coordinator.end(owner, commit=commit)
    assert after == Producer(owner.producer_id, owner.epoch + 1)
    (markers,) = coordinator.markers
    assert markers.producer == Producer(writer.producer_id, writer.epoch + 1)  # above what was written
    assert markers.partitions == {"orders": (0, 1)}
    with pytest.raises(ConcurrentTransactions):
        coordinator.end(owner, commit=commit)
    with pytest.raises(ProducerFenced):
        coordinator.end(writer, commit=commit)
    if fails_over:
        coordinator.fail_over()
    coordinator.write_markers()
    assert coordinator.end(owner, commit=commit) == after
    assert coordinator.transaction.writer == after
    coordinator.add(after)


def test_a_kept_transaction_takes_nothing_more() -> None:
    coordinator, writer, owner = kept()
    with pytest.raises(ProducerFenced):
        coordinator.add(writer)
    with pytest.raises(ProducerFenced):
        coordinator.missing(writer, ("orders", 0))
    with pytest.raises(InvalidTransactionState):
        coordinator.add(owner)
    assert coordinator.transaction.never_times_out


def test_a_transaction_is_kept_again_and_again() -> None:
    coordinator, writer, owner = kept()
    answer = coordinator.initialise(two_phase=True, keep=True)
    assert answer.producer == Producer(owner.producer_id, owner.epoch + 1)
    assert answer.ongoing == writer
    with pytest.raises(ProducerFenced):
        coordinator.end(owner, commit=True)
    coordinator.end(answer.producer, commit=True)
    assert coordinator.state is S.PREPARE_COMMIT


def test_an_owner_that_names_itself_is_told_again() -> None:
    coordinator, writer, owner = kept()
    following = coordinator.initialise(owner, two_phase=True, keep=True)
    assert coordinator.initialise(owner, two_phase=True, keep=True) == following
    assert following.ongoing == writer


def test_whoever_does_not_keep_it_aborts_it() -> None:
    coordinator, writer, owner = kept()
    with pytest.raises(ConcurrentTransactions):
        coordinator.producer()
    (markers,) = coordinator.write_markers()
    assert not markers.commit
    assert markers.producer.epoch > writer.epoch
    assert coordinator.producer().epoch > owner.epoch


def test_an_owner_in_its_last_epoch_gets_a_new_id() -> None:
    coordinator, writer, owner = kept()
    coordinator.set_state(coordinator.transaction._replace(next_producer_epoch=LAST_GIVEN_EPOCH))
    owner = Producer(owner.producer_id, LAST_GIVEN_EPOCH)
    after = coordinator.end(owner, commit=True)
    assert after.epoch == 0
    assert after.producer_id != owner.producer_id
    (markers,) = coordinator.write_markers()
    assert markers.producer == Producer(writer.producer_id, writer.epoch + 1)
    assert coordinator.transaction.writer == after
    assert coordinator.end(owner, commit=True) == after


def test_an_older_client_ends_what_was_kept_for_it() -> None:
    coordinator, writer, owner = kept()
    assert coordinator.end(owner, commit=True, version=4) == owner
    (markers,) = coordinator.write_markers()
    assert markers.producer == writer
    assert coordinator.transaction.writer == owner


def test_keeping_without_an_open_transaction_is_a_plain_beginning(coordinator: MemoryCoordinator) -> None:
    answer = coordinator.initialise(keep=True)
    assert answer.ongoing is None
    assert coordinator.state is S.EMPTY


def test_keeping_needs_records_that_can_say_so() -> None:
    with pytest.raises(UnsupportedVersion):
        MemoryCoordinator(level=1).initialise(keep=True)
