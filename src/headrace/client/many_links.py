"""What is known of many links, in few requests. The controller is asked, which knows first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headrace.client.cluster import Cluster
from headrace.client.configs import ResourceType
from headrace.client.errors import ApiMissing
from headrace.client.many_settings import set_values
from headrace.client.refusals import refusal
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.list_config_resources_request import ListConfigResourcesRequest
from headrace.protocol.messages.list_config_resources_response import ListConfigResourcesResponse

_FIRST_WITH_TYPES: Final = 1


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
    return await set_values(cluster, ResourceType.LINK, names, lambda each: each.value is not None)
