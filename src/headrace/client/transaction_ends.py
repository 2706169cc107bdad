"""A transaction whose producer is gone, or is another process: who wrote it, and how anybody may end it.

An open transaction belongs to a transactional id, a producer id and an epoch, and to no process. Whoever
knows the three may commit or abort it. The end keeps the epoch (EndTxn 4 at most): so a commit that is
repeated, by this process or by a later one, is answered like the first, as long as nobody takes the id anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

from headrace.client.cluster import Cluster
from headrace.client.configs import Resource, ResourceType, describe_configs
from headrace.client.coordinators import CoordinatorKind, results
from headrace.client.errors import ClientFailure, Refused
from headrace.client.refusals import refusal
from headrace.client.transactions import describe_transactions
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.end_txn_request import EndTxnRequest
from headrace.protocol.messages.end_txn_response import EndTxnResponse
from headrace.protocol.messages.init_producer_id_request import InitProducerIdRequest
from headrace.protocol.messages.init_producer_id_response import InitProducerIdResponse

_KEEPS_EPOCH_AT_MOST: Final = 4
_FIRST_TWO_PHASE: Final = 6
_TWO_PHASE: Final = "transaction.two.phase.commit.enable"
_MAX_TIMEOUT: Final = "transaction.max.timeout.ms"
_DEFAULT_MAX_TIMEOUT_MS: Final = 900_000
_ONE_BROKER_SECONDS: Final = 5.0


class Identity(NamedTuple):
    """All that it takes to end a transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


class Patience(NamedTuple):
    """How long a transaction may stay open."""

    timeout_ms: int
    for_ever: bool = False
    """Until its owner ends it (two-phase, KIP-939), whatever the time-out says."""


class Fate(Enum):
    """What has become of a transaction that was open under an identity."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


async def longest_patience(cluster: Cluster) -> Patience:
    """Without a time-out where the cluster grants that, else the longest time that it allows."""
    connection = await cluster.any_broker()
    values = await _settings(cluster)
    longest = int(values.get(_MAX_TIMEOUT) or _DEFAULT_MAX_TIMEOUT_MS)
    offered = connection.version_for(InitProducerIdRequest)
    if offered >= _FIRST_TWO_PHASE and values.get(_TWO_PHASE) == "true":
        return Patience(longest, for_ever=True)
    return Patience(longest)


async def _settings(cluster: Cluster) -> dict[str, str | None]:
    """As the first broker says that answers: one that has just died is still named for a while."""
    failure: Exception | None = None
    for node in (await cluster.retried(lambda: cluster.metadata([]))).brokers:
        broker = Resource(ResourceType.BROKER, str(node.node_id))
        try:
            async with asyncio.timeout(_ONE_BROKER_SECONDS):
                entries = await describe_configs(cluster, broker, [_TWO_PHASE, _MAX_TIMEOUT])
        except (ClientFailure, TimeoutError) as error:
            failure = failure or error
        else:
            return {entry.name: entry.value for entry in entries}
    raise failure or ClientFailure("the cluster names no broker")


async def take(
    cluster: Cluster, transactional_id: str, patience: Patience, *, held: Identity | None = None
) -> Identity:
    """A new producer under this id. An older one is fenced, and what it had open is aborted.

    With `held`, only if that is still who holds it (KIP-360); Refused if not.
    """

    async def ask(broker_id: int, _keys: list[str]) -> Mapping[str, Identity | Refused]:
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=patience.timeout_ms,
            producer_id=-1 if held is None else held.producer_id,
            producer_epoch=-1 if held is None else held.producer_epoch,
            enable2_pc=patience.for_ever,
        )
        reply = await cluster.ask_broker(broker_id, request, InitProducerIdResponse)
        if reply.error_code:
            return {transactional_id: refusal(reply.error_code, f"transactional id {transactional_id}")}
        return {transactional_id: Identity(transactional_id, reply.producer_id, reply.producer_epoch)}

    return (await results(cluster, CoordinatorKind.TRANSACTION, [transactional_id], ask))[transactional_id]


async def is_current(cluster: Cluster, identity: Identity) -> bool:
    """Whether nobody has taken the id since."""
    (state,) = (await describe_transactions(cluster, [identity.transactional_id])).values()
    if isinstance(state, Refused):
        return False
    return (state.producer_id, state.producer_epoch) == (identity.producer_id, identity.producer_epoch)


async def end(cluster: Cluster, identity: Identity, *, commit: bool) -> None:
    """Decided when this returns; the markers follow. Refused if the transaction has had another end."""

    async def ask(broker_id: int, _keys: list[str]) -> Mapping[str, bool | Refused]:
        request = EndTxnRequest(
            transactional_id=identity.transactional_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            committed=commit,
        )
        reply = await cluster.ask_broker(broker_id, request, EndTxnResponse, at_most=_KEEPS_EPOCH_AT_MOST)
        if reply.error_code:
            subject = f"transactional id {identity.transactional_id}"
            return {identity.transactional_id: refusal(reply.error_code, subject)}
        return {identity.transactional_id: True}

    await results(cluster, CoordinatorKind.TRANSACTION, [identity.transactional_id], ask)


async def fates(cluster: Cluster, identities: list[Identity]) -> list[Fate]:
    """What the coordinators know of each. UNKNOWN once an id is forgotten, or was taken by somebody else."""
    described = await describe_transactions(cluster, [each.transactional_id for each in identities])
    found = []
    for identity in identities:
        state = described[identity.transactional_id]
        if isinstance(state, Refused):
            if state.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise state
            found.append(Fate.UNKNOWN)
        else:
            found.append(fate_of(identity, state.state, state.producer_id, state.producer_epoch))
    return found


def fate_of(identity: Identity, state: str, producer_id: int, producer_epoch: int) -> Fate:
    """A coordinator that aborts by itself, on a time-out, raises the epoch by one and tells nobody."""
    if producer_id != identity.producer_id:
        return Fate.UNKNOWN
    if producer_epoch == identity.producer_epoch:
        if state == "Ongoing":
            return Fate.OPEN
        if state in ("PrepareCommit", "CompleteCommit"):
            return Fate.COMMITTED
        if state in ("PrepareAbort", "CompleteAbort", "PrepareEpochFence"):
            return Fate.ABORTED
        return Fate.UNKNOWN
    timed_out = ("PrepareAbort", "CompleteAbort", "PrepareEpochFence")
    if producer_epoch == identity.producer_epoch + 1 and state in timed_out:
        return Fate.ABORTED
    return Fate.UNKNOWN
