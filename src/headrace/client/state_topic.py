"""A state over a compacted topic, which several processes follow and change, one at a time.

Any of them may write, without an election. Whoever wants to write takes a transactional id, which gives it a
higher epoch of one producer id, and puts a record under that epoch into the topic. From then on the broker
refuses batches of lower epochs there. So what the state says once that record has been read back stays true
until the own next write, or that write is refused. See docs/adr/0012-registry.md.
"""

from __future__ import annotations

import asyncio
import random
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from headrace.client.errors import ClientFailure, ConnectionLost, Refused, TimedOut
from headrace.client.refusals import refusal_of_leader
from headrace.client.topic_follower import TopicFollower
from headrace.client.transactions import fence
from headrace.core.errors import HeadraceError
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.protocol.messages.produce_response import ProduceResponse
from headrace.protocol.records import NewRecord, encode_batch

T = TypeVar("T")
Pair = tuple[bytes, bytes | None]
"""A key and a value."""

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
    """Another process has written since."""


class StateTopic(TopicFollower):
    """`transactional_id` is the same for all that write to the topic."""

    transactional_id: str

    _lock: asyncio.Lock | None = None
    _turn: _Turn | None = None

    @abstractmethod
    def turn_record(self) -> Pair:
        """What takes the turn. It changes nothing, and tells what compaction could lose otherwise."""

    @abstractmethod
    def failure(self, reason: str, *, perhaps_written: bool) -> HeadraceError:
        """What callers of `write_pairs` know."""

    @abstractmethod
    def too_large(self, reason: str) -> HeadraceError:
        """No record as large fits."""

    async def write_pairs(self, decide: Callable[[], tuple[Sequence[Pair], T]]) -> T:
        """The answer of `decide`, once its records are in the topic and in the state.

        It is asked again whenever the state that it decided on is not the newest any more.
        """
        if self._lock is None:
            self._lock = asyncio.Lock()
        try:
            async with self._lock:
                return await self._write_in_turn(decide)
        except TimeoutError as error:
            self._turn = None
            raise self.failure(
                "the write was not confirmed in time; it may have been made", perhaps_written=True
            ) from error
        except ClientFailure as error:
            self._turn = None
            raise self.failure(f"the write could not be made: {error}", perhaps_written=False) from error

    async def _write_in_turn(self, decide: Callable[[], tuple[Sequence[Pair], T]]) -> T:
        pause = _FIRST_PAUSE
        for _ in range(_ATTEMPTS):
            try:
                turn = await self._my_turn()
                pairs, answer = decide()
                if pairs:
                    await self._append(turn, pairs)
                return answer
            except Superseded:
                self._turn = None
            # Two that both have much to write would only take the turn from each other.
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))
            pause *= 2
        raise self.failure("others write all the time; ask again", perhaps_written=False)

    async def _my_turn(self) -> _Turn:
        now = time.monotonic()
        turn = self._turn
        if turn is not None and now < turn.until and turn.end == self._position:
            return turn
        self._turn = None
        producer = await fence(self._writing, self.transactional_id)
        turn = _Turn(producer.producer_id, producer.producer_epoch, 0, now + _TURN_SECONDS, -1)
        said = self.turn_record()
        await self._append(turn, [said])
        if self.turn_record() != said:
            # Others wrote what was not read yet. Compaction keeps the last such record: it must tell of it.
            await self._append(turn, [self.turn_record()])
        self._turn = turn
        return turn

    async def _append(self, turn: _Turn, pairs: Sequence[Pair]) -> None:
        """One batch: all of it is kept, or nothing."""
        now_ms = time.time_ns() // 1_000_000
        batch = encode_batch(
            [NewRecord(value, key, now_ms) for key, value in pairs],
            producer_id=turn.producer_id,
            producer_epoch=turn.epoch,
            base_sequence=turn.sequence,
        )
        expected = turn.end
        offset = await self._written(batch)
        turn.sequence += len(pairs)
        turn.end = offset + len(pairs)
        turn.until = time.monotonic() + _TURN_SECONDS
        await self._read_up_to(turn.end, timeout=self._timeout)
        if expected not in (-1, offset):
            # Only a writer that keeps to no turns can do that, such as another maker's program.
            self.complain("somebody else writes to the topic", offset=offset)
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
            raise self.too_large(f"topic {topic} takes no record as large; raise its max.message.bytes")
        if result.error_code:
            raise refusal_of_leader(result.error_code, f"partition {self.partition}", result.error_message)
        return result.base_offset
