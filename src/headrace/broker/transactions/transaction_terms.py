"""What the shards of the transaction coordinator are made of on this broker."""

from __future__ import annotations

from typing import Final

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.coordinators.shard_terms import OnEffect, Terms
from headrace.broker.runtime.runtime import Runtime
from headrace.config.broker import BrokerConfig
from headrace.controller.image import TRANSACTION_VERSION
from headrace.coordinators.kinds import TRANSACTION_KINDS
from headrace.coordinators.shard import Timers
from headrace.protocol.compression import Compression
from headrace.transactions.shard import TransactionSettings, TransactionShard

COMMIT_SECONDS: Final = 30.0
"""How long a request waits for the replicas of what it decided, as any request of a producer does."""


def transaction_terms(
    runtime: Runtime, metadata: MetadataCache, on_effect: OnEffect
) -> Terms[TransactionShard]:
    def make(timers: Timers, _index: int, _epoch: int) -> TransactionShard:
        return TransactionShard(
            timers,
            settings_of(runtime.config),
            lambda: finalised_version(metadata),
            runtime.memory.transactions,
        )

    return Terms(TRANSACTION_KINDS, make, on_effect, Compression.NONE, COMMIT_SECONDS)


def settings_of(config: BrokerConfig) -> TransactionSettings:
    return TransactionSettings(
        max_timeout_ms=config.transaction_max_timeout_ms,
        id_expiration_ms=config.transactional_id_expiration_ms,
        abort_check_interval_ms=config.transaction_abort_timed_out_transaction_cleanup_interval_ms,
        expiry_check_interval_ms=config.transaction_remove_expired_transaction_cleanup_interval_ms,
        two_phase_commit=config.transaction_two_phase_commit_enable,
    )


def finalised_version(metadata: MetadataCache) -> int:
    """The transaction.version that the whole cluster has agreed on."""
    return metadata.image.features.get(TRANSACTION_VERSION, 0)
