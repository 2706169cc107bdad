"""The registry's state over its topic: follows the log, and writes to it as the only one that may.

Any registry may write, one at a time, without an election. Whoever wants to write takes the registry's
transactional id, which gives it a higher epoch of one producer id, and puts a NOOP record under that epoch
into the topic. From then on the broker refuses batches of lower epochs there. So what the state says once
that record has been read back stays true until the own next write, or that write is refused. See
docs/adr/0012-registry.md.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from headrace.client import admin
from headrace.client.cluster import Cluster
from headrace.client.configs import Resource, ResourceType, describe_configs
from headrace.client.consumer import Consumer
from headrace.client.errors import ClientFailure, ConnectionLost, Refused, TimedOut
from headrace.client.offsets import ends_of
from headrace.client.refusals import refusal_of_leader
from headrace.client.security import PLAINTEXT, ClientSecurity
from headrace.client.transactions import fence
from headrace.core.ids import TopicPartition
from headrace.core.tasks import spawn
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.protocol.messages.produce_response import ProduceResponse
from headrace.protocol.records import NewRecord, Record, encode_batch
from headrace.registry import errors
from headrace.registry.decision import Decision
from headrace.registry.deleting import highest_id
from headrace.registry.records import Entry, UnreadableRecord, decode
from headrace.registry.state import State

T = TypeVar("T")
log = logging.getLogger("headrace.registry")

_PRODUCE_AT_MOST: Final = 11
_ATTEMPTS: Final = 8
_FIRST_PAUSE: Final = 0.02
_TURN_SECONDS: Final = 600.0
"""A turn is not relied on for longer. Brokers forget producers that have been silent for a day."""
_SUPERSEDED: Final = frozenset(
    (
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    )
)

_PERHAPS_WRITTEN: Final = frozenset((ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND))
_TOO_LARGE: Final = frozenset((ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE))


@dataclass(slots=True)
class _Turn:
    """The right to write, as long as nobody else has taken it."""

    producer_id: int
    epoch: int
    sequence: int
    until: float
    end: int
    """The offset after the own last record. Nothing may have come behind it."""


class Superseded(Exception):
    """Another registry has written since."""


class Store:
    """Use `open`, then `state` for reading and `write` for changes, and `close`."""

    def __init__(
        self, bootstrap: str, topic: str, *, timeout: float = 30.0, security: ClientSecurity = PLAINTEXT
    ) -> None:
        self.state = State()
        self.partition = TopicPartition(topic, 0)
        self._timeout = timeout
        # A broker answers a connection's requests in order: a write must not wait behind a fetch that waits.
        made = partial(Cluster, bootstrap, request_timeout=timeout, security=security)
        self._reading = made(client_id="headrace-registry-reader")
        self._writing = made(client_id="headrace-registry")
        self._position = 0
        self._moved = asyncio.Event()
        self._lock = asyncio.Lock()
        self._turn: _Turn | None = None
        self._following: asyncio.Task[None] | None = None

    @property
    def transactional_id(self) -> str:
        return f"headrace-registry-{self.partition.topic}"

    @property
    def position(self) -> int:
        """The offset up to which the state has the topic."""
        return self._position

    async def open(self) -> None:
        """When this returns, the state has all that was in the topic."""
        await self._ensure_topic()
        first, end = (await ends_of(self._reading, [self.partition]))[self.partition]
        self._position = first
        self._following = spawn("the reader of schemas", self._follow(), is_awaited=True)
        await self._read_up_to(end, timeout=None)
        self._say("schemas loaded", end=end, versions=len(self.state))

    async def close(self) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        await self._reading.close()
        await self._writing.close()

    async def failed(self) -> None:
        """Returns never, or raises when the topic can be followed no more."""
        assert self._following is not None
        await asyncio.shield(self._following)

    # --- reading --------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        consumer = Consumer(self._reading, {self.partition: self._position}, patience=float("inf"))
        try:
            while True:
                for fetched in await consumer.poll():
                    for record in fetched.records:
                        self._apply(record)
                    self._position = fetched.next_offset
                    self._moved.set()
                    self._moved = asyncio.Event()
        finally:
            await consumer.close()

    def _apply(self, record: Record) -> None:
        try:
            entry = decode(record.key, record.value)
        except UnreadableRecord as error:
            # One bad record must not hide all the others, and it cannot be taken back either.
            self._complain(
                "a record cannot be read and is passed over", offset=record.offset, error=str(error)
            )
            return
        if entry is not None:
            self.state.replay(entry)

    async def _read_up_to(self, offset: int, *, timeout: float | None) -> None:
        """Until everything below `offset` is in the state."""
        async with asyncio.timeout(timeout):
            while self._position < offset:
                assert self._following is not None
                if self._following.done():
                    await self._following
                moved = self._moved
                await asyncio.wait(
                    [self._following, waiting := spawn("a new schema", moved.wait(), is_awaited=True)],
                    return_when=asyncio.FIRST_COMPLETED,
                )
                waiting.cancel()

    # --- writing --------------------------------------------------------------------------------------

    async def write(self, decide: Callable[[State], Decision[T]]) -> T:
        """The answer of `decide`, once its records are in the topic and in the state.

        It is asked again whenever the state that it decided on is not the newest any more.
        """
        # Most registrations are of schemas that are there. They need no turn.
        try:
            decision = decide(self.state)
        except errors.RegistryError:
            pass  # perhaps only because the state is behind
        else:
            if not decision.records:
                return decision.answer
        try:
            async with self._lock:
                return await self._write_in_turn(decide)
        except TimeoutError as error:
            self._turn = None
            raise errors.store_timed_out(
                "the write was not confirmed in time; it may have been made"
            ) from error
        except ClientFailure as error:
            self._turn = None
            raise errors.store_failed(f"the write could not be made: {error}") from error

    async def _write_in_turn(self, decide: Callable[[State], Decision[T]]) -> T:
        pause = _FIRST_PAUSE
        for _ in range(_ATTEMPTS):
            try:
                turn = await self._my_turn()
                decision = decide(self.state)
                if decision.records:
                    await self._append(turn, decision.records)
                return decision.answer
            except Superseded:
                self._turn = None
            # Two registries that both have much to write would only take the turn from each other.
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))
            pause *= 2
        raise errors.store_failed("other registries write all the time; ask again")

    async def _my_turn(self) -> _Turn:
        now = time.monotonic()
        turn = self._turn
        if turn is not None and now < turn.until and turn.end == self._position:
            return turn
        self._turn = None
        producer = await fence(self._writing, self.transactional_id)
        turn = _Turn(producer.producer_id, producer.producer_epoch, 0, now + _TURN_SECONDS, -1)
        said = self.state.highest_id
        await self._append(turn, [highest_id(self.state)])
        if self.state.highest_id > said:
            # Others gave ids that were not read yet. Compaction keeps the last NOOP, so it must tell of them.
            await self._append(turn, [highest_id(self.state)])
        self._turn = turn
        return turn

    async def _append(self, turn: _Turn, entries: list[Entry]) -> None:
        """One batch: all of it is kept, or nothing."""
        now_ms = time.time_ns() // 1_000_000
        encoded = [entry.encode() for entry in entries]
        batch = encode_batch(
            [NewRecord(value, key, now_ms) for key, value in encoded],
            producer_id=turn.producer_id,
            producer_epoch=turn.epoch,
            base_sequence=turn.sequence,
        )
        expected = turn.end
        offset = await self._written(batch)
        turn.sequence += len(entries)
        turn.end = offset + len(entries)
        turn.until = time.monotonic() + _TURN_SECONDS
        await self._read_up_to(turn.end, timeout=self._timeout)
        if expected not in (-1, offset):
            # Only a writer that keeps to no turns can do that, such as another maker's registry.
            self._complain("somebody else writes to the topic", offset=offset)
            self._turn = None

    async def _written(self, batch: bytearray) -> int:
        """Its offset. TimeoutError where it may have been written, ClientFailure where it was not."""
        perhaps = False

        async def attempt() -> int:
            nonlocal perhaps
            try:
                return await self._produce(batch)
            except (ConnectionLost, TimedOut):
                perhaps = True
                raise
            except Refused as error:
                perhaps = perhaps or error.code in _PERHAPS_WRITTEN
                raise

        try:
            return await self._writing.retried(attempt)
        except ClientFailure as error:
            if perhaps:
                raise TimeoutError(str(error)) from error
            raise

    async def _produce(self, batch: bytearray) -> int:
        topic, index = self.partition
        request = ProduceRequest(
            acks=-1,
            timeout_ms=self._writing.request_timeout_ms,
            topic_data=[
                TopicProduceData(
                    name=topic, partition_data=[PartitionProduceData(index=index, records=batch)]
                )
            ],
        )
        leader = await self._writing.leader(self.partition)
        reply = await self._writing.ask_broker(leader, request, ProduceResponse, at_most=_PRODUCE_AT_MOST)
        ((result,),) = (entry.partition_responses for entry in reply.responses)
        if result.error_code in _SUPERSEDED:
            raise Superseded
        if result.error_code in _TOO_LARGE:
            raise errors.schema_too_large(
                f"topic {topic} takes no record as large; raise its max.message.bytes"
            )
        if result.error_code:
            raise refusal_of_leader(result.error_code, f"partition {self.partition}", result.error_message)
        return result.base_offset

    def _say(self, event: str, **fields: object) -> None:
        log.info(event, extra={"topic": self.partition.topic, **fields})

    def _complain(self, event: str, **fields: object) -> None:
        log.error(event, extra={"topic": self.partition.topic, **fields})

    # --- the topic ------------------------------------------------------------------------------------

    async def _ensure_topic(self) -> None:
        name = self.partition.topic
        try:
            topic = await self._writing.retried(lambda: self._writing.topic(name))
        except Refused as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            await self._create_topic()
            return
        if len(topic.partitions) != 1:
            raise ClientFailure(
                f"topic {name} has {len(topic.partitions)} partitions, a registry's has one",
                "name another with --topic",
            )
        entries = await describe_configs(
            self._writing, Resource(ResourceType.TOPIC, name), ["cleanup.policy"]
        )
        policy = next((entry.value or "" for entry in entries), "")
        if policy != "compact":
            raise ClientFailure(
                f"topic {name} has cleanup.policy={policy}: schemas would be lost with time",
                f"`headrace config set --topic {name} cleanup.policy=compact` makes it a registry's",
            )

    async def _create_topic(self) -> None:
        name = self.partition.topic
        brokers = len((await self._writing.metadata([])).brokers)
        try:
            await admin.create_topic(
                self._writing,
                name,
                partitions=1,
                replication_factor=min(3, brokers),
                configs={"cleanup.policy": "compact"},
            )
        except Refused as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:  # by another registry, just now
                raise
        self._say("topic created", replicas=min(3, brokers))
