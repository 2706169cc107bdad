"""What concerns the cluster as a whole: where logs lie, who leads, which replicas move, which brokers belong,
which features it has.

The denied are told at the top of the answer, and in each entry where there is a place.
"""

from __future__ import annotations

from typing import Final

from headrace.broker.authorization.plain_guards import on_cluster
from headrace.broker.authorization.refusals import CLUSTER_DENIED, TEXTS
from headrace.broker.requests.api import Call
from headrace.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
)
from headrace.protocol.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from headrace.protocol.messages.alter_replica_log_dirs_request import AlterReplicaLogDirsRequest
from headrace.protocol.messages.alter_replica_log_dirs_response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from headrace.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from headrace.protocol.messages.describe_log_dirs_response import DescribeLogDirsResponse
from headrace.protocol.messages.elect_leaders_request import ElectLeadersRequest
from headrace.protocol.messages.elect_leaders_response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from headrace.protocol.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from headrace.protocol.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from headrace.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from headrace.protocol.messages.unregister_broker_response import UnregisterBrokerResponse
from headrace.protocol.messages.update_features_request import UpdateFeaturesRequest
from headrace.protocol.messages.update_features_response import UpdateFeaturesResponse
from headrace.security.acl import Operation

_TEXT: Final = TEXTS[CLUSTER_DENIED]
_FIRST_WITH_LOG_DIRS_ERROR: Final = 3
_FIRST_WITH_ELECTION_ERROR: Final = 1


def _tells_no_directories(_request: DescribeLogDirsRequest, call: Call) -> DescribeLogDirsResponse:
    """Before version 3 an empty list is all that can be said."""
    if call.version < _FIRST_WITH_LOG_DIRS_ERROR:
        return DescribeLogDirsResponse()
    return DescribeLogDirsResponse(error_code=CLUSTER_DENIED)


def _assigns_no_directories(request: AlterReplicaLogDirsRequest, _call: Call) -> AlterReplicaLogDirsResponse:
    """There is no place at the top."""
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=CLUSTER_DENIED)
                    for index in topic.partitions
                ],
            )
            for directory in request.dirs
            for topic in directory.topics
        ]
    )


def _elects_nobody(request: ElectLeadersRequest, call: Call) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        error_code=CLUSTER_DENIED if call.version >= _FIRST_WITH_ELECTION_ERROR else 0,
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    PartitionResult(partition_id=index, error_code=CLUSTER_DENIED, error_message=_TEXT)
                    for index in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )


def _moves_nothing(
    request: AlterPartitionReassignmentsRequest, _call: Call
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        error_code=CLUSTER_DENIED,
        error_message=_TEXT,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(
                        partition_index=each.partition_index, error_code=CLUSTER_DENIED, error_message=_TEXT
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def _tells_no_moves(
    request: ListPartitionReassignmentsRequest, _call: Call
) -> ListPartitionReassignmentsResponse:
    """Names what was asked for, as Kafka does, and no replicas."""
    return ListPartitionReassignmentsResponse(
        error_code=CLUSTER_DENIED,
        error_message=_TEXT,
        topics=[
            OngoingTopicReassignment(
                name=topic.name,
                partitions=[
                    OngoingPartitionReassignment(partition_index=index) for index in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ],
    )


def _forgets_no_broker(_request: UnregisterBrokerRequest, _call: Call) -> UnregisterBrokerResponse:
    return UnregisterBrokerResponse(error_code=CLUSTER_DENIED, error_message=_TEXT)


def _updates_no_features(_request: UpdateFeaturesRequest, _call: Call) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=CLUSTER_DENIED, error_message=_TEXT)


describe_log_dirs: Final = on_cluster(Operation.DESCRIBE, _tells_no_directories)
list_partition_reassignments: Final = on_cluster(Operation.DESCRIBE, _tells_no_moves)
alter_partition_reassignments: Final = on_cluster(Operation.ALTER, _moves_nothing)
elect_leaders: Final = on_cluster(Operation.ALTER, _elects_nobody)
unregister_broker: Final = on_cluster(Operation.ALTER, _forgets_no_broker)
alter_replica_log_dirs: Final = on_cluster(Operation.ALTER, _assigns_no_directories)
update_features: Final = on_cluster(Operation.ALTER, _updates_no_features)
