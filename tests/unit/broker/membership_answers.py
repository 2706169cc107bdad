"""What a transaction coordinator answers to AddPartitionsToTxn."""

from __future__ import annotations

from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest
from headrace.protocol.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)


def answer_to(
    request: AddPartitionsToTxnRequest, code: ErrorCode, other: dict[str, ErrorCode]
) -> AddPartitionsToTxnResponse:
    """`code` for every partition, or that of `other`, by "p" and its number."""
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(
                transactional_id=each.transactional_id,
                topic_results=[
                    AddPartitionsToTxnTopicResult(
                        name=topic.name,
                        results_by_partition=[
                            AddPartitionsToTxnPartitionResult(
                                partition_index=index, partition_error_code=other.get(f"p{index}", code)
                            )
                            for index in topic.partitions
                        ],
                    )
                    for topic in each.topics
                ],
            )
            for each in request.transactions
        ]
    )
