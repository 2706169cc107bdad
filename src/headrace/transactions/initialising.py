"""InitProducerId with a transactional id: who owns the id from now on.

A new process takes the id over and fences the one before it. A producer that names what it has (KIP-360)
goes on after an error, unless another has taken over since. An open transaction is aborted first, or kept
for the new owner to end (KIP-939).
"""

from __future__ import annotations

from typing import NamedTuple

from headrace.core.errors import ConcurrentTransactions, ProducerFenced
from headrace.transactions.ending import NEEDS_PRODUCER_ID, NeedsProducerId, fence
from headrace.transactions.states import TransactionState
from headrace.transactions.transaction import (
    FOREVER_MS,
    NO_EPOCH,
    NO_PARTITIONS,
    NO_PRODUCER_ID,
    Producer,
    Transaction,
)


class InitRequest(NamedTuple):
    transactional_id: str
    timeout_ms: int
    """FOREVER_MS for a two-phase producer."""
    expected: Producer | None = None
    """What the producer says it has."""
    keeps_prepared: bool = False
    new_producer_id: int | None = None


class Taken(NamedTuple):
    """The id is the producer's. `transaction` is the state to write."""

    transaction: Transaction
    last_epoch: int
    """The epoch of the same producer that a repeated request would name; NO_EPOCH if none may."""


class Known(NamedTuple):
    """A repeated request: nothing changes."""

    producer: Producer


class InTheWay(NamedTuple):
    """An open transaction, which is aborted now. The producer has to ask again."""

    prepared: Transaction


Initialisation = Taken | Known | InTheWay | NeedsProducerId


def initialise(
    transaction: Transaction | None, request: InitRequest, last_epoch: int, level: int, now_ms: int
) -> Initialisation:
    """`last_epoch`: of the `Taken` that gave the producer its present epoch, if that is remembered."""
    if transaction is None:
        return _first(request, now_ms)
    expected = request.expected
    if expected is not None and not _may_be_meant(transaction, expected):
        raise ProducerFenced(f"transactional id {request.transactional_id} belongs to another producer")
    if transaction.state.is_prepared:
        raise ConcurrentTransactions("the markers of the transaction before are being written")
    if transaction.state is TransactionState.ONGOING:
        if request.keeps_prepared:
            return _kept(transaction, request, last_epoch, now_ms)
        return InTheWay(fence(transaction, level, now_ms))
    if expected is not None and expected.epoch != transaction.producer_epoch:
        return _repeated(transaction, expected, last_epoch)
    return _next(transaction, request, now_ms)


def _may_be_meant(transaction: Transaction, expected: Producer) -> bool:
    """The producer is the owner, or was, before its epochs were used up and it was given another id, or has
    been given that and waits for the markers."""
    return (
        expected.producer_id == transaction.holder.producer_id
        or (expected.producer_id == transaction.previous_producer_id and expected.is_exhausted)
        or transaction.is_awaited_by(expected)
    )


def _repeated(transaction: Transaction, expected: Producer, last_epoch: int) -> Known:
    if last_epoch == NO_EPOCH or expected.epoch != last_epoch:
        raise ProducerFenced(
            f"producer {expected.producer_id} has epoch {transaction.holder.epoch}, not {expected.epoch}"
        )
    return Known(transaction.holder)


def _first(request: InitRequest, now_ms: int) -> Initialisation:
    """Also for a producer that names what it had: its id was forgotten meanwhile."""
    new_id = request.new_producer_id
    if new_id is None:
        return NEEDS_PRODUCER_ID
    transaction = Transaction(
        request.transactional_id, new_id, 0, request.timeout_ms, now_ms, previous_producer_id=new_id
    )
    return Taken(transaction, NO_EPOCH)


def _next(transaction: Transaction, request: InitRequest, now_ms: int) -> Initialisation:
    owner = _successor(transaction.writer, request.new_producer_id)
    if owner is None:
        return NEEDS_PRODUCER_ID
    taken = transaction._replace(
        producer_id=owner.producer_id,
        producer_epoch=owner.epoch,
        timeout_ms=request.timeout_ms,
        update_ms=now_ms,
        state=TransactionState.EMPTY,
        partitions=NO_PARTITIONS,
        start_ms=-1,
        previous_producer_id=transaction.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        next_producer_epoch=NO_EPOCH,
    )
    return Taken(taken, NO_EPOCH if request.expected is None else transaction.producer_epoch)


def _kept(transaction: Transaction, request: InitRequest, last_epoch: int, now_ms: int) -> Initialisation:
    """The transaction stays what it is, and only the new owner can end it. It keeps its timeout, except that
    a two-phase owner makes it one that never times out."""
    expected, holder = request.expected, transaction.holder
    if expected is not None and expected.epoch != holder.epoch:
        return _repeated(transaction, expected, last_epoch)
    owner = _successor(holder, request.new_producer_id)
    if owner is None:
        return NEEDS_PRODUCER_ID
    kept = transaction._replace(
        next_producer_id=owner.producer_id,
        next_producer_epoch=owner.epoch,
        previous_producer_id=holder.producer_id,
        timeout_ms=FOREVER_MS if request.timeout_ms == FOREVER_MS else transaction.timeout_ms,
        update_ms=now_ms,
    )
    return Taken(kept, NO_EPOCH if expected is None else holder.epoch)


def _successor(producer: Producer, new_producer_id: int | None) -> Producer | None:
    """None if that takes a new producer id, and there is none."""
    if not producer.is_exhausted:
        return producer.raised()
    return None if new_producer_id is None else Producer(new_producer_id, 0)
