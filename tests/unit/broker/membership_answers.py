"""What a transaction coordinator answers to AddPartitionsToTxn."""

from __future__ import annotations

import asyncio

from headrace.core.ports import Buffer
from headrace.core.ports_network import PeerReset
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.headers import frame_response, read_request_header
from headrace.protocol.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest
from headrace.protocol.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from headrace.protocol.primitives import Reader


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


class Link:
    """To a coordinator on another broker, which answers when the test says."""

    def __init__(self) -> None:
        self.is_open = True
        self.requests: list[AddPartitionsToTxnRequest] = []
        self._waiting: list[asyncio.Future[memoryview]] = []

    async def send(self, frame: Buffer) -> memoryview:
        header, at = read_request_header(memoryview(frame))
        assert header.api_version == 5
        self.requests.append(AddPartitionsToTxnRequest.decode(Reader(memoryview(frame), at), 5))
        future: asyncio.Future[memoryview] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        return await future

    @property
    def is_asked(self) -> bool:
        return bool(self._waiting)

    def answer(
        self, code: ErrorCode = ErrorCode.NONE, response: AddPartitionsToTxnResponse | None = None
    ) -> None:
        response = response or answer_to(self.requests[-1], code, {})
        self._waiting.pop(0).set_result(memoryview(frame_response(response, 5, 0))[4:])

    def break_off(self) -> None:
        self.is_open = False
        self._waiting.pop(0).set_exception(PeerReset("gone"))

    def close(self) -> None:
        self.is_open = False


async def settle() -> None:
    for _ in range(8):
        await asyncio.sleep(0)
