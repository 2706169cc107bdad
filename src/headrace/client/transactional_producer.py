"""Writes batches of one transaction, and leaves it open: to be ended by whoever is told its identity.

Batches come ready-made, as the bytes of their records. Of each partition one is on its way at a time, so the
sequences arrive in order and a batch that is sent again, to the same leader or to the next, is stored once.
Different partitions do not wait for each other.

Partitions are added to the transaction before their first batch, as clients did before transaction.version 2,
which every broker since 0.11 knows. The rules of version 2 would raise the epoch with the end: see
transaction_ends.py for why it has to stay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from headrace.client.cluster import Cluster
from headrace.client.coordinators import CoordinatorKind, find_coordinators
from headrace.client.errors import ClientFailure, ConnectionLost, RecordsRefused, Refused
from headrace.client.grouping import by_topic
from headrace.client.refusals import refusal, refusal_of_leader
from headrace.client.transaction_ends import Identity
from headrace.core.ids import TopicPartition
from headrace.core.ports import Buffer
from headrace.core.tasks import spawn
from headrace.protocol import batch as batches
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from headrace.protocol.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from headrace.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.protocol.messages.produce_response import ProduceResponse
from headrace.protocol.records import seal

_ADD_AT_MOST: Final = 3
_PRODUCE_AT_MOST: Final = 11
_ALL_REPLICAS: Final = -1


class Records(NamedTuple):
    """The inside of a batch: encoded records whose offsets count from 0, compressed as a whole or not."""

    payload: Buffer
    records: int
    base_timestamp: int
    max_timestamp: int
    compression: int = 0


class TransactionalProducer:
    """One transaction of one identity. Call `flush` before the identity is told to anybody."""

    def __init__(
        self,
        cluster: Cluster,
        identity: Identity,
        *,
        delivery_timeout: float = 120.0,
        in_flight_bytes: int = 8 * 1024 * 1024,
    ) -> None:
        self.identity = identity
        self.records_sent = 0
        self.bytes_sent = 0
        self._cluster = cluster
        self._delivery_timeout = delivery_timeout
        self._in_flight_bytes = in_flight_bytes
        self._added: set[TopicPartition] = set()
        self._adding = asyncio.Lock()
        self._sequences: dict[TopicPartition, int] = {}
        self._under_way: dict[TopicPartition, asyncio.Task[None]] = {}
        self._waiting_bytes = 0
        self._failure: BaseException | None = None

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        return frozenset(self._added)

    async def add_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """Make them part of the transaction, in one request."""
        async with self._adding:
            missing = sorted(set(partitions) - self._added)
            if missing:
                await self._cluster.retried(lambda: self._add(missing), timeout=self._delivery_timeout)
                self._added.update(missing)

    async def send(
        self, target: TopicPartition, records: Records, on_stored: Callable[[int], None] | None = None
    ) -> None:
        """Returns once the batch is on its way. Waits for the one before it in the partition, and while too
        many bytes are on their way. Raises what went wrong with any batch, from then on always.

        `on_stored` is called with the offset of the batch's first record. Where it is given, a batch whose
        offset the broker does not tell counts as not delivered."""
        if target not in self._added:
            try:
                await self.add_partitions([target])
            except Refused as error:
                if error.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                    raise RecordsRefused(target, error) from None
                raise
        before = self._under_way.get(target)
        while self._failure is None and (
            (before is not None and not before.done()) or self._waiting_bytes > self._in_flight_bytes
        ):
            await asyncio.wait(
                [before] if before is not None and not before.done() else self._under_way.values(),
                return_when=asyncio.FIRST_COMPLETED,
            )
            self._forget_done()
        self._raise_failure()
        size = len(records.payload)
        self._waiting_bytes += size
        self._under_way[target] = spawn(
            f"records for {target}", self._deliver(target, records, size, on_stored), is_awaited=True
        )

    async def flush(self) -> None:
        """Everything that was sent is stored by all replicas in sync when this returns."""
        while self._under_way and self._failure is None:
            await asyncio.wait(self._under_way.values(), return_when=asyncio.FIRST_COMPLETED)
            self._forget_done()
        self._raise_failure()

    async def stop(self) -> None:
        """Send no more. The transaction stays what it is."""
        tasks = list(self._under_way.values())
        self._under_way.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget_done(self) -> None:
        for target in [target for target, task in self._under_way.items() if task.done()]:
            del self._under_way[target]

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    async def _deliver(
        self, target: TopicPartition, records: Records, size: int, on_stored: Callable[[int], None] | None
    ) -> None:
        try:
            sequence = self._sequences.get(target, 0)
            batch = self._sealed(records, sequence)
            base = await self._cluster.retried(
                lambda: self._produce(target, batch), timeout=self._delivery_timeout
            )
            if on_stored is not None:
                if base < 0:
                    raise ClientFailure(
                        f"partition {target}: a batch is stored, and nobody tells at which offset"
                    )
                on_stored(base)
            self._sequences[target] = (sequence + records.records) & 0x7FFFFFFF
            self.records_sent += records.records
            self.bytes_sent += len(batch)
        except Refused as error:
            self._failure = self._failure or RecordsRefused(target, error)
        except Exception as error:
            self._failure = self._failure or error  # `send` and `flush` raise it
        finally:
            self._waiting_bytes -= size

    def _sealed(self, records: Records, sequence: int) -> bytearray:
        header = batches.BatchHeader(
            base_offset=0,
            batch_length=0,
            leader_epoch=-1,
            magic=batches.MAGIC,
            crc=0,
            attributes=records.compression | batches.TRANSACTIONAL_FLAG,
            last_offset_delta=records.records - 1,
            base_timestamp=records.base_timestamp,
            max_timestamp=records.max_timestamp,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.producer_epoch,
            base_sequence=sequence,
            record_count=records.records,
        )
        return seal(header, records.payload)

    async def _produce(self, target: TopicPartition, batch: bytearray) -> int:
        cluster = self._cluster
        request = ProduceRequest(
            transactional_id=self.identity.transactional_id,
            acks=_ALL_REPLICAS,
            timeout_ms=cluster.request_timeout_ms,
            topic_data=[
                TopicProduceData(
                    name=target.topic,
                    partition_data=[PartitionProduceData(index=target.partition, records=batch)],
                )
            ],
        )
        leader = await cluster.leader(target)
        reply = await cluster.ask_broker(leader, request, ProduceResponse, at_most=_PRODUCE_AT_MOST)
        for topic in reply.responses:
            for result in topic.partition_responses:
                code = result.error_code
                if code and code != ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                    raise refusal_of_leader(code, f"partition {target}", result.error_message)
                return -1 if code else result.base_offset
        raise ConnectionLost("the broker answered a produce request without a result")

    async def _add(self, partitions: list[TopicPartition]) -> None:
        name = self.identity.transactional_id
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=self.identity.producer_id,
            v3_and_below_producer_epoch=self.identity.producer_epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=indexes)
                for topic, indexes in by_topic(partitions).items()
            ],
        )
        home = (await find_coordinators(self._cluster, CoordinatorKind.TRANSACTION, [name]))[name]
        reply = await self._cluster.ask_broker(
            home, request, AddPartitionsToTxnResponse, at_most=_ADD_AT_MOST
        )
        codes = {
            TopicPartition(topic.name, result.partition_index): result.partition_error_code
            for topic in reply.results_by_topic_v3_and_below
            for result in topic.results_by_partition
        }
        # One bad partition makes a broker refuse the others without having tried them.
        wrong = [code for code in codes.values() if code and code != ErrorCode.OPERATION_NOT_ATTEMPTED]
        if wrong:
            raise refusal(wrong[0], f"transactional id {name}")
        if set(partitions) - codes.keys():
            raise ClientFailure("the coordinator did not say what became of every partition")
