"""A decided transaction whose markers are on their way, and the places they have to come to."""

from __future__ import annotations

from headrace.protocol.messages.write_txn_markers_request import WritableTxnMarker
from headrace.transactions.ending import Markers


class PendingMarkers:
    """Ends when no place is left, or when another coordinator goes on with it."""

    __slots__ = ("coordinator_epoch", "is_over", "left", "markers", "partition")

    def __init__(self, partition: int, coordinator_epoch: int, markers: Markers) -> None:
        self.partition = partition
        """Of __transaction_state."""
        self.coordinator_epoch = coordinator_epoch
        """The leader epoch of that partition in which the decision was found committed."""
        self.markers = markers
        self.left: dict[tuple[str, int], MarkerPlace] = {
            (topic, index): MarkerPlace(self, topic, index)
            for topic, indexes in markers.partitions.items()
            for index in indexes
        }
        self.is_over = False

    def marker(self) -> WritableTxnMarker:
        """Without the partitions."""
        markers = self.markers
        return WritableTxnMarker(
            producer_id=markers.producer.producer_id,
            producer_epoch=markers.producer.epoch,
            transaction_result=markers.commit,
            coordinator_epoch=self.coordinator_epoch,
            transaction_version=markers.client_version,
        )


class MarkerPlace:
    """One partition that a marker has to be written to."""

    __slots__ = ("failures", "index", "pending", "topic")

    def __init__(self, pending: PendingMarkers, topic: str, index: int) -> None:
        self.pending = pending
        self.topic = topic
        self.index = index
        self.failures = 0

    @property
    def producer_id(self) -> int:
        return self.pending.markers.producer.producer_id

    @property
    def is_due(self) -> bool:
        return not self.pending.is_over and (self.topic, self.index) in self.pending.left
