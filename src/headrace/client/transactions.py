"""Transactions as their coordinators know them: which there are, what they hold, and how to end one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from headrace.client.cluster import Cluster
from headrace.client.coordinators import CoordinatorKind, every_broker, outcomes, results
from headrace.client.errors import ClientFailure, Refused
from headrace.client.refusals import refusal
from headrace.core.ids import TopicPartition
from headrace.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from headrace.protocol.messages.describe_transactions_response import (
    DescribeTransactionsResponse,
    TransactionState,
)
from headrace.protocol.messages.init_producer_id_request import InitProducerIdRequest
from headrace.protocol.messages.init_producer_id_response import InitProducerIdResponse
from headrace.protocol.messages.list_transactions_request import ListTransactionsRequest
from headrace.protocol.messages.list_transactions_response import ListTransactionsResponse

STATES: Final = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "PrepareEpochFence",
)
_OPEN: Final = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")
_FIRST_WITH_DURATION: Final = 1
_FIRST_WITH_PATTERN: Final = 2


class ListedTransaction(NamedTuple):
    transactional_id: str
    producer_id: int
    state: str
    coordinator: int


class Transaction(NamedTuple):
    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int | None
    """None while no transaction is open."""
    partitions: Sequence[TopicPartition]
    """Those with records of it, or that still wait for its marker."""
    coordinator: int

    def age_ms(self, now_ms: int) -> int | None:
        return None if self.start_ms is None else max(0, now_ms - self.start_ms)


class NewProducer(NamedTuple):
    producer_id: int
    producer_epoch: int


async def list_transactions(
    cluster: Cluster,
    *,
    states: Sequence[str] = (),
    producer_ids: Sequence[int] = (),
    older_than_ms: int | None = None,
    pattern: str | None = None,
) -> list[ListedTransaction]:
    """Of all coordinators, by id. ClientFailure where a broker is too old for a filter."""
    matcher = _compiled(pattern)

    async def ask(broker_id: int) -> list[ListedTransaction]:
        connection = await cluster.broker(broker_id)
        version = connection.version_for(ListTransactionsRequest)
        request = ListTransactionsRequest(state_filters=list(states), producer_id_filters=list(producer_ids))
        if older_than_ms is not None:
            if version < _FIRST_WITH_DURATION:
                raise ClientFailure(
                    f"broker {broker_id} is too old to filter by age", "leave --older-than out"
                )
            request.duration_filter = older_than_ms
        if pattern is not None and version >= _FIRST_WITH_PATTERN:
            request.transactional_id_pattern = pattern
        reply = await connection.request(request, ListTransactionsResponse, timeout=cluster.request_timeout)
        if reply.error_code:
            raise refusal(reply.error_code, f"the transactions of broker {broker_id}")
        if reply.unknown_state_filters:
            raise ClientFailure(
                f"broker {broker_id} knows no state {reply.unknown_state_filters[0]}",
                f"the states are: {', '.join(STATES)}",
            )
        return [
            ListedTransaction(entry.transactional_id, entry.producer_id, entry.transaction_state, broker_id)
            for entry in reply.transaction_states
            if matcher is None or matcher.fullmatch(entry.transactional_id)
        ]

    found = {entry.transactional_id: entry for entry in await every_broker(cluster, ask)}
    return sorted(found.values())


def _compiled(pattern: str | None) -> re.Pattern[str] | None:
    if pattern is None:
        return None
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ClientFailure(f"{pattern!r} is not a regular expression: {error}") from None


async def describe_transactions(
    cluster: Cluster, transactional_ids: Iterable[str]
) -> dict[str, Transaction | Refused]:
    """Each, or why it cannot be described. One that is not known is refused."""

    async def ask(broker_id: int, keys: list[str]) -> Mapping[str, Transaction | Refused]:
        request = DescribeTransactionsRequest(transactional_ids=keys)
        reply = await cluster.ask_broker(broker_id, request, DescribeTransactionsResponse)
        return {entry.transactional_id: _transaction(entry, broker_id) for entry in reply.transaction_states}

    return await outcomes(cluster, CoordinatorKind.TRANSACTION, transactional_ids, ask)


def _transaction(entry: TransactionState, broker_id: int) -> Transaction | Refused:
    if entry.error_code:
        return refusal(entry.error_code, f"transactional id {entry.transactional_id}")
    return Transaction(
        entry.transactional_id,
        entry.transaction_state,
        entry.producer_id,
        entry.producer_epoch,
        entry.transaction_timeout_ms,
        # Apache Kafka also tells when the last one began, once it is over.
        entry.transaction_start_time_ms
        if entry.transaction_state in _OPEN and entry.transaction_start_time_ms >= 0
        else None,
        sorted(TopicPartition(topic.topic, index) for topic in entry.topics for index in topic.partitions),
        broker_id,
    )


async def fence(cluster: Cluster, transactional_id: str) -> NewProducer:
    """End whatever transaction is open under this id, and shut its producer out: it must begin anew.

    This is what a producer does that starts under the id. The coordinator aborts what was open first, and is
    asked again until it has.
    """

    async def ask(broker_id: int, _keys: list[str]) -> Mapping[str, NewProducer | Refused]:
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=cluster.request_timeout_ms,
            producer_id=-1,
            producer_epoch=-1,
        )
        reply = await cluster.ask_broker(broker_id, request, InitProducerIdResponse)
        if reply.error_code:
            return {transactional_id: refusal(reply.error_code, f"transactional id {transactional_id}")}
        return {transactional_id: NewProducer(reply.producer_id, reply.producer_epoch)}

    return (await results(cluster, CoordinatorKind.TRANSACTION, [transactional_id], ask))[transactional_id]
