"""A produce request whose answer waits: for the replicas (acks=all), for the disk (flush.messages), for both.

The records are written already. What is not committed when the request's time is over is answered with
REQUEST_TIMED_OUT: it may still be kept, and an idempotent producer finds out by sending it again.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from headrace.broker.requests.errors import code_of, text_of
from headrace.core.errors import HeadraceError, RequestTimedOut
from headrace.core.timers import Timed
from headrace.network.response import DelayedResponse
from headrace.protocol.produce_codec import (
    PartitionResult,
    Topic,
    encode_acknowledgement,
    encode_produce_response,
)

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext
    from headrace.log.partition_log import AppendResult
    from headrace.replication.partition import Partition

ACKS_ALL: Final = -1

Results = list[tuple[Topic, list[PartitionResult]]]


class DelayedProduce(Timed):
    """Invariant: `_missing` holds exactly the partitions that are neither acknowledged nor refused."""

    __slots__ = (
        "_context",
        "_correlation_id",
        "_failed",
        "_missing",
        "_next",
        "_results",
        "_version",
        "pending",
    )

    def __init__(self, context: RequestContext, version: int, correlation_id: int, results: Results) -> None:
        super().__init__()
        self._context = context
        self._version = version
        self._correlation_id = correlation_id
        self._results = results
        """The answer as it will be if everything goes well."""
        self._missing: dict[int, tuple[list[PartitionResult], int]] = {}
        """By token: which answer says so, the list and its place there."""
        self._next = 0
        self._failed = False
        self.pending: DelayedResponse | None = None

    @property
    def is_waiting(self) -> bool:
        return bool(self._missing)

    def hold(
        self,
        partition: Partition,
        result: AppendResult,
        answers: list[PartitionResult],
        place: int,
        acks: int,
    ) -> None:
        """Wait for one partition. With acks=all its high watermark says when, which the disk holds back
        where it has to; otherwise the disk alone does."""
        token = self._next
        self._next += 1
        self._missing[token] = (answers, place)
        if partition.must_sync_before_ack:
            then = partial(self._on_synced, token, acks == ACKS_ALL)
            self._context.storage.flusher.flush(partition.log, then)
            if acks != ACKS_ALL:
                return
        partition.await_commit(result[1] + 1, self, token)

    def begin(self, timeout_ms: int) -> DelayedResponse:
        """From now on the answer goes out as soon as nothing is missing."""
        is_full = self._context.produces.purgatory.is_full
        if is_full:
            self._context.runtime.memory.held.refusals += 1
        self.pending = DelayedResponse(exclusive=is_full)
        if self._missing:
            self._context.produces.purgatory.schedule(self, max(timeout_ms, 1) / 1000)
        else:
            self._answer()
        return self.pending

    def _on_synced(self, token: int, is_replicated: bool, error: HeadraceError | None) -> None:
        if error is not None or not is_replicated:
            self.on_decided(token, error)

    def on_decided(self, token: int, error: HeadraceError | None) -> None:
        missing = self._missing.pop(token, None)
        if missing is None:
            return  # decided already: by the clock, or by the disk
        if error is not None:
            self._refuse(missing, error)
        if not self._missing and self.pending is not None:
            self._context.produces.purgatory.cancel(self)
            self._answer()

    def on_time(self) -> None:
        missing, self._missing = self._missing, {}
        for each in missing.values():
            self._refuse(each, RequestTimedOut("the replicas did not have it in time"))
        self._answer()

    def timer_name(self) -> str:
        return "a produce request whose time was over"

    def _refuse(self, missing: tuple[list[PartitionResult], int], error: HeadraceError) -> None:
        answers, place = missing
        self._failed = True
        code = code_of(error)
        answers[place] = PartitionResult(answers[place].partition, code, error_message=text_of(error))
        self._context.runtime.metrics.request("Produce", self._version).error(code.name)

    def _answer(self) -> None:
        assert self.pending is not None
        results = self._results
        if not self._failed and len(results) == 1 and len(results[0][1]) == 1:
            topic, answers = results[0]
            index, _, base_offset, append_time, log_start = answers[0][:5]
            frame = encode_acknowledgement(
                self._version, self._correlation_id, topic, index, base_offset, append_time, log_start
            )
        else:
            frame = encode_produce_response(self._version, self._correlation_id, results)
        self.pending.complete([frame])
