"""DeleteRecords: raise the log start of partitions; whole segments below it are removed.

Versions 0-2. 2: flexible. Offset -1 means up to the high watermark. The answer comes when every replica that
is alive has deleted them too, so that no crash brings them back, or says REQUEST_TIMED_OUT: they are gone
here, and will be elsewhere.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of
from headrace.controller.topic_names import INTERNAL_TOPICS
from headrace.core.errors import HeadraceError, InvalidTopic, NotLeader, PolicyViolation
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.delete_records_request import DeleteRecordsPartition, DeleteRecordsRequest
from headrace.protocol.messages.delete_records_response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

LOOK_SECONDS: Final = 0.02


async def handle(context: RequestContext, request: DeleteRecordsRequest, call: Call) -> DeleteRecordsResponse:  # noqa: ARG001 - every handler has this shape
    deadline = context.runtime.loop.time() + request.timeout_ms / 1000
    deletions: list[tuple[str, list[_Deletion]]] = []
    for topic in request.topics:
        deletions.append((topic.name, []))
        for asked in topic.partitions:  # each on its own, so it does not matter what happens in between
            if context.runtime.turns.is_over:
                await context.runtime.turns.next()
            deletions[-1][1].append(_Deletion(context, topic.name, asked))
    # What was answered must hold after a crash: the new log starts go to disk first, here and at the
    # followers, which report them only then.
    await context.storage.maintenance.checkpoint()
    for _, each in deletions:
        for deletion in each:
            if context.runtime.turns.is_over:
                await context.runtime.turns.next()
            while not deletion.is_done() and context.runtime.loop.time() < deadline:
                await asyncio.sleep(LOOK_SECONDS)
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(name=name, partitions=[deletion.result() for deletion in each])
            for name, each in deletions
        ]
    )


class _Deletion:
    """One partition's: done here at once, and then waited for at its replicas."""

    def __init__(self, context: RequestContext, topic: str, asked: DeleteRecordsPartition) -> None:
        self._context = context
        self._index = asked.partition_index
        self._error: HeadraceError | None = None
        self._target = -1
        try:
            self._partition = context.partitions.get(topic, self._index)
            if topic in INTERNAL_TOPICS:
                raise InvalidTopic(f"records of {topic} are kept by coordinators")
            self._require_leader()
            if self._partition.log.is_sealed:
                raise PolicyViolation(f"{topic} is a copy of another cluster's: delete its records there")
            if "delete" not in self._partition.log.config.cleanup_policy:
                raise PolicyViolation("records of a topic that is only compacted cannot be deleted by offset")
            self._target = self._partition.delete_records_before(asked.offset)
        except HeadraceError as error:
            self._error = error

    def _require_leader(self) -> None:
        if not self._partition.is_leader:
            raise NotLeader(f"this broker does not lead {self._partition.topic_partition}")

    def is_done(self) -> bool:
        if self._error is None and not self._partition.is_leader:
            self._error = NotLeader(f"{self._partition.topic_partition} has another leader meanwhile")
        return self._error is not None or self._low_watermark() >= self._target

    def _low_watermark(self) -> int:
        return self._partition.low_watermark(self._context.metadata.is_alive)

    def result(self) -> DeleteRecordsPartitionResult:
        if self._error is not None:
            return DeleteRecordsPartitionResult(
                partition_index=self._index, low_watermark=-1, error_code=code_of(self._error)
            )
        code = ErrorCode.NONE if self.is_done() else ErrorCode.REQUEST_TIMED_OUT
        return DeleteRecordsPartitionResult(
            partition_index=self._index, low_watermark=self._low_watermark(), error_code=code
        )


API: Final = Api(ApiKey.DELETE_RECORDS, 0, 2, DeleteRecordsRequest, handle)
