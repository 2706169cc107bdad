"""Transactions as records of __transaction_state, and back, in Kafka's schema."""

from __future__ import annotations

from typing import Final

from headrace.coordinators.codec import Kinds
from headrace.coordinators.decision import CoordinatorRecord
from headrace.protocol.stored.transaction_log_key import TransactionLogKey
from headrace.protocol.stored.transaction_log_value import PartitionsSchema, TransactionLogValue
from headrace.transactions.states import TransactionState
from headrace.transactions.transaction import NO_PARTITIONS, Transaction

KINDS: Final[Kinds] = {TransactionLogKey.API_KEY: (TransactionLogKey, TransactionLogValue)}


def record_of(transaction: Transaction, level: int) -> CoordinatorRecord:
    """`level`: the finalised transaction.version. Below 1 there are only the fields of Kafka 0.11."""
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=None
        if transaction.state is TransactionState.EMPTY
        else [
            PartitionsSchema(topic=topic, partition_ids=list(indexes))
            for topic, indexes in transaction.partitions.items()
        ],
        transaction_last_update_timestamp_ms=transaction.update_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
    )
    if level >= 1:
        value.previous_producer_id = transaction.previous_producer_id
        value.next_producer_id = transaction.next_producer_id
        value.next_producer_epoch = transaction.next_producer_epoch
        value.client_transaction_version = transaction.client_version
    return CoordinatorRecord(
        TransactionLogKey(transactional_id=transaction.transactional_id), value, min(level, 1)
    )


def tombstone(transactional_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(TransactionLogKey(transactional_id=transactional_id), None)


def transaction_of(transactional_id: str, value: TransactionLogValue) -> Transaction:
    """Raises ValueError for a state that has no name."""
    return Transaction(
        transactional_id,
        value.producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        value.transaction_last_update_timestamp_ms,
        TransactionState(value.transaction_status),
        {schema.topic: tuple(sorted(schema.partition_ids)) for schema in value.transaction_partitions}
        if value.transaction_partitions
        else NO_PARTITIONS,
        value.transaction_start_timestamp_ms,
        value.previous_producer_id,
        value.next_producer_id,
        value.next_producer_epoch,
        value.client_transaction_version,
    )
