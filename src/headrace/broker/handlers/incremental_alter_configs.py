"""IncrementalAlterConfigs: set, delete, append to or subtract from single values of a resource.

Versions 0-1. 1: flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.cluster.decision_timeouts import each_in_time
from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of, text_of
from headrace.controller.image import ConfigResource
from headrace.controller.operations import AlteredConfig, ConfigChange
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from headrace.protocol.messages.incremental_alter_configs_response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext


async def handle(
    context: RequestContext,
    request: IncrementalAlterConfigsRequest,
    call: Call,  # noqa: ARG001 - every handler has this shape
) -> IncrementalAlterConfigsResponse:
    changes = [
        (
            ConfigResource(resource.resource_type, resource.resource_name),
            [ConfigChange(item.config_operation, item.name, item.value) for item in resource.configs],
        )
        for resource in request.resources
    ]
    outcomes = await each_in_time(
        context.runtime,
        context.peers.reachability,
        context.controller.incremental_alter_configs(changes, validate_only=request.validate_only),
        lambda error: [AlteredConfig(resource, error) for resource, _ in changes],
    )
    return IncrementalAlterConfigsResponse(
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


API: Final = Api(
    ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1, IncrementalAlterConfigsRequest, handle, at_controller=True
)
