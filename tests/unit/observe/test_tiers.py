"""Which leaders are asked how far history is in the store, and what comes of answers that are missing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from headrace.client.errors import Unreachable
from headrace.client.tiering import EARLIEST_LOCAL, LATEST_TIERED, PartitionTier
from headrace.config.tier_report import LedTier, topic_figure
from headrace.core.ids import TopicPartition
from headrace.observe import ends as ends_module
from headrace.observe.ends import Ends
from headrace.observe.tier_seen import tiers_seen
from headrace.observe.tiers import TieredTopic, TierOffsets, Tiers, ask_settings, ask_tiers
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.describe_configs_request import DescribeConfigsRequest
from headrace.protocol.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from headrace.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tests.unit.observe.made_up import topic

PLAIN = TieredTopic(True, None)
ORDERS = [TopicPartition("orders", number) for number in range(3)]
CLICKS = TopicPartition("clicks", 0)
LED = LedTier(0, 7, 6, 5, 4, 3, 2, "")


class Brokers:
    """All answer the same, but for those that are away."""

    request_timeout = 5.0

    def __init__(self, *, away: int = 0, offsets: Mapping[int, int] | None = None, told: Any = LED) -> None:
        self.asked: list[tuple[int, str]] = []
        self.away = away
        self.offsets = {EARLIEST_LOCAL: 40, LATEST_TIERED: 59} if offsets is None else offsets
        self.told = told
        self.settings: dict[str, dict[str, str]] = {}

    async def ask_broker(self, broker: int, request: Any, _: Any, *, at_most: int) -> Any:
        self.asked.append((broker, type(request).__name__))
        if broker == self.away:
            raise Unreachable(f"kafka{broker}", 9092)
        if isinstance(request, DescribeConfigsRequest):
            return self._report(request)
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=asked.name,
                    partitions=[
                        ListOffsetsPartitionResponse(
                            partition_index=each.partition_index, offset=self.offsets[each.timestamp]
                        )
                        for each in asked.partitions
                    ],
                )
                for asked in request.topics
            ]
        )

    def _report(self, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        (resource,) = request.resources
        assert resource.configuration_keys == ["headrace.tier"]
        result = DescribeConfigsResult(
            resource_type=4, resource_name=resource.resource_name, error_message=None
        )
        if isinstance(self.told, ErrorCode):
            result.error_code = self.told
        elif self.told is not None:
            name, value = topic_figure("orders", [self.told])
            result.configs = [DescribeConfigsResourceResult(name=f"headrace.tier.{name}", value=value)]
        return DescribeConfigsResponse(results=[result])

    # --- settings ---

    async def any_broker(self) -> Brokers:
        return self

    async def retried(self, attempt: Any) -> Any:
        return await attempt()

    async def request(self, request: Any, _: Any, *, at_most: int, timeout: float) -> Any:
        self.asked.append((0, type(request).__name__))
        return DescribeConfigsResponse(
            results=[
                DescribeConfigsResult(
                    resource_type=2,
                    resource_name=each.resource_name,
                    error_message=None,
                    configs=[
                        DescribeConfigsResourceResult(name=name, value=value)
                        for name, value in self.settings[each.resource_name].items()
                        if name in (each.configuration_keys or ())
                    ],
                )
                for each in request.resources
            ]
        )


def asked(brokers: Brokers, led: dict[int, list[TopicPartition]], *topics: str) -> Tiers:
    cluster: Any = brokers
    return asyncio.run(ask_tiers(cluster, dict.fromkeys(topics, PLAIN), led))


def test_leaders_of_tiered_topics_are_asked_and_no_others() -> None:
    brokers = Brokers()
    found = asked(brokers, {1: [ORDERS[0], CLICKS], 2: [CLICKS]}, "orders")
    assert sorted(brokers.asked) == [
        (1, "DescribeConfigsRequest"),
        (1, "ListOffsetsRequest"),
        (1, "ListOffsetsRequest"),
    ]
    assert found.offsets == {ORDERS[0]: TierOffsets(40, 59)}
    assert found.led == {ORDERS[0]: LED}
    assert found.untold == {}


def test_where_nothing_is_tiered_nobody_is_asked() -> None:
    brokers = Brokers()
    assert asked(brokers, {1: ORDERS, 2: [CLICKS]}) == Tiers({})
    assert brokers.asked == []


def test_many_partitions_take_few_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ends_module, "PARTITIONS_AT_ONCE", 2)
    brokers = Brokers()
    found = asked(brokers, {1: ORDERS}, "orders")
    assert len(found.offsets) == 3
    assert [kind for _, kind in brokers.asked].count("ListOffsetsRequest") == 4


def test_a_broker_that_is_away_costs_the_others_nothing() -> None:
    found = asked(Brokers(away=2), {1: [ORDERS[0]], 2: [ORDERS[1]]}, "orders")
    assert list(found.offsets) == [ORDERS[0]]
    assert list(found.untold) == [2]
    assert "kafka2:9092" in found.untold[2]


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (None, "it is Apache Kafka, or of an older version"),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "broker 1"),
    ],
)
def test_offsets_are_known_where_bytes_are_not(told: Any, why: str) -> None:
    found = asked(Brokers(told=told), {1: [ORDERS[0]]}, "orders")
    assert found.offsets == {ORDERS[0]: TierOffsets(40, 59)}
    assert found.led == {}
    assert why in found.untold[1]


def test_settings_in_one_request_for_all_that_is_asked_of_topics() -> None:
    brokers = Brokers()
    brokers.settings = {
        "clicks": {"min.insync.replicas": "2", "remote.storage.enable": "false"},
        "legacy": {
            "min.insync.replicas": "1",
            "remote.storage.enable": "true",
            "remote.log.copy.disable": "true",
        },
        "orders": {"min.insync.replicas": "2", "remote.storage.enable": "true", "headrace.tier.fork": ""},
    }
    cluster: Any = brokers
    found = asyncio.run(ask_settings(cluster, list(brokers.settings)))
    assert found.min_isr == {"clicks": 2, "legacy": 1, "orders": 2}
    assert found.tiered == {"legacy": TieredTopic(False, None), "orders": PLAIN}
    assert len(brokers.asked) == 1


def seen(tiers: Tiers, end: Ends) -> Any:
    found = tiers_seen(tiers, [topic("orders", 1, (1,), 1)], {ORDERS[0]: end})
    assert isinstance(found, dict)
    return found["orders"].partitions[0]


def test_nothing_in_the_store_yet() -> None:
    tiers = asked(Brokers(offsets={EARLIEST_LOCAL: 10, LATEST_TIERED: -1}), {1: [ORDERS[0]]}, "orders")
    assert seen(tiers, Ends(10, 90, 90)).offsets == PartitionTier(10, 10, 10, 90)


def test_what_was_copied_since_the_end_was_asked_lies_behind_it() -> None:
    tiers = asked(Brokers(), {1: [ORDERS[0]]}, "orders")
    assert seen(tiers, Ends(0, 50, 50)).offsets == PartitionTier(0, 40, 50, 50)
    assert seen(tiers, Ends(0, 90, 90)).offsets == PartitionTier(0, 40, 60, 90)


def test_a_partition_whose_start_nobody_tells_is_not_known() -> None:
    tiers = Tiers({"orders": PLAIN}, {}, {ORDERS[0]: LED})
    assert seen(tiers, Ends(0, 90, 90)).offsets is None
    assert seen(tiers, Ends(0, 90, 90)).waiting is None
