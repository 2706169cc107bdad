"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs: a right on the resource that is configured.
ListConfigResources: the right to describe the configs of the cluster, which shows all names.

Brokers, their loggers, client metrics and links belong to the cluster. A resource of a type that nobody knows
goes to the handler, which refuses it. What a broker tells of accesses and of its protection needs DESCRIBE on
the cluster besides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from headrace.broker.authorization.division import divide
from headrace.broker.authorization.guard import Decided, Guard, Partly, Verdict
from headrace.broker.authorization.plain_guards import on_cluster
from headrace.broker.authorization.refusals import CLUSTER_DENIED, GROUP_DENIED, TEXTS, TOPIC_DENIED
from headrace.broker.requests.api import Call
from headrace.broker.requests.context import RequestContext
from headrace.config.security_report import NEED_DESCRIBE
from headrace.controller.image import ResourceType as ConfigOf
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.message import Message, Structure
from headrace.protocol.messages import (
    alter_configs_response,
    describe_configs_response,
    incremental_alter_configs_response,
)
from headrace.protocol.messages.list_config_resources_request import ListConfigResourcesRequest
from headrace.protocol.messages.list_config_resources_response import ListConfigResourcesResponse
from headrace.security.acl import CLUSTER_NAME, Operation, ResourceType
from headrace.security.rights import Rights

_RESOURCES: Final[dict[int, tuple[ResourceType, ErrorCode]]] = {
    ConfigOf.TOPIC: (ResourceType.TOPIC, TOPIC_DENIED),
    ConfigOf.GROUP: (ResourceType.GROUP, GROUP_DENIED),
    ConfigOf.BROKER: (ResourceType.CLUSTER, CLUSTER_DENIED),
    ConfigOf.BROKER_LOGGER: (ResourceType.CLUSTER, CLUSTER_DENIED),
    ConfigOf.CLIENT_METRICS: (ResourceType.CLUSTER, CLUSTER_DENIED),
    ConfigOf.LINK: (ResourceType.CLUSTER, CLUSTER_DENIED),
}


def _on_each(
    operation: Operation,
    response: type[Message],
    answered: str,
    refuse: Callable[[Any, ErrorCode], Structure],
) -> Guard:
    def guard(context: RequestContext, rights: Rights, request: Any, _call: Call) -> Verdict:
        def is_allowed(resource: Any) -> bool:
            if resource.resource_type not in _RESOURCES:
                return True
            resource_type, _ = _RESOURCES[resource.resource_type]
            name = CLUSTER_NAME if resource_type == ResourceType.CLUSTER else resource.resource_name
            return rights.allows(operation, resource_type, name) and (
                not NEED_DESCRIBE.intersection(getattr(resource, "configuration_keys", None) or ())
                or rights.allows(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
            )

        def when_denied(allowed: list[Any], denied: list[Any]) -> Decided:
            once = {(each.resource_type, each.resource_name): each for each in denied}
            refused = [refuse(each, _RESOURCES[each.resource_type][1]) for each in once.values()]
            if not allowed:
                return response(**{answered: refused})
            request.resources = allowed

            def complete(served: Message) -> Message:
                getattr(served, answered).extend(refused)
                return served

            return Partly(request, complete)

        return divide(context, request.resources, is_allowed, when_denied)

    return guard


def _not_described(resource: Any, code: ErrorCode) -> Structure:
    return describe_configs_response.DescribeConfigsResult(
        error_code=code,
        error_message=TEXTS[code],
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _not_replaced(resource: Any, code: ErrorCode) -> Structure:
    return alter_configs_response.AlterConfigsResourceResponse(
        error_code=code,
        error_message=TEXTS[code],
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _not_altered(resource: Any, code: ErrorCode) -> Structure:
    return incremental_alter_configs_response.AlterConfigsResourceResponse(
        error_code=code,
        error_message=TEXTS[code],
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _lists_nothing(_request: ListConfigResourcesRequest, _call: Call) -> ListConfigResourcesResponse:
    return ListConfigResourcesResponse(error_code=CLUSTER_DENIED)


list_config_resources: Final = on_cluster(Operation.DESCRIBE_CONFIGS, _lists_nothing)
describe_configs: Final = _on_each(
    Operation.DESCRIBE_CONFIGS, describe_configs_response.DescribeConfigsResponse, "results", _not_described
)
alter_configs: Final = _on_each(
    Operation.ALTER_CONFIGS, alter_configs_response.AlterConfigsResponse, "responses", _not_replaced
)
incremental_alter_configs: Final = _on_each(
    Operation.ALTER_CONFIGS,
    incremental_alter_configs_response.IncrementalAlterConfigsResponse,
    "responses",
    _not_altered,
)
