"""What brokers tell of themselves by DescribeConfigs, beside their settings: each is asked for itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headrace.client.cluster import Cluster
from headrace.client.configs import ResourceType
from headrace.client.errors import ApiMissing, ClientFailure
from headrace.client.refusals import refusal
from headrace.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from headrace.protocol.messages.describe_configs_response import DescribeConfigsResponse


class Told(NamedTuple):
    figures: Mapping[str, str] = {}
    """By their names without the report's; empty of a broker that does not know the report."""
    error_code: int = 0
    error_message: str | None = None


async def ask_all(cluster: Cluster, broker_ids: Iterable[int], report: str) -> dict[int, Told | None]:
    """All at once; None of one that does not answer. Raises ClientFailure where it is not allowed."""
    wanted = list(broker_ids)
    answers = await asyncio.gather(*(ask(cluster, each, report, cluster.request_timeout) for each in wanted))
    for broker_id, told in zip(wanted, answers, strict=True):
        if told is not None and told.error_code:
            raise refusal(told.error_code, f"broker {broker_id}", told.error_message)
    return dict(zip(wanted, answers, strict=True))


async def ask(cluster: Cluster, broker_id: int, report: str, timeout: float) -> Told | None:
    """None if the broker does not answer."""
    resource = DescribeConfigsResource(
        resource_type=int(ResourceType.BROKER), resource_name=str(broker_id), configuration_keys=[report]
    )
    request = DescribeConfigsRequest(resources=[resource])
    try:
        async with asyncio.timeout(timeout):
            reply = await cluster.ask_broker(broker_id, request, DescribeConfigsResponse, at_most=4)
    except ApiMissing:
        return Told()
    except (ClientFailure, TimeoutError):
        return None
    result, prefix = reply.results[0], f"{report}."
    figures = {
        entry.name.removeprefix(prefix): entry.value or ""
        for entry in result.configs
        if entry.name.startswith(prefix)
    }
    return Told(figures, result.error_code, result.error_message)
