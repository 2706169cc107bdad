"""Sends records in batches. With acks=all it is idempotent: a batch that is sent again is stored once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from headrace.client.cluster import Cluster
from headrace.client.errors import ConnectionLost
from headrace.client.partitioner import StickyPartitioner
from headrace.client.refusals import refusal, refusal_of_leader
from headrace.core.ids import TopicPartition
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.compression import Compression
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.init_producer_id_request import InitProducerIdRequest
from headrace.protocol.messages.init_producer_id_response import InitProducerIdResponse
from headrace.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.protocol.messages.produce_response import PartitionProduceResponse, ProduceResponse
from headrace.protocol.records import NewRecord, encode_batch

_PRODUCE_AT_MOST: Final = 11
_INIT_AT_MOST: Final = 5
_RECORD_OVERHEAD: Final = 20

Delivered = Callable[[TopicPartition, int, int], None]
"""Called with the partition, the offset of the first record of a batch and how many there were."""


class _Pending:
    """Records of one partition that wait for their batch to be full."""

    __slots__ = ("bytes", "records")

    def __init__(self) -> None:
        self.records: list[NewRecord] = []
        self.bytes = 0


class Producer:
    """`acks`: -1 all replicas in sync, 1 the leader, 0 nobody. Call `flush` before the end."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        acks: int = -1,
        compression: Compression = Compression.NONE,
        level: int | None = None,
        batch_bytes: int = 256 * 1024,
        delivery_timeout: float = 120.0,
        first_partition: int = 0,
        on_delivery: Delivered | None = None,
    ) -> None:
        self.cluster = cluster
        self.acks = acks
        self.compression = compression
        self.level = level
        self.batch_bytes = batch_bytes
        self.delivery_timeout = delivery_timeout
        self.on_delivery = on_delivery
        self.records_sent = 0
        self._partitioner = StickyPartitioner(first_partition)
        self._pending: dict[TopicPartition, _Pending] = {}
        self._sequences: dict[TopicPartition, int] = {}
        self._identity: tuple[int, int] | None = None
        self._identifying = asyncio.Lock()
        # Batches of a partition go one after another, or their sequences would arrive out of order.
        self._turns: dict[TopicPartition, asyncio.Lock] = {}

    async def send(self, topic: str, record: NewRecord, partition: int | None = None) -> None:
        """Put the record into its batch; a batch that is full is sent before this returns."""
        if partition is None:
            count = len((await self.cluster.topic(topic)).partitions)
            partition = self._partitioner.choose(topic, record.key, count)
        target = TopicPartition(topic, partition)
        size = _RECORD_OVERHEAD + len(record.key or b"") + len(record.value or b"")
        pending = self._pending.get(target)
        if pending is not None and pending.bytes + size > self.batch_bytes:
            await self._send_pending(target)
            pending = self._pending.get(target)
        if pending is None:
            pending = self._pending[target] = _Pending()
        pending.records.append(record)
        pending.bytes += size

    async def flush(self) -> None:
        """Everything that was given to `send` is stored, as far as `acks` says, when this returns."""
        results = await asyncio.gather(
            *(self._send_pending(target) for target in list(self._pending)), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _send_pending(self, target: TopicPartition) -> None:
        pending = self._pending.pop(target, None)
        if pending is None:
            return
        self._partitioner.batch_closed(target.topic)
        await self.send_batch(target, pending.records)

    async def send_batch(self, target: TopicPartition, records: list[NewRecord]) -> int:
        """Send these records as one batch; the offset of the first, or -1 with acks=0."""
        async with self._turns.setdefault(target, asyncio.Lock()):
            return await self._send_in_turn(target, records)

    async def _send_in_turn(self, target: TopicPartition, records: list[NewRecord]) -> int:
        producer_id, epoch = await self._identify()
        sequence = self._sequences.get(target, 0)
        batch = encode_batch(
            records,
            compression=self.compression,
            level=self.level,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence if producer_id >= 0 else -1,
        )
        request = ProduceRequest(
            acks=self.acks,
            timeout_ms=int(self.cluster.request_timeout * 1000),
            topic_data=[
                TopicProduceData(
                    name=target.topic,
                    partition_data=[PartitionProduceData(index=target.partition, records=batch)],
                )
            ],
        )
        offset = await self.cluster.retried(
            lambda: self._attempt(target, request), timeout=self.delivery_timeout
        )
        self._sequences[target] = (sequence + len(records)) & 0x7FFFFFFF
        self.records_sent += len(records)
        if self.on_delivery is not None:
            self.on_delivery(target, offset, len(records))
        return offset

    async def _attempt(self, target: TopicPartition, request: ProduceRequest) -> int:
        connection = await self.cluster.broker(await self.cluster.leader(target))
        if self.acks == 0:
            await connection.send_only(request, at_most=_PRODUCE_AT_MOST)
            return -1
        reply = await connection.request(
            request,
            ProduceResponse,
            at_most=_PRODUCE_AT_MOST,
            timeout=self.cluster.request_timeout,
        )
        result = _only_partition(reply)
        if result.error_code and result.error_code != ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            raise refusal_of_leader(result.error_code, f"partition {target}", result.error_message)
        return result.base_offset

    async def _identify(self) -> tuple[int, int]:
        """The producer id and epoch, asked for once; (-1, -1) without idempotence."""
        async with self._identifying:
            if self._identity is None:
                if self.acks != -1 or not (await self.cluster.any_broker()).supports(ApiKey.INIT_PRODUCER_ID):
                    self._identity = (-1, -1)
                else:
                    self._identity = await self.cluster.retried(self._ask_identity)
            return self._identity

    async def _ask_identity(self) -> tuple[int, int]:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        reply = await self.cluster.ask_any(request, InitProducerIdResponse, at_most=_INIT_AT_MOST)
        if reply.error_code:
            raise refusal(reply.error_code, "a producer id")
        return reply.producer_id, reply.producer_epoch


def _only_partition(reply: ProduceResponse) -> PartitionProduceResponse:
    for topic in reply.responses:
        for partition in topic.partition_responses:
            return partition
    raise ConnectionLost("the broker answered a produce request without a result")
