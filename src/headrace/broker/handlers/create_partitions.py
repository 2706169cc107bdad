"""CreatePartitions: more partitions for a topic.

Versions 0-3. 2: flexible. 3: over a quota a topic is refused. Every topic has a result of its own.
"""

from __future__ import annotations

from functools import partial
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

FIRST_STRICT: Final = 3
"""From here on clients know THROTTLING_QUOTA_EXCEEDED."""


async def handle(
    context: RequestContext,
    request: CreatePartitionsRequest,
    call: Call,
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
    quota = context.mutations.of(call.principal, call.client_id, is_strict=call.version >= FIRST_STRICT)
    refused: list[PartitionsCreated] = []
    if not request.validate_only:
        wanted, refused = quota.divide(
            wanted, partial(_added, context), lambda topic, error: PartitionsCreated(topic.name, error)
        )
    added = {topic.name: _added(context, topic) for topic in wanted}
    outcomes = await each_in_time(
        context.runtime,
        context.peers.reachability,
        context.controller.create_partitions(wanted, validate_only=request.validate_only),
        lambda error: [PartitionsCreated(topic.name, error) for topic in wanted],
    )
    if not request.validate_only:
        quota.give_back(sum(added[outcome.name] for outcome in outcomes if outcome.error is not None))
    outcomes += refused
    if context.runtime.is_standalone:
        await context.storage.hosting.caught_up()
    return CreatePartitionsResponse(
        throttle_time_ms=quota.throttle_ms,
        results=[
            CreatePartitionsTopicResult(
                name=outcome.name, error_code=code_of(outcome.error), error_message=text_of(outcome.error)
            )
            for outcome in outcomes
        ],
    )


def _added(context: RequestContext, topic: MorePartitions) -> int:
    known = context.metadata.image.topic(topic.name)
    return max(0, topic.total - (0 if known is None else len(known)))


API: Final = Api(ApiKey.CREATE_PARTITIONS, 0, 3, CreatePartitionsRequest, handle, at_controller=True)
