"""ListPartitionReassignments: which replicas are on the move. Version 0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.requests.api import Api, Call
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from headrace.protocol.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext


def handle(
    context: RequestContext, request: ListPartitionReassignmentsRequest, _call: Call
) -> ListPartitionReassignmentsResponse:
    asked = None
    if request.topics is not None:
        asked = [(topic.name, topic.partition_indexes) for topic in request.topics]
    topics: dict[str, list[OngoingPartitionReassignment]] = {}
    for found in context.metadata.store.machine.list_reassignments(asked):
        topics.setdefault(found.topic, []).append(
            OngoingPartitionReassignment(
                partition_index=found.partition,
                replicas=list(found.replicas),
                adding_replicas=list(found.adding),
                removing_replicas=list(found.removing),
            )
        )
    return ListPartitionReassignmentsResponse(
        error_message=None,
        topics=[OngoingTopicReassignment(name=name, partitions=rows) for name, rows in topics.items()],
    )


API: Final = Api(
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
    0,
    0,
    ListPartitionReassignmentsRequest,
    handle,
    at_controller=True,
)
