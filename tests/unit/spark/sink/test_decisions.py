"""A record of the topic of decisions counts once its own transaction is committed, whatever others do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from headrace.client.cluster import Cluster
from headrace.client.connection import Answer
from headrace.client.errors import Refused
from headrace.client.transaction_ends import Identity
from headrace.core.ids import TopicPartition
from headrace.protocol import batch as batches
from headrace.protocol.control_records import end_marker
from headrace.protocol.message import Message
from headrace.protocol.messages.fetch_request import FetchRequest
from headrace.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from headrace.protocol.messages.list_offsets_request import ListOffsetsRequest
from headrace.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from headrace.protocol.records import NewRecord, Record, encode_batch
from headrace.spark.sink.decision import Decision, encode_decision
from headrace.spark.sink.decisions import committed, read_state
from headrace.spark.sink.naming import decision_key


class Log:
    def __init__(self) -> None:
        self.data = bytearray()
        self._next = 0

    def write(self, value: bytes, producer_id: int = -1, key: bytes = b"k") -> None:
        self._append([NewRecord(value, key, 1)], producer_id, control=False)

    def decide(self, batch: int) -> None:
        decision = Decision(batch, "query", batch, Identity("decider", 1, 0), (), 1)
        self.write(encode_decision(decision), 1, decision_key("sink"))
        self.end(1, commit=True)

    def end(self, producer_id: int, *, commit: bool) -> None:
        marker = end_marker(commit=commit, coordinator_epoch=0, timestamp=1)
        self._append([marker], producer_id, control=True)

    def _append(self, records: list[NewRecord], producer_id: int, *, control: bool) -> None:
        self.data += encode_batch(
            records,
            base_offset=self._next,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            transactional=producer_id >= 0,
            control=control,
        )
        self._next += len(records)

    def between(self, first: int, end: int) -> bytes:
        """The batches that a fetch finds there."""
        data = bytes(self.data)
        return b"".join(
            data[at : at + header.size]
            for at, header in batches.iterate(data)
            if header.next_offset > first and header.next_offset <= end
        )

    def committed(self) -> list[bytes | None]:
        return [record.value for record in committed(bytes(self.data), {})]


def test_what_is_open_or_aborted_does_not_count() -> None:
    log = Log()
    log.write(b"aborted", 1)
    log.write(b"open", 2)
    log.end(1, commit=False)
    log.write(b"plain")
    log.write(b"committed", 1)
    log.end(1, commit=True)
    assert log.committed() == [b"plain", b"committed"]


def test_an_open_decision_of_another_sink_is_in_nobodys_way() -> None:
    log = Log()
    log.write(b"of another", 2)
    log.write(b"mine", 1)
    log.end(1, commit=True)
    assert log.committed() == [b"mine"]


def test_records_count_in_the_order_of_their_ends() -> None:
    log = Log()
    log.write(b"first begun", 1)
    log.write(b"first ended", 2)
    log.end(2, commit=True)
    log.end(1, commit=True)
    assert log.committed() == [b"first ended", b"first begun"]


def test_a_marker_may_come_with_a_later_fetch() -> None:
    begun, ended = Log(), Log()
    begun.write(b"mine", 1)
    ended.end(1, commit=True)
    pending: dict[int, list[Record]] = {}
    assert list(committed(bytes(begun.data), pending)) == []
    assert [record.value for record in committed(bytes(ended.data), pending)] == [b"mine"]
    assert pending == {}


class NewLeader(Cluster):
    """It holds all of the log, and learns from one answer to the next how much of it is committed. The leader
    before it had said where the log ends."""

    def __init__(self, log: Log, end: int, known: Sequence[int]) -> None:
        super().__init__("unused:1", request_timeout=2.0)
        self._log, self._end, self._known = log, end, list(known)

    async def leader(self, partition: TopicPartition) -> int:
        return 1

    async def ask_broker(
        self, broker_id: int, message: Message, answer: type[Answer], *, at_most: int | None = None
    ) -> Answer:
        reply: Message
        if isinstance(message, ListOffsetsRequest):
            ((asked,),) = (topic.partitions for topic in message.topics)
            offset = 0 if asked.timestamp == -2 else self._end
            found = ListOffsetsPartitionResponse(partition_index=0, offset=offset)
            reply = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="d", partitions=[found])])
        else:
            assert isinstance(message, FetchRequest)
            ((wanted,),) = (topic.partitions for topic in message.topics)
            high = self._known.pop(0) if len(self._known) > 1 else self._known[0]
            records = self._log.between(wanted.fetch_offset, high)
            data = PartitionData(partition_index=0, high_watermark=high, records=records)
            reply = FetchResponse(responses=[FetchableTopicResponse(topic="d", partitions=[data])])
        assert isinstance(reply, answer)
        return reply


def test_the_last_decision_is_waited_for_while_a_new_leader_is_behind() -> None:
    log = Log()
    log.decide(0)
    log.decide(1)
    state = asyncio.run(read_state(NewLeader(log, 4, [0, 2, 3, 3, 4]), "d", "sink"))
    assert state.decision is not None
    assert state.decision.batch == 1


def test_a_leader_that_stays_behind_is_not_believed() -> None:
    log = Log()
    log.decide(0)
    log.decide(1)
    with pytest.raises(Refused):
        asyncio.run(read_state(NewLeader(log, 4, [2]), "d", "sink"))


def test_an_end_that_was_compacted_away_is_the_end() -> None:
    log = Log()
    log.decide(0)
    state = asyncio.run(read_state(NewLeader(log, 7, [7]), "d", "sink"))
    assert state.decision is not None
    assert state.decision.batch == 0
