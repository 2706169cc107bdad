"""ListConfigResources: what exists, and what something was set for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.cluster.metadata_cache import Node
from headrace.broker.handlers.list_config_resources import LISTED_AT_ONCE, handle
from headrace.controller.image import ConfigResource, ResourceType
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.list_config_resources_request import ListConfigResourcesRequest

CONFIGURED = [
    ConfigResource(ResourceType.TOPIC, "t0"),
    ConfigResource(ResourceType.GROUP, "g"),
    ConfigResource(ResourceType.BROKER, ""),
    ConfigResource(ResourceType.GROUP, "h"),
]


class Turns:
    given = 0
    is_over = True

    async def next(self) -> None:
        self.given += 1


class Broker:
    def __init__(self, topics: int = 2) -> None:
        self.turns = Turns()
        image = SimpleNamespace(
            topics_by_name={f"t{number}": None for number in range(topics)},
            configured_resources=lambda: iter(CONFIGURED),
        )
        nodes = {"ONE": [Node(1, "a", 1, None), Node(2, "b", 1, None)], "TWO": [Node(1, "a", 2, None)]}
        self.context: Any = SimpleNamespace(
            runtime=SimpleNamespace(turns=self.turns),
            metadata=SimpleNamespace(image=image, nodes=nodes.get),
        )

    async def ask(self, version: int, *kinds: int, listener: str = "ONE") -> Any:
        call: Any = SimpleNamespace(version=version, connection=SimpleNamespace(listener=listener))
        return await handle(self.context, ListConfigResourcesRequest(resource_types=list(kinds)), call)

    async def names(self, version: int, *kinds: int, listener: str = "ONE") -> list[tuple[int, str]]:
        answer = await self.ask(version, *kinds, listener=listener)
        assert answer.error_code == ErrorCode.NONE
        return [(each.resource_type, each.resource_name) for each in answer.config_resources]


async def test_each_kind_and_all_of_them() -> None:
    topics, brokers, groups = [(2, "t0"), (2, "t1")], [(4, "1"), (4, "2")], [(32, "g"), (32, "h")]
    broker = Broker()
    assert await broker.names(1, ResourceType.TOPIC) == topics
    assert await broker.names(1, ResourceType.BROKER) == brokers
    assert await broker.names(1, ResourceType.BROKER, listener="TWO") == [(4, "1")]
    assert await broker.names(1, ResourceType.GROUP, ResourceType.GROUP) == groups
    assert await broker.names(1, ResourceType.CLIENT_METRICS, ResourceType.BROKER_LOGGER) == []
    assert await broker.names(1) == topics + brokers + groups


async def test_version_0_knows_client_metrics_alone() -> None:
    assert await Broker().names(0) == []


@pytest.mark.parametrize("kinds", [(0,), (1,), (ResourceType.GROUP, 99)])
async def test_a_kind_that_nobody_knows(kinds: tuple[int, ...]) -> None:
    answer = await Broker().ask(1, *kinds)
    assert (answer.error_code, answer.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])


async def test_many_topics_are_listed_in_turns() -> None:
    broker = Broker(3 * LISTED_AT_ONCE)
    assert len(await broker.names(1, ResourceType.TOPIC)) == 3 * LISTED_AT_ONCE
    assert broker.turns.given == 2
