"""CreatePartitions: more partitions for a topic.

Versions 0-3. 2: flexible. Every topic that was asked for has a result of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.cluster.decision_timeouts import each_in_time
from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of, text_of
from headrace.controller.operations import MorePartitions, PartitionsCreated
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.create_partitions_request import CreatePartitionsRequest
from headrace.protocol.messages.create_partitions_response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext


async def handle(
    context: RequestContext,
    request: CreatePartitionsRequest,
    call: Call,  # noqa: ARG001 - every handler has this shape
) -> CreatePartitionsResponse:
    wanted = [
        MorePartitions(
            name=topic.name,
            total=topic.count,
            assignments=None
            if topic.assignments is None
            else [assignment.broker_ids for assignment in topic.assignments],
        )
        for topic in request.topics
    ]
    outcomes = await each_in_time(
        context.runtime,
        context.peers.reachability,
        context.controller.create_partitions(wanted, validate_only=request.validate_only),
        lambda error: [PartitionsCreated(topic.name, error) for topic in wanted],
    )
    if context.runtime.is_standalone:
        await context.storage.hosting.caught_up()
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(
                name=outcome.name, error_code=code_of(outcome.error), error_message=text_of(outcome.error)
            )
            for outcome in outcomes
        ]
    )


API: Final = Api(ApiKey.CREATE_PARTITIONS, 0, 3, CreatePartitionsRequest, handle, at_controller=True)
