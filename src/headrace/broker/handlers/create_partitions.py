"""CreatePartitions: more partitions for a topic.

Versions 0-3. 2: flexible. Every topic that was asked for has a result of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.api import Api, Call
from headrace.broker.cluster.in_time import each_in_time
from headrace.broker.errors import code_of, text_of
from headrace.controller.operations import MorePartitions, PartitionsCreated
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.create_partitions_request import CreatePartitionsRequest
from headrace.protocol.messages.create_partitions_response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from headrace.broker.broker import Broker


async def handle(broker: Broker, request: CreatePartitionsRequest, call: Call) -> CreatePartitionsResponse:  # noqa: ARG001 - every handler has this shape
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
        broker,
        broker.controller.create_partitions(wanted, validate_only=request.validate_only),
        lambda error: [PartitionsCreated(topic.name, error) for topic in wanted],
    )
    if broker.is_standalone:
        await broker.hosting.caught_up()
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(
                name=outcome.name, error_code=code_of(outcome.error), error_message=text_of(outcome.error)
            )
            for outcome in outcomes
        ]
    )


API: Final = Api(ApiKey.CREATE_PARTITIONS, 0, 3, CreatePartitionsRequest, handle, at_controller=True)
