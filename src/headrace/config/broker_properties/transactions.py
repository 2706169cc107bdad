"""Transactions: how long one may take, how long an id is remembered, and what partitions ask before they
take part."""

from __future__ import annotations

from headrace.config.declare import boolean, int32
from headrace.config.property import UpdateMode


class TransactionProperties:
    transaction_max_timeout_ms = int32(
        "transaction.max.timeout.ms",
        900_000,
        "The longest transaction that a producer may ask for.",
        at_least=1,
    )
    transactional_id_expiration_ms = int32(
        "transactional.id.expiration.ms",
        604_800_000,
        "How long a transactional id that is not used is remembered.",
        at_least=1,
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms = int32(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        10_000,
        "How often the coordinator looks for transactions to abort, because they have timed out.",
        at_least=1,
    )
    transaction_remove_expired_transaction_cleanup_interval_ms = int32(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        3_600_000,
        "How often the coordinator looks for transactional ids to forget.",
        at_least=1,
    )
    transaction_two_phase_commit_enable = boolean(
        "transaction.two.phase.commit.enable",
        False,
        "Let a producer ask for transactions that never time out, because another system decides how they "
        "end (KIP-939). One that nobody ends holds up every read_committed consumer.",
    )
    transaction_partition_verification_enable = boolean(
        "transaction.partition.verification.enable",
        True,
        "Ask the coordinator before a partition takes the first records of a transaction.",
        update=UpdateMode.CLUSTER_WIDE,
    )
    add_partitions_to_txn_retry_backoff_ms = int32(
        "add.partitions.to.txn.retry.backoff.ms",
        20,
        "Pause before a partition's leader asks the coordinator again, while the transaction before is being "
        "ended.",
        at_least=1,
    )
    add_partitions_to_txn_retry_backoff_max_ms = int32(
        "add.partitions.to.txn.retry.backoff.max.ms",
        100,
        "How long a partition's leader goes on asking, before the producer is told to try again.",
        at_least=0,
    )
