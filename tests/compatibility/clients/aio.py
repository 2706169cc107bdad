"""aiokafka, run on an event loop of its own for each call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from typing import Any, ClassVar, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from tests.compatibility.clients.access import Access
from tests.compatibility.clients.client import NO_CODE, Client, ClientFailure, Consumed, NewRecord

T = TypeVar("T")
_SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
}


def _run(work: Coroutine[Any, Any, T]) -> T:
    try:
        return asyncio.run(asyncio.wait_for(work, 40))
    except KafkaError as error:
        code = getattr(error, "errno", None)
        raise ClientFailure(NO_CODE if code is None else code, repr(error)) from error


def _demand_success(code: int, message: str | None) -> None:
    if code:
        raise ClientFailure(code, message or "")


class AioKafkaClient(Client):
    name: ClassVar[str] = "aiokafka"
    operations: ClassVar[frozenset[str]] = frozenset(
        {"create", "delete", "describe", "add_partitions", "describe_configs", "delete_records"}
    )

    lacks: ClassVar[frozenset[str]] = frozenset({"null key and value", "code of invalid record"})

    def __init__(self, bootstrap: str, access: Access | None = None) -> None:
        self._connection: dict[str, Any] = {"bootstrap_servers": bootstrap}
        if access is not None:
            self._connection |= access.for_aiokafka()

    def produce(
        self,
        topic: str,
        records: Sequence[NewRecord],
        *,
        partition: int = 0,
        compression: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        return _run(self._produce(topic, records, partition, compression, acks, idempotent))

    async def _produce(
        self,
        topic: str,
        records: Sequence[NewRecord],
        partition: int,
        compression: str,
        acks: str,
        idempotent: bool,
    ) -> list[int]:
        producer = AIOKafkaProducer(
            **self._connection,
            compression_type=None if compression == "none" else compression,
            acks="all" if acks == "all" else int(acks),
            enable_idempotence=idempotent,
            linger_ms=20,
            max_request_size=64 << 20,
            request_timeout_ms=10_000,
        )
        async with producer:
            sent = [
                await producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=partition,
                    timestamp_ms=record.timestamp,
                )
                for record in records
            ]
            await producer.flush()
            answers = [await one for one in sent]
        return [answer.offset for answer in answers if answer is not None]

    def consume(
        self,
        topic: str,
        count: int,
        *,
        partition: int = 0,
        at: str = "start",
        value: int = 0,
        timeout_ms: int = 10_000,
    ) -> list[Consumed]:
        return _run(self._consume(TopicPartition(topic, partition), count, at, value, timeout_ms))

    async def _consume(
        self, assigned: TopicPartition, count: int, at: str, value: int, timeout_ms: int
    ) -> list[Consumed]:
        consumer = AIOKafkaConsumer(
            **self._connection,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            fetch_max_wait_ms=100,
        )
        async with consumer:
            consumer.assign([assigned])
            if at == "start":
                await consumer.seek_to_beginning(assigned)
            elif at == "end":
                await consumer.seek_to_end(assigned)
            elif at == "offset":
                consumer.seek(assigned, value)
            else:
                found = (await consumer.offsets_for_times({assigned: value}))[assigned]
                if found is None:
                    await consumer.seek_to_end(assigned)
                else:
                    consumer.seek(assigned, found.offset)
            result: list[Consumed] = []
            deadline = time.monotonic() + timeout_ms / 1000
            while len(result) < count and time.monotonic() < deadline:
                fetched = await consumer.getmany(assigned, timeout_ms=100, max_records=count - len(result))
                for one in fetched.get(assigned, []):
                    result.append(Consumed(one.offset, one.timestamp, one.key, one.value, tuple(one.headers)))
            return result

    def operate(self, operation: str, **arguments: Any) -> dict[str, Any]:
        async def ask() -> dict[str, Any]:
            admin = AIOKafkaAdminClient(**self._connection)
            await admin.start()
            try:
                found: dict[str, Any] | None = await getattr(self, f"_{operation}")(admin, **arguments)
                return found or {}
            finally:
                await admin.close()

        return _run(ask())

    async def _create(
        self, admin: AIOKafkaAdminClient, topic: str, partitions: int, configs: dict[str, str]
    ) -> None:
        answer = await admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=configs)])
        for _, code, message in answer.topic_errors:
            _demand_success(code, message)

    async def _delete(self, admin: AIOKafkaAdminClient, topic: str) -> None:
        answer = await admin.delete_topics([topic])
        for one in answer.topic_error_codes:
            _demand_success(one[1], None)

    async def _describe(self, admin: AIOKafkaAdminClient, topic: str) -> dict[str, Any]:
        (found,) = await admin.describe_topics([topic])
        _demand_success(found["error_code"], None)
        return {
            "partitions": [
                {
                    "partition": one["partition"],
                    "leader": one["leader"],
                    "replicas": list(one["replicas"]),
                    "isr": list(one["isr"]),
                }
                for one in sorted(found["partitions"], key=lambda one: one["partition"])
            ]
        }

    async def _add_partitions(self, admin: AIOKafkaAdminClient, topic: str, count: int) -> None:
        await admin.create_partitions({topic: NewPartitions(count)})

    async def _describe_configs(self, admin: AIOKafkaAdminClient, topic: str) -> dict[str, Any]:
        (answer,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
        code, message, _, _, entries = answer.resources[0]
        _demand_success(code, message)
        return {
            "configs": {name: {"value": value, "source": _SOURCES[rest[1]]} for name, value, *rest in entries}
        }

    async def _delete_records(
        self, admin: AIOKafkaAdminClient, topic: str, partition: int, offset: int
    ) -> dict[str, Any]:
        asked = TopicPartition(topic, partition)
        return {"low_watermark": (await admin.delete_records({asked: RecordsToDelete(offset)}))[asked]}
