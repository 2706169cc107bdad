"""AssignReplicasToDirs: a broker says which log directory holds which replica. Between brokers only.

Version 0 (KIP-858).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of
from headrace.controller.operations import AssignedReplica
from headrace.core.errors import HeadraceError
from headrace.core.ids import BrokerEpoch, BrokerId
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
from headrace.protocol.messages.assign_replicas_to_dirs_response import (
    AssignReplicasToDirsResponse,
    DirectoryData,
    PartitionData,
    TopicData,
)

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext


async def handle(
    context: RequestContext, request: AssignReplicasToDirsRequest, _call: Call
) -> AssignReplicasToDirsResponse:
    sender, epoch = BrokerId(request.broker_id), BrokerEpoch(request.broker_epoch)
    choices = {
        directory.id: [
            (topic.topic_id, asked.partition_index)
            for topic in directory.topics
            for asked in topic.partitions
        ]
        for directory in request.directories
    }
    try:
        outcomes = await context.controller.submit(
            lambda machine: machine.assign_directories(sender, epoch, choices)
        )
    except HeadraceError as error:
        return AssignReplicasToDirsResponse(error_code=code_of(error))
    return AssignReplicasToDirsResponse(directories=_by_directory(outcomes))


def _by_directory(outcomes: list[AssignedReplica]) -> list[DirectoryData]:
    found: dict[UUID, dict[UUID, list[PartitionData]]] = {}
    for outcome in outcomes:
        code = 0 if outcome.error is None else code_of(outcome.error)
        rows = found.setdefault(outcome.directory, {}).setdefault(outcome.topic_id, [])
        rows.append(PartitionData(partition_index=outcome.partition, error_code=code))
    return [
        DirectoryData(
            id=directory,
            topics=[TopicData(topic_id=topic, partitions=rows) for topic, rows in topics.items()],
        )
        for directory, topics in found.items()
    ]


API: Final = Api(ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, 0, AssignReplicasToDirsRequest, handle, internal=True)
