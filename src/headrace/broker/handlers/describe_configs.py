"""DescribeConfigs: every property with its value, its source and what lies beneath.

Versions 1-4. 1: synonyms and sources. 3: types and documentation. 4: flexible. Ours: the name
`headrace.health` asks a broker how it is, `headrace.load` what it carries, `headrace.tier` how far it is with
an object store, `headrace.access` what clients did, `headrace.security` how it is protected; Kafka has no
such names, and answers nothing to them. Resources of type 100 are links.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final

from headrace.broker.authorization.access_report import tell_access
from headrace.broker.cluster.configs import describe_resource
from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of, text_of
from headrace.broker.runtime.health_report import Figure
from headrace.broker.security.self_examination import tell_findings
from headrace.broker.storage.load_report import tell_load
from headrace.broker.storage.tier_report import tell_tier
from headrace.config.describe import ConfigEntry
from headrace.config.health import HEALTH
from headrace.config.load_report import LOAD
from headrace.config.security_report import ACCESS, SECURITY
from headrace.config.tier_report import TIER
from headrace.config.values import ConfigType
from headrace.controller.image import ConfigResource, ResourceType
from headrace.core.errors import HeadraceError, UnknownTopicOrPartition
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


_REPORTS: Final[Mapping[str, Callable[[RequestContext], Awaitable[list[Figure]]]]] = {
    HEALTH: lambda context: context.runtime.health.tell(),
    ACCESS: tell_access,
    SECURITY: tell_findings,
    LOAD: tell_load,
    TIER: tell_tier,
}
"""What a broker tells of itself to whoever asks for the name."""


def handle(
    context: RequestContext,
    request: DescribeConfigsRequest,
    call: Call,  # noqa: ARG001 - every handler has this shape
) -> DescribeConfigsResponse | Awaitable[DescribeConfigsResponse]:
    if any(_reports_wanted(context, resource) for resource in request.resources):
        return _with_reports(context, request)
    return _answer(context, request)


def _answer(context: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        results=[_describe(context, resource, request) for resource in request.resources]
    )


def _reports_wanted(context: RequestContext, resource: DescribeConfigsResource) -> list[str]:
    if resource.resource_type != ResourceType.BROKER:
        return []
    if resource.resource_name != str(context.runtime.broker_id):
        return []
    return [name for name in _REPORTS if name in (resource.configuration_keys or ())]


async def _with_reports(context: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Figures, beside the settings that were asked for. There may be thousands: they are made in slices."""
    answer, turns = _answer(context, request), context.runtime.turns
    for resource, result in zip(request.resources, answer.results, strict=True):
        for name in _reports_wanted(context, resource):
            for figure in await _REPORTS[name](context):
                if turns.is_over:
                    await turns.next()
                result.configs.append(_figure(figure, request))
    return answer


def _figure(figure: Figure, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=figure.name,
        value=figure.value,
        read_only=True,
        config_type=ConfigType.STRING,
        documentation=figure.means if request.include_documentation else None,
    )


def _describe(
    context: RequestContext, resource: DescribeConfigsResource, request: DescribeConfigsRequest
) -> DescribeConfigsResult:
    keys = resource.configuration_keys
    result = DescribeConfigsResult(
        error_message=None, resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    try:
        if resource.resource_type == ResourceType.LINK:
            result.configs = _link(context, resource.resource_name)
            return result
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


def _link(context: RequestContext, topic: str) -> list[DescribeConfigsResourceResult]:
    """A link of ours: what the metadata says, and how far this broker is with what it leads."""
    values = context.metadata.image.configs(ConfigResource(ResourceType.LINK, topic))
    if not values:
        raise UnknownTopicOrPartition(f"topic {topic!r} has no link")
    told = {**values, **context.linking.status(topic)}
    return [
        DescribeConfigsResourceResult(name=name, value=value, config_type=ConfigType.STRING)
        for name, value in sorted(told.items())
    ]


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
