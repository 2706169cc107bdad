"""Spans of partitions, as a scripted broker sends them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from headrace.arrow import brokers
from headrace.arrow.brokers import SpanReader
from headrace.arrow.columns import Taken, Wanted
from headrace.arrow.partition_reader import Reading
from headrace.client.cluster import Cluster
from headrace.client.errors import TimedOut
from headrace.core.ids import TopicPartition
from headrace.protocol.messages.fetch_request import FetchRequest
from headrace.protocol.messages.fetch_response import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from headrace.protocol.records import NewRecord, encode_batch
from tests.unit.arrow.rows import offsets_in
from tests.unit.client.scripted_broker import ScriptedBroker

HERE = TopicPartition("t", 0)
Log = Mapping[int, bytes]
"""By the offset that is asked for."""


def some(base: int, count: int, producer: int = -1) -> bytes:
    records = [NewRecord(b"x" * 50, None, 1)] * count
    return bytes(encode_batch(records, base_offset=base, producer_id=producer, transactional=producer >= 0))


class Source(ScriptedBroker):
    def __init__(self, log: Log, aborted: int | None = None) -> None:
        super().__init__({FetchRequest: self._fetch})
        self.topics["t"] = 1
        self._log = log
        self._aborted = aborted

    def _fetch(self, request: FetchRequest, _: int) -> FetchResponse:
        assert request.isolation_level == 1
        data = PartitionData(
            partition_index=0,
            high_watermark=100,
            last_stable_offset=100,
            records=self._log.get(request.topics[0].partitions[0].fetch_offset, b""),
            aborted_transactions=None
            if self._aborted is None
            else [AbortedTransaction(producer_id=self._aborted, first_offset=0)],
        )
        return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[data])])


async def read(source: Source, first: int, end: int) -> list[list[int]]:
    """The offsets of each block."""
    async with source, Cluster(source.address) as cluster:
        reader = SpanReader(cluster, {HERE: (first, end)}, Reading(Wanted(), rows=10))
        return [offsets_in(Taken._make(block.taken)) async for block in reader.blocks()]


async def test_both_ends_may_lie_within_a_batch() -> None:
    source = Source({3: some(0, 8), 8: some(8, 8)})
    assert await read(source, 3, 12) == [[3, 4, 5, 6, 7, 8, 9, 10, 11]]


async def test_gaps_are_passed_over_and_a_block_is_given_when_it_is_full() -> None:
    source = Source({0: some(5, 20), 25: some(40, 2)})
    assert await read(source, 0, 42) == [list(range(5, 25)), [40, 41]]


async def test_what_was_given_up_is_left_out() -> None:
    source = Source({0: some(0, 2, producer=7) + some(2, 2, producer=8)}, aborted=7)
    assert await read(source, 0, 4) == [[2, 3]]


async def test_what_many_partitions_hold_together_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brokers, "_MOST_BYTES", 200)
    source = Source({0: some(0, 5), 5: some(5, 2), 7: some(7, 1)})
    assert await read(source, 0, 8) == [[0, 1, 2, 3, 4], [5, 6, 7]]


async def test_an_end_that_the_brokers_have_lost_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brokers, "_PATIENCE_S", 0.05)
    with pytest.raises(TimedOut, match="t-0 gave nothing at offset 5"):
        await read(Source({0: some(0, 5)}), 0, 9)
