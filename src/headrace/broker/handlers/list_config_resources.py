"""ListConfigResources: the names of what can have a configuration.

Versions 0-1. 0 was ListClientMetricsResources, and tells of these alone. 1: types to choose from, and none
of them asks for all (KIP-1142). Topics and brokers are listed because they exist, groups because something
was set for them. There are no client metrics here, and no loggers whose level could be set: of both the
list is empty.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.slices import slices
from headrace.controller.image import ResourceType
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.list_config_resources_request import ListConfigResourcesRequest
from headrace.protocol.messages.list_config_resources_response import (
    ConfigResource,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

LISTED_AT_ONCE: Final = 500
_CHOICE: Final = (
    frozenset((ResourceType.CLIENT_METRICS,)),
    frozenset(ResourceType) - {ResourceType.UNKNOWN},
)
"""By version. Links are ours: they are listed only if they are asked for."""


async def handle(
    context: RequestContext, request: ListConfigResourcesRequest, call: Call
) -> ListConfigResourcesResponse:
    choice = _CHOICE[call.version]
    wanted = set(request.resource_types) or choice - {ResourceType.LINK}
    if not wanted <= choice:
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    response = ListConfigResourcesResponse()
    for resource_type in sorted(wanted):
        names = list(_names(context, resource_type, call))
        async for some in slices(context.runtime.turns, names, LISTED_AT_ONCE):
            response.config_resources += [
                ConfigResource(resource_name=name, resource_type=resource_type) for name in some
            ]
    return response


def _names(context: RequestContext, resource_type: int, call: Call) -> Iterable[str]:
    image = context.metadata.image
    if resource_type == ResourceType.TOPIC:
        return image.topics_by_name
    if resource_type == ResourceType.BROKER:
        return (str(node.broker_id) for node in context.metadata.nodes(call.connection.listener))
    if resource_type in (ResourceType.GROUP, ResourceType.LINK):
        return (resource.name for resource in image.configured_resources() if resource.type == resource_type)
    return ()


API: Final = Api(ApiKey.LIST_CONFIG_RESOURCES, 0, 1, ListConfigResourcesRequest, handle)
