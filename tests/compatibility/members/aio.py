"""Members by aiokafka, each on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import KafkaError

from tests.compatibility.clients.client import NO_CODE, ClientFailure
from tests.compatibility.members.member import HEARTBEAT_MS, Committed, Member, Membership, Read

T = TypeVar("T")


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # the library has no types here
    def __init__(self, revoked: list[set[int]]) -> None:
        self._revoked = revoked

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        if revoked:
            self._revoked.append({one.partition for one in revoked})

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        pass


class AioKafkaMember(Member):
    def __init__(self, bootstrap: str, wanted: Membership) -> None:
        super().__init__()
        self.topic = wanted.topic
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._consumer = self._run(self._join(bootstrap, wanted))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result(40)
        except KafkaError as error:
            code = getattr(error, "errno", None)
            raise ClientFailure(NO_CODE if code is None else code, repr(error)) from error

    def _call(self, function: Callable[..., object], *arguments: object) -> None:
        """Plain functions of the library too must run on its loop."""

        async def call() -> None:
            function(*arguments)

        self._run(call())

    async def _join(self, bootstrap: str, wanted: Membership) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=wanted.group,
            group_instance_id=wanted.instance,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=100,
            session_timeout_ms=wanted.session_ms,
            heartbeat_interval_ms=HEARTBEAT_MS,
            isolation_level="read_committed" if wanted.committed_only else "read_uncommitted",
            partition_assignment_strategy=(RangePartitionAssignor,),
        )
        consumer.subscribe([wanted.topic], listener=_Listener(self.revoked))
        await consumer.start()
        return consumer

    def _at(self, partition: int) -> TopicPartition:
        return TopicPartition(self.topic, partition)

    def poll(self, seconds: float) -> list[Read]:
        fetched = self._run(self._consumer.getmany(timeout_ms=int(seconds * 1000)))
        return [Read(one.partition, one.offset, one.value) for part in fetched.values() for one in part]

    def assignment(self) -> set[int]:
        return {one.partition for one in self._consumer.assignment()}

    def commit(self, offsets: Mapping[int, int], metadata: str) -> None:
        self._run(self._consumer.commit({self._at(at): (one, metadata) for at, one in offsets.items()}))

    def committed(self, partitions: Collection[int]) -> dict[int, Committed]:
        found = {at: self._run(self._consumer.committed(self._at(at))) for at in partitions}
        return {at: Committed(offset, "") for at, offset in found.items() if offset is not None}

    def seek(self, partition: int, offset: int) -> None:
        self._call(self._consumer.seek, self._at(partition), offset)

    def pause(self, partition: int) -> None:
        self._call(self._consumer.pause, self._at(partition))

    def resume(self, partition: int) -> None:
        self._call(self._consumer.resume, self._at(partition))

    def close(self) -> None:
        try:
            self._run(self._consumer.stop())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
