"""Members by kafka-python."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from typing import Any

with warnings.catch_warnings():
    # The library reads its schemas by a function that Python has deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.errors import KafkaError

from tests.compatibility.clients.client import NO_CODE, ClientFailure
from tests.compatibility.members.member import HEARTBEAT_MS, Committed, Member, Membership, Read


def know_the_partitions(consumer: Any) -> None:
    """Before it joins.

    A member that joins first joins again when it learns them, and this library (3.0.12) drops the answer of
    that second join if it arrives between two polls: the member then stays without partitions and heartbeats,
    whatever the broker does. One in twenty did on a busy machine, none of 900 that knew their partitions.
    """
    consumer.topics()


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # the library has no types
    def __init__(self, revoked: list[set[int]]) -> None:
        self._revoked = revoked

    def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
        if revoked:
            self._revoked.append({one.partition for one in revoked})

    def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
        pass

    def on_partitions_lost(self, lost: Collection[Any]) -> None:
        self.on_partitions_revoked(lost)


class KafkaPythonMember(Member):
    def __init__(self, bootstrap: str, wanted: Membership) -> None:
        super().__init__()
        self.topic = wanted.topic
        self.consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=wanted.group,
            group_instance_id=wanted.instance,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=100,
            session_timeout_ms=wanted.session_ms,
            heartbeat_interval_ms=HEARTBEAT_MS,
            isolation_level="read_committed" if wanted.committed_only else "read_uncommitted",
            partition_assignment_strategy=(
                CooperativeStickyAssignor if wanted.cooperative else RangePartitionAssignor,
            ),
        )
        self.consumer.subscribe([wanted.topic], listener=_Listener(self.revoked))
        know_the_partitions(self.consumer)

    def _at(self, partition: int) -> Any:
        return TopicPartition(self.topic, partition)

    def poll(self, seconds: float) -> list[Read]:
        try:
            fetched = self.consumer.poll(timeout_ms=int(seconds * 1000))
        except KafkaError as error:
            raise _failure(error) from error
        return [Read(one.partition, one.offset, one.value) for part in fetched.values() for one in part]

    def assignment(self) -> set[int]:
        return {one.partition for one in self.consumer.assignment()}

    def commit(self, offsets: Mapping[int, int], metadata: str) -> None:
        try:
            self.consumer.commit(
                {self._at(at): OffsetAndMetadata(offset, metadata, -1) for at, offset in offsets.items()}
            )
        except KafkaError as error:
            raise _failure(error) from error

    def committed(self, partitions: Collection[int]) -> dict[int, Committed]:
        found = {at: self.consumer.committed(self._at(at), metadata=True) for at in partitions}
        return {at: Committed(one.offset, one.metadata) for at, one in found.items() if one is not None}

    def seek(self, partition: int, offset: int) -> None:
        self.consumer.seek(self._at(partition), offset)

    def pause(self, partition: int) -> None:
        self.consumer.pause(self._at(partition))

    def resume(self, partition: int) -> None:
        self.consumer.resume(self._at(partition))

    def close(self) -> None:
        self.consumer.close()


def _failure(error: KafkaError) -> ClientFailure:
    code = getattr(error, "errno", None)
    return ClientFailure(NO_CODE if code is None else code, repr(error))
