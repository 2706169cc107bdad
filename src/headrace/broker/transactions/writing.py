"""Markers are written to the partitions that this broker leads, for coordinators here and elsewhere."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headrace.broker.errors import code_of
from headrace.core.completion import Completion
from headrace.core.errors import (
    CoordinatorLoading,
    CoordinatorNotAvailable,
    HeadraceError,
    NotCoordinator,
    NotLeader,
)
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.write_txn_markers_request import WritableTxnMarker, WriteTxnMarkersRequest
from headrace.protocol.messages.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from headrace.broker.broker import Broker


PATIENCE_SECONDS = 5.0  # not final: tests are less patient


class MarkerWrites:
    """One request: every marker in every partition. It is answered when all of them are decided, or when
    replicas keep one waiting for too long: that one, and no other, is sent again."""

    def __init__(self, broker: Broker, request: WriteTxnMarkersRequest) -> None:
        self._broker = broker
        self._answer = WriteTxnMarkersResponse()
        self.response: Completion[WriteTxnMarkersResponse] = Completion()
        self._left = 1  # this constructor, so that nothing is answered before all are begun
        for marker in request.markers:
            self._begin(marker)
        self._patience = broker.timers.after(PATIENCE_SECONDS, "the writing of markers", self._finish)
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
                append_marker(self._broker, topic.name, index, marker).when_done(
                    partial(self._on_decided, row)
                )
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


def append_marker(broker: Broker, topic: str, index: int, marker: WritableTxnMarker) -> Completion[None]:
    """End a producer's transaction in one partition. Decided when that is committed.

    To the one who sends markers, a partition of groups is a partition like any other: its coordinator's
    refusals become those of a leader.
    """
    try:
        partition = broker.partitions.get(topic, index)
        if not partition.is_leader:
            raise NotLeader(f"this broker does not lead {partition.topic_partition}")
        partition.log.producers.check_marker(
            marker.producer_id, marker.producer_epoch, marker.coordinator_epoch, marker.transaction_version
        )
        return broker.coordinators.append_marker(
            partition,
            (marker.producer_id, marker.producer_epoch),
            coordinator_epoch=marker.coordinator_epoch,
            committed=marker.transaction_result,
        ).then(lambda _: None, _refused)
    except HeadraceError as error:
        refused: Completion[None] = Completion()
        refused.fail(error)
        return refused


def _refused(error: Exception) -> None:
    if isinstance(error, (CoordinatorLoading, CoordinatorNotAvailable, NotCoordinator)):
        raise NotLeader(str(error))
    raise error
