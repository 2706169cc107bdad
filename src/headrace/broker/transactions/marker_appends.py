"""Markers are appended to the partitions that this broker leads, for coordinators here and elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.broker.coordinators.coordinator import Coordinator
from headrace.broker.coordinators.markers import end_batch
from headrace.broker.replicas.partitions import PartitionTable
from headrace.broker.storage.flusher import Flusher
from headrace.core.completion import Completion
from headrace.core.errors import (
    CoordinatorLoading,
    CoordinatorNotAvailable,
    HeadraceError,
    NotCoordinator,
    NotLeader,
    PolicyViolation,
)
from headrace.core.ports import Clock
from headrace.protocol.batch import read_header
from headrace.protocol.messages.write_txn_markers_request import WritableTxnMarker
from headrace.replication.partition import ACKS_ALL, Partition


class MarkerAppends:
    def __init__(
        self,
        clock: Clock,
        partitions: PartitionTable,
        flusher: Flusher,
        coordinators: Mapping[str, Coordinator[Any]],
    ) -> None:
        """`coordinators` by their topics."""
        self._clock = clock
        self._partitions = partitions
        self._flusher = flusher
        self._coordinators = coordinators

    def append(self, topic: str, index: int, marker: WritableTxnMarker) -> Completion[None]:
        """End a producer's transaction in one partition. Decided when that is committed.

        To the one who sends markers, a partition of groups is a partition like any other: its coordinator's
        refusals become those of a leader.
        """
        try:
            partition = self._partitions.get(topic, index)
            if not partition.is_leader:
                raise NotLeader(f"this broker does not lead {partition.topic_partition}")
            if partition.log.is_sealed:
                raise PolicyViolation(f"{partition.topic_partition} is a copy of another cluster's")
            partition.log.producers.check_marker(
                marker.producer_id,
                marker.producer_epoch,
                marker.coordinator_epoch,
                marker.transaction_version,
            )
            return self._append(partition, marker).then(lambda _: None, _refused)
        except HeadraceError as error:
            refused: Completion[None] = Completion()
            refused.fail(error)
            return refused

    def _append(self, partition: Partition, marker: WritableTxnMarker) -> Completion[None]:
        """If a shard is on the partition, the shard is told as well, in order with what it has decided."""
        now_ms = self._clock.wall_ms()
        producer, committed = (marker.producer_id, marker.producer_epoch), marker.transaction_result
        batch = end_batch(
            producer, coordinator_epoch=marker.coordinator_epoch, committed=committed, now_ms=now_ms
        )
        coordinator = self._coordinators.get(partition.topic_partition.topic)
        hosted = None if coordinator is None else coordinator.hosted(partition)
        if hosted is not None:
            return hosted.append_marker(batch, producer, committed=committed)
        waiter = _MarkerWaiter()
        try:
            result = partition.append(
                batch, read_header(batch), acks=ACKS_ALL, now_ms=now_ms, from_client=False
            )
        except HeadraceError as error:
            waiter.completion.fail(error)
        else:
            if partition.must_sync_before_ack:
                self._flusher.flush(partition.log)
            partition.await_commit(result.last_offset + 1, waiter)
        return waiter.completion


class _MarkerWaiter:
    """Implements replication.waiting.CommitWaiter."""

    __slots__ = ("completion",)

    def __init__(self) -> None:
        self.completion: Completion[None] = Completion()

    def on_decided(self, _token: int, error: HeadraceError | None) -> None:
        if error is None:
            self.completion.complete(None)
        else:
            self.completion.fail(error)


def _refused(error: Exception) -> None:
    if isinstance(error, (CoordinatorLoading, CoordinatorNotAvailable, NotCoordinator)):
        raise NotLeader(str(error))
    raise error
