"""AlterConfigs: replace all dynamic values of a resource.

Versions 0-2. 2: flexible. Clients prefer IncrementalAlterConfigs, which does not forget the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.cluster.decision_timeouts import each_in_time
from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of, text_of
from headrace.controller.image import ConfigResource
from headrace.controller.operations import AlteredConfig
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.alter_configs_request import AlterConfigsRequest
from headrace.protocol.messages.alter_configs_response import (
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext


async def handle(context: RequestContext, request: AlterConfigsRequest, call: Call) -> AlterConfigsResponse:  # noqa: ARG001 - every handler has this shape
    changes = [
        (
            ConfigResource(resource.resource_type, resource.resource_name),
            [(config.name, config.value) for config in resource.configs],
        )
        for resource in request.resources
    ]
    outcomes = await each_in_time(
        context.runtime,
        context.peers.reachability,
        context.controller.alter_configs(changes, validate_only=request.validate_only),
        lambda error: [AlteredConfig(resource, error) for resource, _ in changes],
    )
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=code_of(outcome.error),
                error_message=text_of(outcome.error),
                resource_type=outcome.resource.type,
                resource_name=outcome.resource.name,
            )
            for outcome in outcomes
        ]
    )


API: Final = Api(ApiKey.ALTER_CONFIGS, 0, 2, AlterConfigsRequest, handle, at_controller=True)
