"""DescribeConfigs: every property with its value, its source and what lies beneath.

Versions 1-4. 1: synonyms and sources. 3: types and documentation. 4: flexible. Ours: the name
`headrace.health` asks a broker how it is; Kafka has no such name, and answers nothing to it.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from headrace.broker.cluster.configs import describe_resource
from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of, text_of
from headrace.config.describe import ConfigEntry
from headrace.config.health import HEALTH
from headrace.config.values import ConfigType
from headrace.controller.image import ResourceType
from headrace.core.errors import HeadraceError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from headrace.protocol.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext


def handle(
    context: RequestContext,
    request: DescribeConfigsRequest,
    call: Call,  # noqa: ARG001 - every handler has this shape
) -> DescribeConfigsResponse | Awaitable[DescribeConfigsResponse]:
    if any(_asks_for_health(context, resource) for resource in request.resources):
        return _with_health(context, request)
    return _answer(context, request)


def _answer(context: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        results=[_describe(context, resource, request) for resource in request.resources]
    )


def _asks_for_health(context: RequestContext, resource: DescribeConfigsResource) -> bool:
    return (
        HEALTH in (resource.configuration_keys or ())
        and resource.resource_type == ResourceType.BROKER
        and resource.resource_name == str(context.runtime.broker_id)
    )


async def _with_health(context: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """The figures of `broker/runtime/health_report.py`, beside the settings that were asked for."""
    figures = [
        DescribeConfigsResourceResult(
            name=figure.name,
            value=figure.value,
            read_only=True,
            config_type=ConfigType.STRING,
            documentation=figure.means if request.include_documentation else None,
        )
        for figure in await context.runtime.health.tell()
    ]
    answer = _answer(context, request)
    for resource, result in zip(request.resources, answer.results, strict=True):
        if _asks_for_health(context, resource):
            result.configs += figures
    return answer


def _describe(
    context: RequestContext, resource: DescribeConfigsResource, request: DescribeConfigsRequest
) -> DescribeConfigsResult:
    keys = resource.configuration_keys
    result = DescribeConfigsResult(
        error_message=None, resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    try:
        # Null and an empty list both ask for everything, as Kafka has it.
        entries = describe_resource(
            context.runtime,
            context.metadata,
            resource.resource_type,
            resource.resource_name,
            set(keys) if keys else None,
        )
    except HeadraceError as error:
        result.error_code, result.error_message = code_of(error), text_of(error)
        return result
    result.configs = [_entry(entry, request) for entry in entries]
    return result


def _entry(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in (entry.synonyms if request.include_synonyms else ())
        ],
        config_type=entry.type,
        documentation=entry.documentation if request.include_documentation else None,
    )


API: Final = Api(ApiKey.DESCRIBE_CONFIGS, 1, 4, DescribeConfigsRequest, handle)
