"""Partitions become part of a transaction, or are asked about: by a producer, another broker, or this one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.transactions.patient_requests import PatientRequests, told_to
from headrace.coordinators.decision import Decision
from headrace.core.completion import Completion
from headrace.protocol.error_codes import ErrorCode
from headrace.transactions.membership import Named
from headrace.transactions.shard import TransactionShard
from headrace.transactions.transaction import Producer

BETWEEN_BROKERS: Final = 4
"""The version of AddPartitionsToTxn from which on leaders of partitions send it, and never producers."""
_KNOWS_FENCING: Final = 2
_RAISES_EPOCH: Final = 2
"""Only partitions whose producer speaks transaction.version 2 are added by their leaders."""

Codes = Mapping[Named, ErrorCode]
"""NONE where a partition is not in it."""


def join(
    metadata: MetadataCache,
    patient: PatientRequests,
    transactional_id: str,
    producer: Producer,
    names: Sequence[Named],
    *,
    verify_only: bool,
    version: int,
) -> Completion[Codes]:
    """Always resolved: what is refused is refused partition by partition. If one partition does not exist,
    none is added. `version`: of AddPartitionsToTxn, by which it is told."""
    if not transactional_id:
        return _resolved(dict.fromkeys(names, ErrorCode.INVALID_REQUEST))
    if unknown := [named for named in names if not metadata.exists(*named)]:
        codes = dict.fromkeys(names, ErrorCode.OPERATION_NOT_ATTEMPTED)
        codes.update(dict.fromkeys(unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        return _resolved(codes)
    if metadata.image.links and (linked := [named for named in names if _is_linked(metadata, named)]):
        codes = dict.fromkeys(names, ErrorCode.OPERATION_NOT_ATTEMPTED)
        codes.update(dict.fromkeys(linked, ErrorCode.POLICY_VIOLATION))
        return _resolved(codes)
    client_version = _RAISES_EPOCH if version >= BETWEEN_BROKERS else 0

    def decide(shard: TransactionShard, completion: Completion[Any], now_ms: int) -> Decision[Any]:  # noqa: ARG001 - the shape of an operation
        if verify_only:
            return shard.verify_partitions(transactional_id, producer, names)
        return shard.add_partitions(transactional_id, producer, names, now_ms, client_version=client_version)

    return patient.ask(transactional_id, decide, writes=not verify_only).then(
        lambda missing: dict.fromkeys(missing or (), ErrorCode.TRANSACTION_ABORTABLE),
        lambda error: dict.fromkeys(names, told_to(version, _KNOWS_FENCING, error)),
    )


def _is_linked(metadata: MetadataCache, named: Named) -> bool:
    """A copy of another cluster's: nobody here writes to it, nor ends a transaction in it."""
    link = metadata.image.links.get(named[0])
    return link is not None and link.is_sealed(named[1])


def _resolved(codes: Codes) -> Completion[Codes]:
    completion: Completion[Codes] = Completion()
    completion.complete(codes)
    return completion
