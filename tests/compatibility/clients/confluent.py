"""confluent-kafka: librdkafka 2.x from Python."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, ClassVar

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    ElectionType,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.compatibility.clients.access import Access
from tests.compatibility.clients.client import Client, ClientFailure, Consumed, NewRecord

_WAIT = 15.0
_for_timestamp: Any = OffsetSpec.for_timestamp  # which the library has left without types


def _failure(error: KafkaError) -> ClientFailure:
    return ClientFailure(error.code(), error.str())


def _outcome(future: Any) -> Any:
    try:
        return future.result(_WAIT)
    except KafkaException as error:
        raise _failure(error.args[0]) from error


class ConfluentClient(Client):
    name: ClassVar[str] = "confluent-kafka"
    operations: ClassVar[frozenset[str]] = frozenset(
        {
            "create",
            "delete",
            "describe",
            "add_partitions",
            "describe_configs",
            "alter_config",
            "delete_records",
            "list_offsets",
            "describe_cluster",
            "elect_leaders",
        }
    )

    def __init__(self, bootstrap: str, access: Access | None = None) -> None:
        self._connection: dict[str, Any] = {"bootstrap.servers": bootstrap}
        if access is not None:
            self._connection |= access.for_librdkafka()
        self._admin = AdminClient(dict(self._connection))

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
        producer = Producer(
            {
                **self._connection,
                "compression.type": compression,
                "acks": acks,
                "enable.idempotence": idempotent,
                "linger.ms": 20,
                "message.max.bytes": 64 << 20,
                "message.timeout.ms": 20_000,
            }
        )
        delivered: list[Message] = []
        failed: list[KafkaError] = []

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failed.append(error)
            else:
                delivered.append(message)

        for record in records:
            extra: dict[str, Any] = {} if record.timestamp is None else {"timestamp": record.timestamp}
            producer.produce(
                topic,
                value=record.value,
                key=record.key,
                partition=partition,
                headers=list(record.headers),
                on_delivery=on_delivery,
                **extra,
            )
        left = producer.flush(30)
        assert left == 0, f"{left} records without an answer"
        if failed:
            raise _failure(failed[0])
        return [offset for message in delivered if (offset := message.offset()) is not None]

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
        consumer = Consumer(
            {
                **self._connection,
                # librdkafka demands a group's name even where no group is joined.
                "group.id": "unused",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 100,
            }
        )
        try:
            offset = {"start": OFFSET_BEGINNING, "end": OFFSET_END}.get(at, value)
            if at == "timestamp":
                asked = [TopicPartition(topic, partition, value)]
                offset = consumer.offsets_for_times(asked, timeout=_WAIT)[0].offset
            consumer.assign([TopicPartition(topic, partition, offset)])
            deadline = time.monotonic() + timeout_ms / 1000
            found: list[Consumed] = []
            while len(found) < count and time.monotonic() < deadline:
                message = consumer.poll(0.1)
                if message is None:
                    continue
                failure = message.error()
                if failure is not None:
                    raise _failure(failure)
                found.append(_consumed(message))
            return found
        except KafkaException as error:
            raise _failure(error.args[0]) from error
        finally:
            consumer.close()

    def create(self, topic: str, partitions: int, configs: dict[str, str]) -> None:
        _outcome(self._admin.create_topics([NewTopic(topic, partitions, 1, config=configs)])[topic])

    def delete(self, topic: str) -> None:
        _outcome(self._admin.delete_topics([topic])[topic])

    def describe(self, topic: str) -> dict[str, Any]:
        found = _outcome(self._admin.describe_topics(TopicCollection([topic]))[topic])
        return {
            "partitions": [
                {
                    "partition": one.id,
                    "leader": one.leader.id,
                    "replicas": [node.id for node in one.replicas],
                    "isr": [node.id for node in one.isr],
                }
                for one in found.partitions
            ]
        }

    def add_partitions(self, topic: str, count: int) -> None:
        _outcome(self._admin.create_partitions([NewPartitions(topic, count)])[topic])

    def describe_configs(self, topic: str) -> dict[str, Any]:
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        entries = _outcome(self._admin.describe_configs([resource])[resource])
        return {
            "configs": {
                name: {"value": entry.value, "source": ConfigSource(entry.source).name}
                for name, entry in entries.items()
            }
        }

    def alter_config(self, topic: str, name: str, value: str, how: str) -> None:
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType[how.upper()])
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        _outcome(self._admin.incremental_alter_configs([resource])[resource])

    def delete_records(self, topic: str, partition: int, offset: int) -> dict[str, Any]:
        asked = TopicPartition(topic, partition, offset)
        return {"low_watermark": _outcome(self._admin.delete_records([asked])[asked]).low_watermark}

    def list_offsets(self, topic: str, partition: int, at: str) -> dict[str, Any]:
        named: dict[str, Any] = {
            "earliest": OffsetSpec.earliest,
            "latest": OffsetSpec.latest,
            "max_timestamp": OffsetSpec.max_timestamp,
        }
        spec = named[at]() if at in named else _for_timestamp(int(at))
        asked = TopicPartition(topic, partition)
        found = _outcome(self._admin.list_offsets({asked: spec})[asked])
        return {"offset": found.offset, "timestamp": found.timestamp}

    def describe_cluster(self) -> dict[str, Any]:
        found = _outcome(self._admin.describe_cluster())
        return {
            "cluster_id": found.cluster_id,
            "controller": found.controller.id,
            "nodes": [node.id for node in found.nodes],
        }

    def elect_leaders(self, topic: str, partition: int) -> None:
        asked = TopicPartition(topic, partition)
        error = _outcome(self._admin.elect_leaders(ElectionType.PREFERRED, [asked]))[asked]
        if error is not None:
            raise _failure(error.args[0] if isinstance(error, KafkaException) else error)


def _consumed(message: Message) -> Consumed:
    offset, stamp = message.offset(), message.timestamp()
    assert offset is not None
    headers: Any = message.headers() or ()
    return Consumed(offset, stamp[1], message.key(), message.value(), tuple(headers))
