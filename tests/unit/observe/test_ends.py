"""Where partitions end, while records come between two questions and a broker is away."""

from __future__ import annotations

import asyncio
from typing import Any

from headrace.client.errors import Unreachable
from headrace.client.group_lag import log_ends
from headrace.core.ids import TopicPartition
from headrace.observe.ends import Ends, ask_ends, by_leader
from headrace.protocol.messages.list_offsets_request import ListOffsetsRequest
from headrace.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from headrace.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.unit.observe.made_up import topic

HERE, AWAY = 1, 2
ORDERS = TopicPartition("orders", 0)


class Growing:
    """A leader: a record comes before each question, and a transaction may be open from an offset on."""

    def __init__(self, *, open_from: int | None = None) -> None:
        self.end = 1000
        self.open_from = open_from

    async def ask_broker(self, broker: int, request: ListOffsetsRequest, _: Any, *, at_most: int) -> Any:
        if broker == AWAY:
            raise Unreachable("kafka2", 9092)
        self.end += 1
        offset = 0
        if request.topics[0].partitions[0].timestamp == -1:
            offset = self.end
            if request.isolation_level and self.open_from is not None:
                offset = min(offset, self.open_from)
        answers = [
            ListOffsetsTopicResponse(
                name=asked.name,
                partitions=[
                    ListOffsetsPartitionResponse(partition_index=each.partition_index, offset=offset)
                    for each in asked.partitions
                ],
            )
            for asked in request.topics
        ]
        return ListOffsetsResponse(topics=answers)

    async def by_leader(self, places: Any) -> dict[int, list[TopicPartition]]:
        return {HERE: list(places)}

    async def retried(self, attempt: Any) -> Any:
        return await attempt()

    async def metadata(self, names: Any) -> MetadataResponse:
        entry = MetadataResponsePartition(partition_index=0, leader_id=HERE)
        return MetadataResponse(topics=[MetadataResponseTopic(name="orders", partitions=[entry])])


def ends(cluster: Any, led: dict[int, list[TopicPartition]]) -> Any:
    return asyncio.run(ask_ends(cluster, led))


def test_records_that_come_meanwhile_are_not_held_by_anybody() -> None:
    assert ends(Growing(), {HERE: [ORDERS]}).ends == {ORDERS: Ends(0, 1002, 1002)}


def test_an_open_transaction_holds() -> None:
    assert ends(Growing(open_from=1001), {HERE: [ORDERS]}).ends == {ORDERS: Ends(0, 1001, 1002)}


def test_group_lag_is_not_deceived_either() -> None:
    growing: Any = Growing()
    found = asyncio.run(log_ends(growing, [ORDERS]))[ORDERS]
    assert found.stable == found.high_watermark <= found.end
    held: Any = Growing(open_from=1001)
    assert asyncio.run(log_ends(held, [ORDERS]))[ORDERS].stable == 1001


def test_a_broker_that_is_away_costs_the_others_nothing() -> None:
    led = by_leader([topic("orders", 1, (HERE,), 1), topic("clicks", 1, (AWAY,), 1)])
    found = ends(Growing(), led)
    assert list(found.ends) == [ORDERS]
    assert list(found.silent) == [AWAY]
    assert "kafka2:9092" in found.silent[AWAY]
