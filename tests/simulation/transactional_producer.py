"""A transactional producer as client libraries have it, which crashes, and whose last requests may come late.

It speaks the old protocol (partitions are added first, the epoch stays) or that of transaction.version 2.
What became of a transaction is certain until a commit was sent; from then on only an answer tells.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NoReturn, TypeVar

from headrace.core.ports_network import PeerUnavailable
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from headrace.protocol.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from headrace.protocol.messages.end_txn_request import EndTxnRequest
from headrace.protocol.messages.end_txn_response import EndTxnResponse
from headrace.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from headrace.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from headrace.protocol.messages.init_producer_id_request import InitProducerIdRequest
from headrace.protocol.messages.init_producer_id_response import InitProducerIdResponse
from headrace.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.protocol.messages.produce_response import ProduceResponse
from headrace.protocol.records import NewRecord, encode_batch
from tests.checker.history import History, Send
from tests.simulation.client import PAUSE_SECONDS, TOPIC, SimulatedClient
from tests.simulation.cluster import SimulatedCluster

A = TypeVar("A", bound=Message)

TRANSACTION_TIMEOUT_MS: Final = 6_000
STEP_SECONDS: Final = 8.0
"""How long a request is sent again. After that the process is as good as dead."""
END_SECONDS: Final = 25.0
ABORT_CHANCE: Final = 0.25
CRASH_CHANCE: Final = 0.08
"""Before any step."""
LATE_CHANCE: Final = 0.5
"""That a process which crashes has one more request on its way."""
LATE_SECONDS: Final = 6.0
_RETRIED: Final = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.KAFKA_STORAGE_ERROR,
)


class Crash(Exception):
    """The process ends here, and another one takes over its transactional id."""


class TransactionalProducer:
    """`raises_epochs`: it speaks transaction.version 2."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        number: int,
        partitions: int,
        history: History,
        pause: float,
        *,
        raises_epochs: bool,
    ) -> None:
        self.client = SimulatedClient(cluster, f"transactional-{number}")
        self.history = history
        self.name = f"id-{number}"
        self.partitions = partitions
        self.pause = pause
        self.raises_epochs = raises_epochs
        self.is_over = False
        self.committed = 0
        self.next_value = 500_000_000 + number * 1_000_000
        self.life = 0
        self._tasks: list[asyncio.Task[None]] = [self.client.loop.create_task(self._work())]

    @property
    def is_done(self) -> bool:
        return all(task.done() for task in self._tasks)

    def result(self) -> None:
        for task in self._tasks:
            task.result()

    def finish(self) -> None:
        self.is_over = True

    def start(self, late: asyncio.Task[None]) -> None:
        self._tasks.append(late)

    async def _work(self) -> None:
        while not self.is_over:
            self.life += 1
            try:
                await _Process(self, f"{self.client.name}.{self.life}").work()
            except Crash:
                await asyncio.sleep(self.client.random.uniform(0, 2 * self.pause))


class _Process:
    """One life: one identity at a time, one transaction at a time."""

    def __init__(self, producer: TransactionalProducer, name: str) -> None:
        self._producer = producer
        self._client = producer.client
        self._name = name
        self._identity = (-1, -1)
        self._sequences: dict[int, int] = {}
        self._coordinator: int | None = None

    async def work(self) -> None:
        producer, random = self._producer, self._client.random
        await self._initialise()
        while not producer.is_over:
            await asyncio.sleep(random.uniform(0, 2 * producer.pause))
            await self._transact()

    # --- one transaction ---------------------------------------------------------------------------------

    async def _transact(self) -> None:
        producer, history, random = self._producer, self._producer.history, self._client.random
        places = random.sample(range(producer.partitions), random.randint(1, producer.partitions))
        values = {place: self._new_value() for place in places}
        sends = [Send(f"{TOPIC}-{place}", value) for place, value in values.items()]
        commit = random.random() >= ABORT_CHANCE
        operation = history.invoke(self._name, "transaction", sends)
        try:
            offsets = await self._write(values)
        except Crash:
            history.fail(operation, "nobody committed it")
            raise
        written = [
            Send(send.key, send.value, offset) for send, offset in zip(sends, offsets.values(), strict=True)
        ]
        if commit and random.random() < CRASH_CHANCE:
            self._end_badly(operation, written)
        if commit:
            await self._commit(operation, written)
        else:
            history.fail(operation, "it was aborted")
            code, _ = await self._end(commit=False)
            if code is not ErrorCode.NONE:
                raise Crash

    def _end_badly(self, operation: int, sends: list[Send]) -> NoReturn:
        """Everything is written, and the process is gone; but its commit may still be on its way."""
        if self._client.random.random() < LATE_CHANCE:
            self._producer.start(self._client.loop.create_task(self._commit_late(operation, sends)))
        else:
            self._producer.history.fail(operation, "nobody committed it")
        raise Crash

    async def _commit_late(self, operation: int, sends: list[Send]) -> None:
        await asyncio.sleep(self._client.random.uniform(0, LATE_SECONDS))
        with suppress(Crash):
            await self._commit(operation, sends)

    async def _commit(self, operation: int, sends: list[Send]) -> None:
        history = self._producer.history
        code, is_certain = await self._end(commit=True)
        if code is ErrorCode.NONE:
            self._producer.committed += 1
            history.ok(operation, sends)
        elif is_certain:
            history.fail(operation, code.name)
            raise Crash
        else:
            history.unknown(operation, code.name)
            raise Crash

    def _new_value(self) -> int:
        self._producer.next_value += 1
        return self._producer.next_value

    def _may_crash(self) -> None:
        if self._client.random.random() < CRASH_CHANCE:
            raise Crash

    # --- steps -------------------------------------------------------------------------------------------

    async def _initialise(self) -> None:
        request = InitProducerIdRequest(
            transactional_id=self._producer.name, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS
        )
        while True:
            answer = await self._ask_coordinator(request, InitProducerIdResponse, 4)
            if answer is not None and not answer.error_code:
                self._become(answer.producer_id, answer.producer_epoch)
                return
            if self._producer.is_over:
                raise Crash
            await asyncio.sleep(PAUSE_SECONDS)

    def _become(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != self._identity:
            self._identity = (producer_id, epoch)
            self._sequences.clear()

    async def _write(self, values: dict[int, int]) -> dict[int, int | None]:
        if not self._producer.raises_epochs:
            await self._add(list(values))
        offsets = {}
        for place, value in values.items():
            self._may_crash()
            offsets[place] = await self._send(place, value)
        return offsets

    async def _add(self, places: list[int]) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._producer.name,
            v3_and_below_producer_id=self._identity[0],
            v3_and_below_producer_epoch=self._identity[1],
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=places)],
        )

        def judge(answer: AddPartitionsToTxnResponse) -> int:
            rows = answer.results_by_topic_v3_and_below[0].results_by_partition
            return max(row.partition_error_code for row in rows)

        code, _ = await self._until_told(request, AddPartitionsToTxnResponse, 3, judge, STEP_SECONDS)
        if code is not ErrorCode.NONE:
            raise Crash

    async def _send(self, place: int, value: int) -> int | None:
        """Its offset, if that is told. Crashes if the broker does not want it."""
        client = self._client
        sequence = self._sequences.get(place, 0)
        request = self._produce_request(place, value, sequence)
        version = 12 if self._producer.raises_epochs else 11
        deadline = client.loop.time() + STEP_SECONDS
        while client.loop.time() < deadline:
            leader = client.leaders.get(place)
            code, offset = ErrorCode.NETWORK_EXCEPTION, -1
            if leader is not None:
                try:
                    answer = await client.ask(leader, request, ProduceResponse, version)
                    row = answer.responses[0].partition_responses[0]
                    code, offset = ErrorCode(row.error_code), row.base_offset
                except PeerUnavailable:
                    pass
            if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                self._sequences[place] = sequence + 1
                return offset if offset >= 0 else None
            if code not in _RETRIED:
                raise Crash
            client.leaders.pop(place, None)
            await client.refresh()
            await asyncio.sleep(PAUSE_SECONDS)
        raise Crash

    async def _end(self, *, commit: bool) -> tuple[ErrorCode, bool]:
        """The answer, and whether it is certain that a commit had no effect if it is a refusal."""
        request = EndTxnRequest(
            transactional_id=self._producer.name,
            producer_id=self._identity[0],
            producer_epoch=self._identity[1],
            committed=commit,
        )
        version = 5 if self._producer.raises_epochs else 4
        last: list[EndTxnResponse] = []

        def judge(answer: EndTxnResponse) -> int:
            last.append(answer)
            return answer.error_code

        code, attempts = await self._until_told(request, EndTxnResponse, version, judge, END_SECONDS)
        if code is ErrorCode.NONE and self._producer.raises_epochs:
            self._become(last[-1].producer_id, last[-1].producer_epoch)
        return code, attempts == 1 and code not in _RETRIED

    async def _until_told(
        self, request: Message, answer: type[A], version: int, judge: Callable[[A], int], seconds: float
    ) -> tuple[ErrorCode, int]:
        """The first answer that is not to be waited out, and how often was asked."""
        client, attempts = self._client, 0
        deadline = client.loop.time() + seconds
        while True:
            attempts += 1
            told = await self._ask_coordinator(request, answer, version)
            code = ErrorCode.NETWORK_EXCEPTION if told is None else ErrorCode(judge(told))
            if code not in _RETRIED or client.loop.time() >= deadline:
                return code, attempts
            await asyncio.sleep(PAUSE_SECONDS)

    async def _ask_coordinator(self, request: Message, answer: type[A], version: int) -> A | None:
        try:
            if self._coordinator is None:
                self._coordinator = await self._find()
            told = await self._client.ask(self._coordinator, request, answer, version)
        except PeerUnavailable:
            self._coordinator = None
            return None
        if (
            getattr(told, "error_code", 0)
            in (
                ErrorCode.NOT_COORDINATOR,
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
            )
            or self._client.random.random() < 0.02
        ):
            self._coordinator = None
        return told

    async def _find(self) -> int:
        client = self._client
        broker_id = client.random.choice([host.broker_id for host in client.cluster.hosts])
        request = FindCoordinatorRequest(key=self._producer.name, key_type=1)
        found = await client.ask(broker_id, request, FindCoordinatorResponse, 3)
        if found.error_code:
            raise PeerUnavailable(f"no coordinator: {found.error_code}")
        return found.node_id

    def _produce_request(self, place: int, value: int, sequence: int) -> ProduceRequest:
        records = encode_batch(
            [NewRecord(b"%d" % value)],
            producer_id=self._identity[0],
            producer_epoch=self._identity[1],
            base_sequence=sequence,
            transactional=True,
        )
        return ProduceRequest(
            transactional_id=self._producer.name,
            acks=-1,
            timeout_ms=3_000,
            topic_data=[
                TopicProduceData(
                    name=TOPIC, partition_data=[PartitionProduceData(index=place, records=bytes(records))]
                )
            ],
        )
