"""How a transaction ends: decided by its owner or by the coordinator, then completed when all markers are
written.

Two sets of rules. A client that sends EndTxn 5 gets a new epoch with every end (KIP-890), so a request with
the epoch before is its own, repeated. An older client keeps its epoch, and is told by the state alone.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from headrace.core.errors import (
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidTransactionState,
    ProducerFenced,
)
from headrace.transactions.states import TransactionState
from headrace.transactions.transaction import (
    HIGHEST_EPOCH,
    LAST_GIVEN_EPOCH,
    NO_EPOCH,
    NO_PARTITIONS,
    NO_PRODUCER_ID,
    Partitions,
    Producer,
    Transaction,
)

RAISES_EPOCH: Final = 2
"""The transaction.version, of a client or finalised, from which on every end raises the epoch."""


class EndRequest(NamedTuple):
    transactional_id: str
    producer: Producer
    commit: bool
    raises_epoch: bool
    """By EndTxn 5: the client takes the epoch that it is answered."""
    new_producer_id: int | None = None
    """For the case that this producer's epochs are used up."""


class Markers(NamedTuple):
    """What the coordinator has to write to every partition of a prepared transaction."""

    transactional_id: str
    producer: Producer
    commit: bool
    partitions: Partitions
    client_version: int


class Repeated(NamedTuple):
    """The request was carried out before; its answer is given again."""

    producer: Producer


class NeedsProducerId(NamedTuple):
    """Ask again, with a new producer id in the request."""


NEEDS_PRODUCER_ID: Final = NeedsProducerId()

_RESULTS: Final = {TransactionState.COMPLETE_COMMIT: True, TransactionState.PREPARE_COMMIT: True}


def end(
    transaction: Transaction | None, request: EndRequest, now_ms: int
) -> Transaction | Repeated | NeedsProducerId:
    """The prepared transaction that `request` makes of this one."""
    if transaction is None:
        raise InvalidProducerIdMapping(f"transactional id {request.transactional_id} is not known")
    if request.raises_epoch:
        return _end_raising(transaction, request, now_ms)
    return _end_keeping(transaction, request, now_ms)


def _end_keeping(transaction: Transaction, request: EndRequest, now_ms: int) -> Transaction | Repeated:
    """KIP-98: by clients that cannot be given another epoch."""
    require_holder(transaction, request.producer)
    state = transaction.state
    if state is TransactionState.ONGOING:
        return _prepared(transaction, request.commit, now_ms, client_version=0)
    if state is TransactionState.EMPTY or _RESULTS.get(state, False) != request.commit:
        raise _wrong_state(transaction, request)
    if state.is_prepared:
        raise ConcurrentTransactions("the markers of this transaction are being written")
    return Repeated(transaction.owner)


def _end_raising(
    transaction: Transaction, request: EndRequest, now_ms: int
) -> Transaction | Repeated | NeedsProducerId:
    if transaction.is_awaited_by(request.producer):
        raise ConcurrentTransactions("the markers of the transaction before are being written")
    state = transaction.state
    if (
        state is TransactionState.ONGOING
        or state is TransactionState.EMPTY
        or not _is_repeated(transaction, request.producer)
    ):
        if state.is_prepared:
            require_id(transaction, request.producer)
            raise ProducerFenced("this transaction was ended with another epoch")
        require_holder(transaction, request.producer)
        if state is not TransactionState.ONGOING and request.commit:
            raise _wrong_state(transaction, request)
        # An abort is welcome although nothing is open: the client may have failed before its first record
        # came, and its epoch has to be raised above whatever is still on its way.
        return _prepared_raising(transaction, request, now_ms)
    if _RESULTS.get(state, False) != request.commit:
        raise _wrong_state(transaction, request)
    if state.is_prepared:
        raise ConcurrentTransactions("the markers of this transaction are being written")
    if transaction.producer_epoch == HIGHEST_EPOCH:
        raise ProducerFenced("the epochs of this producer are used up: it has to begin anew")
    return Repeated(transaction.owner)


def _is_repeated(transaction: Transaction, producer: Producer) -> bool:
    """Whether the end that the state is in came from this producer, with the epoch that it had then."""
    if transaction.client_version < RAISES_EPOCH:
        return False  # that end raised no epoch: the one before is another producer's
    raised = transaction.holder
    if raised.producer_id == producer.producer_id and raised.epoch == producer.epoch + 1:
        return True
    return (
        raised.epoch == 0
        and producer.epoch == LAST_GIVEN_EPOCH
        and transaction.previous_producer_id == producer.producer_id
    )


def _prepared_raising(
    transaction: Transaction, request: EndRequest, now_ms: int
) -> Transaction | NeedsProducerId:
    owner = transaction.owner
    if owner.is_exhausted:
        if request.new_producer_id is None:
            return NEEDS_PRODUCER_ID
        new_owner: Producer | None = Producer(request.new_producer_id, 0)
    else:
        new_owner = owner.raised() if transaction.is_kept else None
    prepared = _prepared(transaction, request.commit, now_ms, client_version=RAISES_EPOCH)
    prepared = prepared._replace(
        producer_epoch=transaction.writer.raised().epoch, previous_producer_id=owner.producer_id
    )
    if new_owner is None:
        return prepared
    return prepared._replace(
        next_producer_id=new_owner.producer_id,
        next_producer_epoch=new_owner.epoch if transaction.is_kept else NO_EPOCH,
    )


def fence(transaction: Transaction, level: int, now_ms: int) -> Transaction:
    """Aborted by the coordinator: timed out, or in the way of a new producer. The epoch is raised, so that
    whoever wrote it writes no more; nobody is told the new one."""
    prepared = _prepared(
        transaction, commit=False, now_ms=now_ms, client_version=RAISES_EPOCH if level >= RAISES_EPOCH else 0
    )._replace(producer_epoch=transaction.writer.raised().epoch)
    if transaction.is_kept:
        prepared = prepared._replace(next_producer_epoch=transaction.owner.raised().epoch)
    return prepared


def complete(transaction: Transaction, now_ms: int) -> Transaction:
    """All markers are written."""
    commit = transaction.state is TransactionState.PREPARE_COMMIT
    owner = transaction.owner
    was_kept = transaction.next_producer_epoch != NO_EPOCH
    return transaction._replace(
        producer_id=owner.producer_id,
        producer_epoch=owner.epoch,
        state=TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT,
        partitions=NO_PARTITIONS,
        update_ms=now_ms,
        previous_producer_id=transaction.previous_producer_id if was_kept else transaction.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        next_producer_epoch=NO_EPOCH,
    )


def markers_of(prepared: Transaction) -> Markers:
    return Markers(
        prepared.transactional_id,
        prepared.writer,
        prepared.state is TransactionState.PREPARE_COMMIT,
        prepared.partitions,
        prepared.client_version,
    )


def _prepared(transaction: Transaction, commit: bool, now_ms: int, *, client_version: int) -> Transaction:
    is_open = transaction.state is TransactionState.ONGOING
    return transaction._replace(
        state=TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
        start_ms=transaction.start_ms if is_open else now_ms,
        update_ms=now_ms,
        previous_producer_id=transaction.producer_id,
        client_version=client_version,
    )


def require_id(transaction: Transaction, producer: Producer) -> None:
    holder = transaction.holder
    if holder.producer_id != producer.producer_id:
        raise InvalidProducerIdMapping(
            f"transactional id {transaction.transactional_id} belongs to producer"
            f" {holder.producer_id}, not to {producer.producer_id}"
        )


def require_holder(transaction: Transaction, producer: Producer) -> None:
    require_id(transaction, producer)
    if transaction.holder.epoch != producer.epoch:
        raise ProducerFenced(
            f"producer {producer.producer_id} has epoch {transaction.holder.epoch}, not {producer.epoch}"
        )


def _wrong_state(transaction: Transaction, request: EndRequest) -> InvalidTransactionState:
    wish = "commit" if request.commit else "abort"
    return InvalidTransactionState(
        f"transactional id {transaction.transactional_id} is {transaction.state.shown}: nothing to {wish}"
    )
