"""WriteTxnMarkers: every marker of a request, in every partition that it names."""

from __future__ import annotations

from functools import partial

from headrace.broker.requests.errors import code_of
from headrace.broker.runtime.runtime import Runtime
from headrace.broker.transactions.marker_appends import MarkerAppends
from headrace.core.completion import Completion
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.write_txn_markers_request import WritableTxnMarker, WriteTxnMarkersRequest
from headrace.protocol.messages.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)

PATIENCE_SECONDS = 5.0  # not final: tests are less patient


class MarkerWrites:
    """One request: every marker in every partition. It is answered when all of them are decided, or when
    replicas keep one waiting for too long: that one, and no other, is sent again."""

    def __init__(self, runtime: Runtime, markers: MarkerAppends, request: WriteTxnMarkersRequest) -> None:
        self._markers = markers
        self._answer = WriteTxnMarkersResponse()
        self.response: Completion[WriteTxnMarkersResponse] = Completion()
        self._left = 1  # this constructor, so that nothing is answered before all are begun
        for marker in request.markers:
            self._begin(marker)
        self._patience = runtime.timers.after(PATIENCE_SECONDS, "the writing of markers", self._finish)
        self._one_less()

    def _begin(self, marker: WritableTxnMarker) -> None:
        result = WritableTxnMarkerResult(producer_id=marker.producer_id)
        self._answer.markers.append(result)
        for topic in marker.topics:
            rows = []
            for index in topic.partition_indexes:
                row = WritableTxnMarkerPartitionResult(
                    partition_index=index, error_code=ErrorCode.REQUEST_TIMED_OUT
                )
                rows.append(row)
                self._left += 1
                self._markers.append(topic.name, index, marker).when_done(partial(self._on_decided, row))
            result.topics.append(WritableTxnMarkerTopicResult(name=topic.name, partitions=rows))

    def _on_decided(self, row: WritableTxnMarkerPartitionResult, decided: Completion[None]) -> None:
        row.error_code = code_of(decided.error)
        self._one_less()

    def _one_less(self) -> None:
        self._left -= 1
        if not self._left:
            self._patience.cancel()
            self._finish()

    def _finish(self) -> None:
        self.response.complete(self._answer)
