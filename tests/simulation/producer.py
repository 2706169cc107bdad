"""A producer as client libraries have it: idempotent, acks=all, several batches in flight, in order.

A batch is sent again, with the same sequence, until it is acknowledged or its time is over. When its time is
over its outcome is unknown, and the producer goes on under a new id, as a process that was started again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from headrace.core.ports_network import PeerUnavailable
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.init_producer_id_request import InitProducerIdRequest
from headrace.protocol.messages.init_producer_id_response import InitProducerIdResponse
from headrace.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.protocol.messages.produce_response import PartitionProduceResponse, ProduceResponse
from headrace.protocol.records import NewRecord, encode_batch
from headrace.testing.simulation.clock import BEGINNING_MS
from headrace.testing.simulation.virtual_time import SimulationFailed
from tests.checker.history import History, Send
from tests.simulation.client import PAUSE_SECONDS, REQUEST_SECONDS, TOPIC, SimulatedClient
from tests.simulation.cluster import SimulatedCluster

PRODUCE_VERSION: Final = 9
INIT_VERSION: Final = 4
MOST_IN_FLIGHT: Final = 3
DELIVERY_SECONDS: Final = 25.0
ACKS_SECONDS: Final = 3.0
GIVE_UP_CHANCE: Final = 0.2
"""That a batch that was refused at once, and so is certainly not stored, is not sent again."""
_REFUSED: Final = (ErrorCode.NOT_ENOUGH_REPLICAS,)
"""At the first attempt it says that nothing was stored. NOT_LEADER_OR_FOLLOWER does not: a leader that is
deposed while it waits for its followers answers so too."""
_BROKEN: Final = (
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.INVALID_PRODUCER_EPOCH,
)


class _Batch:
    __slots__ = ("attempts", "deadline", "operation", "sequence", "timestamp", "value")

    def __init__(self, operation: int, value: int, sequence: int, deadline: float, timestamp: int) -> None:
        self.operation = operation
        self.value = value
        self.sequence = sequence
        self.deadline = deadline
        self.timestamp = timestamp
        self.attempts = 0


class SimulatedProducer:
    """One process, which sends to every partition. `pause` is about how long each waits between sends."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        number: int,
        partitions: int,
        history: History,
        pause: float,
        on_acknowledged: Callable[[tuple[str, int], int], None],
        *,
        stamped: bool = False,
    ) -> None:
        """`stamped`: its records say when they were made."""
        self.client = SimulatedClient(cluster, f"producer-{number}")
        self.history = history
        self.pause = pause
        self.on_acknowledged = on_acknowledged
        self.stamped = stamped
        self.is_over = False
        self.acknowledged = 0
        self._next_value = number * 1_000_000
        self._tasks = [self.client.run(_Lane(self, partition).work()) for partition in range(partitions)]

    @property
    def is_done(self) -> bool:
        return all(task.done() for task in self._tasks)

    def finish(self) -> None:
        """Send nothing new; what was begun comes to its end."""
        self.is_over = True

    def new_value(self) -> int:
        self._next_value += 1
        return self._next_value


class _Lane:
    """One idempotent producer for one partition."""

    def __init__(self, producer: SimulatedProducer, partition: int) -> None:
        self._producer = producer
        self._client = producer.client
        self._history = producer.history
        self._partition = partition
        self._key = f"{TOPIC}-{partition}"
        self._life = 0
        self._identity: tuple[int, int] | None = None
        self._next_sequence = 0
        self._waiting: deque[_Batch] = deque()

    async def work(self) -> None:
        producer, random = self._producer, self._client.random
        while True:
            if not self._waiting:
                await asyncio.sleep(random.uniform(0.0, 2 * producer.pause))
                if producer.is_over:
                    return
                for _ in range(random.randint(1, MOST_IN_FLIGHT)):
                    self._invoke()
            if not await self._attempt():
                self._expire()
                await asyncio.sleep(PAUSE_SECONDS)

    def _invoke(self) -> None:
        value = self._producer.new_value()
        process = f"{self._client.name}.{self._partition}.{self._life}"
        operation = self._history.invoke(process, "send", [Send(self._key, value)])
        deadline = self._client.loop.time() + DELIVERY_SECONDS
        now_ms = BEGINNING_MS + int(self._client.cluster.scheduler.now * 1000)
        timestamp = now_ms if self._producer.stamped else -1
        self._waiting.append(_Batch(operation, value, self._next_sequence, deadline, timestamp))
        self._next_sequence += 1

    async def _attempt(self) -> bool:
        """One round: everything that waits, in order, over one link. True if all of it is settled."""
        client = self._client
        try:
            if self._identity is None:
                self._identity = await self._identify()
            leader = client.leaders.get(self._partition)
            if leader is None:
                await client.refresh()
                return False
            link = await client.link(leader)
            answers = []
            for batch in self._waiting:
                batch.attempts += 1
                answers.append(link.send(client.frame(self._request(batch), PRODUCE_VERSION)))
            async with asyncio.timeout(REQUEST_SECONDS):
                settled = await self._await_answers(answers)
        except (PeerUnavailable, TimeoutError):
            settled = False
        if not settled:
            client.leaders.pop(self._partition, None)
            await client.refresh()
        return settled

    async def _identify(self) -> tuple[int, int]:
        client = self._client
        broker_id = client.random.choice([host.broker_id for host in client.cluster.hosts])
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        reply = await client.ask(broker_id, request, InitProducerIdResponse, INIT_VERSION)
        if reply.error_code:
            raise PeerUnavailable(f"no producer id: {reply.error_code}")
        return reply.producer_id, reply.producer_epoch

    async def _await_answers(self, answers: list[Awaitable[memoryview]]) -> bool:
        all_settled = True
        for batch, answer in zip(list(self._waiting), answers, strict=True):
            body = await answer
            reply = self._client.parse(body, ProduceRequest.API_KEY, ProduceResponse, PRODUCE_VERSION)
            if not self._on_answer(batch, reply.responses[0].partition_responses[0]):
                all_settled = False
        return all_settled

    def _on_answer(self, batch: _Batch, reply: PartitionProduceResponse) -> bool:
        """True if the batch needs no further attempt."""
        code = reply.error_code
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            offset = reply.base_offset if code == ErrorCode.NONE and reply.base_offset >= 0 else None
            self._history.ok(batch.operation, [Send(self._key, batch.value, offset)])
            self._producer.acknowledged += 1
            if offset is not None:
                self._producer.on_acknowledged((TOPIC, self._partition), offset)
            self._waiting.remove(batch)
            return True
        if code in _BROKEN and self._waiting[0] is batch:
            raise SimulationFailed(
                f"{self._client.name}: everything before value {batch.value} in {self._key} is acknowledged,"
                f" and the leader says {ErrorCode(code).name}"
            )
        certain = code in _REFUSED and batch.attempts == 1 and len(self._waiting) == 1
        if certain and self._client.random.random() < GIVE_UP_CHANCE:
            self._history.fail(batch.operation, ErrorCode(code).name)
            self._waiting.remove(batch)
            self._next_sequence = batch.sequence
            return True
        return False

    def _expire(self) -> None:
        """A batch whose time is over leaves a hole: the producer begins anew, and nobody knows about it."""
        if not self._waiting or self._client.loop.time() < self._waiting[0].deadline:
            return
        for batch in self._waiting:
            self._history.unknown(batch.operation, "not acknowledged in time")
        self._waiting.clear()
        self._identity = None
        self._next_sequence = 0
        self._life += 1

    def _request(self, batch: _Batch) -> ProduceRequest:
        assert self._identity is not None
        producer_id, epoch = self._identity
        records = encode_batch(
            [NewRecord(b"%d" % batch.value, timestamp=batch.timestamp)],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=batch.sequence,
        )
        data = PartitionProduceData(index=self._partition, records=bytes(records))
        return ProduceRequest(
            acks=-1,
            timeout_ms=int(ACKS_SECONDS * 1000),
            topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])],
        )
