"""Transactions as the partitions know them: which producers have one open, and whether anybody will end it.

A transaction *hangs* when a partition has records of it and its coordinator knows nothing of that. Nobody
will write its marker, and consumers of committed records wait there for ever. The way out is to write an
abort marker to that partition by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from headrace.client import transactions
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure, Refused
from headrace.client.grouping import by_topic
from headrace.client.refusals import refusal_of_leader
from headrace.client.transactions import Transaction
from headrace.core.ids import TopicPartition
from headrace.protocol.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from headrace.protocol.messages.describe_producers_response import DescribeProducersResponse
from headrace.protocol.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from headrace.protocol.messages.write_txn_markers_response import WriteTxnMarkersResponse

LONGEST_TRANSACTION_MS: Final = 15 * 60_000
"""Default of transaction.max.timeout.ms: what is younger may still be ended by its coordinator."""
_PARTITIONS_AT_ONCE: Final = 500


class ActiveProducer(NamedTuple):
    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    """-1 where no marker was ever written for this producer."""
    last_sequence: int
    last_ms: int
    """When its last batch came."""
    start_offset: int | None
    """Where its open transaction began; None while it has none."""


class OpenTransaction(NamedTuple):
    producer: ActiveProducer
    transaction: Transaction | None
    """What the coordinator says of the producer, if it knows it."""

    @property
    def hangs(self) -> bool:
        """The coordinator names all partitions that it will still write a marker to."""
        return self.transaction is None or self.producer.partition not in self.transaction.partitions


async def describe_producers(cluster: Cluster, partitions: Iterable[TopicPartition]) -> list[ActiveProducer]:
    """Everybody who wrote with an id, as the leaders of the partitions know them."""
    wanted = list(dict.fromkeys(partitions))
    found: dict[TopicPartition, list[ActiveProducer]] = {}

    async def ask_the_rest() -> None:
        left = [partition for partition in wanted if partition not in found]
        for broker_id, theirs in (await cluster.by_leader(left)).items():
            for at in range(0, len(theirs), _PARTITIONS_AT_ONCE):
                await ask(broker_id, theirs[at : at + _PARTITIONS_AT_ONCE])

    async def ask(broker_id: int, some: list[TopicPartition]) -> None:
        request = DescribeProducersRequest(
            topics=[
                TopicRequest(name=name, partition_indexes=indexes) for name, indexes in by_topic(some).items()
            ]
        )
        reply = await cluster.ask_broker(broker_id, request, DescribeProducersResponse)
        for topic in reply.topics:
            for entry in topic.partitions:
                partition = TopicPartition(topic.name, entry.partition_index)
                if entry.error_code:
                    raise refusal_of_leader(entry.error_code, f"partition {partition}", entry.error_message)
                found[partition] = [
                    ActiveProducer(
                        partition,
                        state.producer_id,
                        state.producer_epoch,
                        state.coordinator_epoch,
                        state.last_sequence,
                        state.last_timestamp,
                        state.current_txn_start_offset if state.current_txn_start_offset >= 0 else None,
                    )
                    for state in entry.active_producers
                ]

    await cluster.retried(ask_the_rest)
    return [producer for partition in wanted for producer in found[partition]]


async def open_transactions(
    cluster: Cluster, partitions: Iterable[TopicPartition], *, silent_since_ms: int | None = None
) -> list[OpenTransaction]:
    """Every open transaction in these partitions, with what its coordinator says of it.

    `silent_since_ms`: only those whose producer has written nothing since.
    """
    candidates = [
        producer
        for producer in await describe_producers(cluster, partitions)
        if producer.start_offset is not None
        and (silent_since_ms is None or producer.last_ms <= silent_since_ms)
    ]
    return await _with_coordinators(cluster, candidates)


async def _with_coordinators(cluster: Cluster, producers: Sequence[ActiveProducer]) -> list[OpenTransaction]:
    if not producers:
        return []
    ids = sorted({producer.producer_id for producer in producers})
    listed = await transactions.list_transactions(cluster, producer_ids=ids)
    names = {entry.producer_id: entry.transactional_id for entry in listed}
    described = await transactions.describe_transactions(cluster, names.values())
    found = []
    for producer in producers:
        known = described.get(names.get(producer.producer_id, ""))
        # An id that was forgotten between the two questions is as good as unknown.
        found.append(OpenTransaction(producer, None if isinstance(known, Refused) else known))
    return found


async def find_open(
    cluster: Cluster,
    partition: TopicPartition,
    *,
    start_offset: int | None = None,
    producer_id: int | None = None,
) -> OpenTransaction:
    """The one in `partition` that began at the offset, or that belongs to the producer."""
    all_open = await open_transactions(cluster, [partition])
    for entry in all_open:
        if start_offset in (None, entry.producer.start_offset) and producer_id in (
            None,
            entry.producer.producer_id,
        ):
            return entry
    places = ", ".join(str(entry.producer.start_offset) for entry in all_open)
    what = f"begins at offset {start_offset}" if start_offset is not None else f"is of producer {producer_id}"
    raise ClientFailure(
        f"no open transaction in {partition} {what}",
        f"those that are open begin at: {places}" if places else "no transaction is open there",
    )


async def write_abort_marker(cluster: Cluster, producer: ActiveProducer) -> None:
    """End the producer's transaction in this one partition: what it wrote there is aborted."""
    partition = producer.partition
    marker = WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.partition])],
        # No leader of the producer's coordinator has written here yet: 0 is not above any of them.
        coordinator_epoch=max(0, producer.coordinator_epoch),
    )

    async def attempt() -> None:
        broker_id = await cluster.leader(partition)
        request = WriteTxnMarkersRequest(markers=[marker])
        reply = await cluster.ask_broker(broker_id, request, WriteTxnMarkersResponse)
        codes = [
            entry.error_code
            for result in reply.markers
            for topic in result.topics
            for entry in topic.partitions
            if (topic.name, entry.partition_index) == partition
        ]
        if len(codes) != 1:
            raise ClientFailure(f"broker {broker_id} did not say what became of the marker for {partition}")
        if codes[0]:
            raise refusal_of_leader(codes[0], f"partition {partition}")

    await cluster.retried(attempt)
