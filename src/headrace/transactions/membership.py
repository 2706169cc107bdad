"""Which partitions belong to a transaction: added by the client or by a partition's leader, and asked about
by a leader before it takes the first batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headrace.core.errors import ConcurrentTransactions, InvalidProducerIdMapping, InvalidTransactionState
from headrace.transactions.ending import require_holder
from headrace.transactions.states import TransactionState
from headrace.transactions.transaction import Producer, Transaction, united

Named = tuple[str, int]
"""Topic and partition."""


def add(
    transaction: Transaction | None,
    producer: Producer,
    partitions: Iterable[Named],
    *,
    client_version: int,
    now_ms: int,
) -> Transaction | None:
    """The transaction with these partitions, begun with them if none is open; None if it has them."""
    known = _writable(transaction, producer)
    together = united(known.partitions, partitions)
    is_open = known.state is TransactionState.ONGOING
    if is_open and together is known.partitions:
        return None
    return known._replace(
        state=TransactionState.ONGOING,
        partitions=together,
        start_ms=known.start_ms if is_open else now_ms,
        update_ms=now_ms,
        previous_producer_id=known.producer_id,
        client_version=client_version,
    )


def missing(transaction: Transaction | None, producer: Producer, partitions: Sequence[Named]) -> list[Named]:
    """Those that do not belong to the producer's open transaction."""
    known = _writable(transaction, producer)
    indexes = {
        topic: frozenset(known.partitions.get(topic, ())) for topic in {topic for topic, _ in partitions}
    }
    return [(topic, index) for topic, index in partitions if index not in indexes[topic]]


def _writable(transaction: Transaction | None, producer: Producer) -> Transaction:
    if transaction is None:
        raise InvalidProducerIdMapping("the transactional id is not known")
    if not transaction.is_awaited_by(producer):
        require_holder(transaction, producer)
    if transaction.state.is_prepared:
        raise ConcurrentTransactions("the markers of the transaction before are being written")
    if transaction.is_kept:
        raise InvalidTransactionState("a transaction was kept for this producer, which has to end it first")
    return transaction
