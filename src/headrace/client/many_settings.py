"""What is set of many topics or links, in few requests.

The controller is asked, which knows first: who has just changed a setting shall read what was set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from headrace.client.cluster import Cluster
from headrace.client.configs import Resource, ResourceType
from headrace.client.refusals import refusal
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from headrace.protocol.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)

_AT_ONCE: Final = 50
"""A broker answers each request in one turn of its loop, and has every setting of every topic to tell."""
_AT_MOST: Final = 4
"""The highest version asked for."""


async def set_values(
    cluster: Cluster,
    kind: ResourceType,
    names: Sequence[str],
    is_set: Callable[[DescribeConfigsResourceResult], bool],
) -> dict[str, dict[str, str]]:
    """By name, what `is_set` takes for set. One that has gone meanwhile is left out."""
    found: dict[str, dict[str, str]] = {}

    async def ask(some: Sequence[str]) -> None:
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(resource_type=int(kind), resource_name=name, configuration_keys=None)
                for name in some
            ]
        )
        reply = await cluster.ask_controller(request, DescribeConfigsResponse, at_most=_AT_MOST)
        for result in reply.results:
            if not result.error_code:
                found[result.resource_name] = {
                    each.name: each.value or "" for each in result.configs if is_set(each)
                }
            elif result.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                words = Resource(kind, result.resource_name).words
                raise refusal(result.error_code, words, result.error_message)

    for at in range(0, len(names), _AT_ONCE):
        await cluster.retried(partial(ask, names[at : at + _AT_ONCE]))
    return found
