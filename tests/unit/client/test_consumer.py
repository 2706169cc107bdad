from __future__ import annotations

from collections.abc import Callable

import pytest

from headrace.client.cluster import Cluster
from headrace.client.consumer import Consumer
from headrace.client.errors import Refused
from headrace.client.visible import records_from, visible_batches
from headrace.core.errors import CorruptBatch
from headrace.core.ids import TopicPartition
from headrace.protocol.control_records import end_marker
from headrace.protocol.messages.fetch_request import FetchRequest
from headrace.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from headrace.protocol.records import NewRecord, encode_batch
from tests.unit.client.scripted_broker import ScriptedBroker


def some(base: int, count: int, **options: object) -> bytes:
    records = [NewRecord(b"v%d" % (base + n), None, 1) for n in range(count)]
    return bytes(encode_batch(records, base_offset=base, **options))  # type: ignore[arg-type]  # test options


def marker(base: int, producer_id: int, commit: bool) -> bytes:
    record = end_marker(commit=commit, coordinator_epoch=0, timestamp=1)
    return bytes(
        encode_batch(
            [record],
            base_offset=base,
            producer_id=producer_id,
            producer_epoch=0,
            control=True,
            transactional=True,
        )
    )


def test_a_fetch_from_the_middle_of_a_batch() -> None:
    records, position = records_from(some(0, 5) + some(5, 2), 3)
    assert [record.offset for record in records] == [3, 4, 5, 6]
    assert position == 7


def test_a_cut_off_tail_is_left_for_the_next_fetch() -> None:
    records, position = records_from(some(0, 2) + some(2, 2)[:-1], 0)
    assert [record.offset for record in records] == [0, 1]
    assert position == 2


def test_a_broken_batch_is_not_shown() -> None:
    data = bytearray(some(0, 2))
    data[-1] ^= 1
    with pytest.raises(CorruptBatch):
        records_from(data, 0)


def test_aborted_transactions_are_hidden_and_markers_always() -> None:
    data = (
        some(0, 2, producer_id=1, producer_epoch=0, transactional=True)
        + some(2, 2, producer_id=2, producer_epoch=0, transactional=True)
        + some(4, 1)
        + marker(5, 1, commit=False)
        + some(6, 1, producer_id=1, producer_epoch=0, transactional=True)
        + marker(7, 2, commit=True)
        + marker(8, 1, commit=True)
    )
    records, position = records_from(data, 0, [(1, 0)])
    assert [record.offset for record in records] == [2, 3, 4, 6]
    assert position == 9
    assert [shown for _, _, shown in visible_batches(data)] == [True, True, True, False, True, False, False]


def answers(*replies: PartitionData) -> Callable[[FetchRequest, int], FetchResponse]:
    pending = list(replies)

    def fetch(request: FetchRequest, version: int) -> FetchResponse:
        reply = pending.pop(0)
        return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[reply])])

    return fetch


T0 = TopicPartition("t", 0)


async def test_positions_move_with_what_was_returned() -> None:
    fetch = answers(
        PartitionData(partition_index=0, high_watermark=7, last_stable_offset=5, records=some(0, 5)),
        PartitionData(partition_index=0, error_code=6, high_watermark=-1),
        PartitionData(partition_index=0, high_watermark=7, last_stable_offset=7, records=some(5, 2)),
        PartitionData(partition_index=0, high_watermark=7, last_stable_offset=7, records=None),
    )
    async with ScriptedBroker({FetchRequest: fetch}) as broker, Cluster(broker.address) as cluster:
        broker.topics["t"] = 1
        consumer = Consumer(cluster, {T0: 2})
        (first,) = await consumer.poll()
        assert [record.offset for record in first.records] == [2, 3, 4]
        assert (first.next_offset, first.end_offset) == (5, 5)
        assert await consumer.poll() == []  # the leader moved; the next poll asks again
        (second,) = await consumer.poll()
        assert [record.offset for record in second.records] == [5, 6]
        (third,) = await consumer.poll()
        assert third.records == []
        assert third.next_offset == 7
        asked = [request.topics[0].partitions[0].fetch_offset for request in broker.seen(FetchRequest)]
        assert asked == [2, 5, 5, 7]
        await consumer.close()


async def test_an_offset_out_of_range_is_raised() -> None:
    fetch = answers(PartitionData(partition_index=0, error_code=1, high_watermark=-1))
    async with ScriptedBroker({FetchRequest: fetch}) as broker, Cluster(broker.address) as cluster:
        broker.topics["t"] = 1
        consumer = Consumer(cluster, {T0: 99})
        with pytest.raises(Refused, match="outside the log of partition t-0"):
            await consumer.poll()
        await consumer.close()


async def test_a_dropped_partition_is_read_no_more() -> None:
    fetch = answers(
        PartitionData(partition_index=0, high_watermark=2, last_stable_offset=2, records=some(0, 2))
    )
    async with ScriptedBroker({FetchRequest: fetch}) as broker, Cluster(broker.address) as cluster:
        broker.topics["t"] = 1
        consumer = Consumer(cluster, {T0: 0})
        assert len(await consumer.poll()) == 1
        consumer.drop(T0)
        assert consumer.positions == {}
        await consumer.close()
