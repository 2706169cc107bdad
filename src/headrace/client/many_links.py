"""What is known of many links, in few requests. The controller is asked, which knows first."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from headrace.client.cluster import Cluster
from headrace.client.configs import ResourceType
from headrace.client.errors import ApiMissing
from headrace.client.refusals import refusal
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from headrace.protocol.messages.describe_configs_response import DescribeConfigsResponse
from headrace.protocol.messages.list_config_resources_request import ListConfigResourcesRequest
from headrace.protocol.messages.list_config_resources_response import ListConfigResourcesResponse

_FIRST_WITH_TYPES: Final = 1
_DESCRIBED_AT_ONCE: Final = 50
_DESCRIBE_AT_MOST: Final = 4


async def linked_topics(cluster: Cluster) -> list[str] | None:
    """The names of all links. None: these brokers have no such thing, because they are Apache Kafka's."""

    async def ask() -> list[str] | None:
        connection = await cluster.controller()
        try:
            if connection.version_for(ListConfigResourcesRequest) < _FIRST_WITH_TYPES:
                return None
        except ApiMissing:
            return None
        request = ListConfigResourcesRequest(resource_types=[int(ResourceType.LINK)])
        reply = await connection.request(
            request, ListConfigResourcesResponse, timeout=cluster.request_timeout
        )
        if reply.error_code == ErrorCode.UNSUPPORTED_VERSION:
            return None
        if reply.error_code:
            raise refusal(reply.error_code, "the list of links")
        return sorted(each.resource_name for each in reply.config_resources)

    return await cluster.retried(ask)


async def link_values(cluster: Cluster, names: Sequence[str]) -> dict[str, dict[str, str]]:
    """What is set of each. One that has gone meanwhile is left out."""
    found: dict[str, dict[str, str]] = {}

    async def ask(some: Sequence[str]) -> None:
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=int(ResourceType.LINK), resource_name=name, configuration_keys=None
                )
                for name in some
            ]
        )
        reply = await cluster.ask_controller(request, DescribeConfigsResponse, at_most=_DESCRIBE_AT_MOST)
        for result in reply.results:
            if not result.error_code:
                found[result.resource_name] = {
                    each.name: each.value for each in result.configs if each.value is not None
                }
            elif result.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise refusal(result.error_code, f"the link of {result.resource_name}", result.error_message)

    for at in range(0, len(names), _DESCRIBED_AT_ONCE):
        await cluster.retried(partial(ask, names[at : at + _DESCRIBED_AT_ONCE]))
    return found
