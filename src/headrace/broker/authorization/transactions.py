"""What producers ask a transaction coordinator for, and what coordinators ask leaders for."""

from __future__ import annotations

from typing import Final

from headrace.broker.authorization.division import divide
from headrace.broker.authorization.guard import ALLOWED, Decided, Verdict
from headrace.broker.authorization.plain_guards import on_transactional_id
from headrace.broker.authorization.refusals import (
    CLUSTER_DENIED,
    GROUP_DENIED,
    TOPIC_DENIED,
    TRANSACTIONAL_ID_DENIED,
)
from headrace.broker.requests.api import Call
from headrace.broker.requests.context import RequestContext
from headrace.broker.transactions.adding_partitions import BETWEEN_BROKERS
from headrace.controller.topic_names import INTERNAL_TOPICS
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages import write_txn_markers_response as markers
from headrace.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from headrace.protocol.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from headrace.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from headrace.protocol.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from headrace.protocol.messages.end_txn_response import EndTxnResponse
from headrace.protocol.messages.init_producer_id_request import InitProducerIdRequest
from headrace.protocol.messages.init_producer_id_response import InitProducerIdResponse
from headrace.protocol.messages.write_txn_markers_request import WriteTxnMarkersRequest
from headrace.security.acl import CLUSTER_NAME, Operation, ResourceType
from headrace.security.rights import Rights

_ON_CLUSTER: Final = (ResourceType.CLUSTER, CLUSTER_NAME)


def init_producer_id(
    _context: RequestContext, rights: Rights, request: InitProducerIdRequest, _call: Call
) -> Verdict:
    """Without a transactional id: for whoever may write to some topic, as it is needed for that."""
    code = None
    name = request.transactional_id
    if name is None:
        if not rights.allows_any(
            (Operation.IDEMPOTENT_WRITE, *_ON_CLUSTER), (Operation.WRITE, ResourceType.TOPIC, None)
        ):
            code = CLUSTER_DENIED
    elif not rights.allows(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name) or (
        request.enable2_pc
        and not rights.allows(Operation.TWO_PHASE_COMMIT, ResourceType.TRANSACTIONAL_ID, name)
    ):
        code = TRANSACTIONAL_ID_DENIED
    return ALLOWED if code is None else InitProducerIdResponse(error_code=code, producer_epoch=-1)


def add_partitions_to_txn(
    context: RequestContext, rights: Rights, request: AddPartitionsToTxnRequest, call: Call
) -> Verdict:
    """Partitions are added together or not at all: one that is denied keeps the others out. Nobody adds
    internal topics, which coordinators alone write to."""
    if call.version >= BETWEEN_BROKERS:
        if rights.allows(Operation.CLUSTER_ACTION, *_ON_CLUSTER):
            return ALLOWED
        return AddPartitionsToTxnResponse(error_code=CLUSTER_DENIED)
    topics = request.v3_and_below_topics
    if not rights.allows(
        Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.v3_and_below_transactional_id
    ):
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[_result(topic, TRANSACTIONAL_ID_DENIED) for topic in topics]
        )

    def is_allowed(topic: AddPartitionsToTxnTopic) -> bool:
        return topic.name not in INTERNAL_TOPICS and rights.allows(
            Operation.WRITE, ResourceType.TOPIC, topic.name
        )

    def when_denied(allowed: list[AddPartitionsToTxnTopic], denied: list[AddPartitionsToTxnTopic]) -> Decided:
        rows = [_kept_out(context, topic) for topic in allowed]
        rows += [_result(topic, TOPIC_DENIED) for topic in denied]
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=rows)

    return divide(context, topics, is_allowed, when_denied)


def _result(topic: AddPartitionsToTxnTopic, code: ErrorCode) -> AddPartitionsToTxnTopicResult:
    return AddPartitionsToTxnTopicResult(
        name=topic.name,
        results_by_partition=[
            AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
            for index in topic.partitions
        ],
    )


def _kept_out(context: RequestContext, topic: AddPartitionsToTxnTopic) -> AddPartitionsToTxnTopicResult:
    row = _result(topic, ErrorCode.OPERATION_NOT_ATTEMPTED)
    for result in row.results_by_partition:
        if not context.metadata.exists(topic.name, result.partition_index):
            result.partition_error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return row


def add_offsets_to_txn(
    _context: RequestContext, rights: Rights, request: AddOffsetsToTxnRequest, _call: Call
) -> Verdict:
    if not rights.allows(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        return AddOffsetsToTxnResponse(error_code=TRANSACTIONAL_ID_DENIED)
    if not rights.allows(Operation.READ, ResourceType.GROUP, request.group_id):
        return AddOffsetsToTxnResponse(error_code=GROUP_DENIED)
    return ALLOWED


end_txn: Final = on_transactional_id(
    Operation.WRITE, lambda _request, _call: EndTxnResponse(error_code=TRANSACTIONAL_ID_DENIED)
)


def write_txn_markers(
    _context: RequestContext, rights: Rights, request: WriteTxnMarkersRequest, _call: Call
) -> Verdict:
    """Sent by coordinators, and by an administrator who aborts what no coordinator knows."""
    if rights.allows_any((Operation.ALTER, *_ON_CLUSTER), (Operation.CLUSTER_ACTION, *_ON_CLUSTER)):
        return ALLOWED
    return markers.WriteTxnMarkersResponse(
        markers=[
            markers.WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    markers.WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            markers.WritableTxnMarkerPartitionResult(
                                partition_index=index, error_code=CLUSTER_DENIED
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )
