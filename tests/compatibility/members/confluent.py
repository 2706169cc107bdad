"""Members by confluent-kafka, with librdkafka's classic protocol and its newer one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.compatibility.clients.client import ClientFailure
from tests.compatibility.members.member import HEARTBEAT_MS, Committed, Member, Membership, Read

_WAIT = 10.0
#: What ends a consumer. librdkafka hides the code behind one of its own, and tells the text.
_FATAL_CODES = (82, 110, 111)


def _failure(error: KafkaError) -> ClientFailure:
    code = error.code()
    if code == KafkaError._FATAL:
        code = next((one for one in _FATAL_CODES if KafkaError(one).str() in error.str()), code)
    return ClientFailure(code, error.str())


class ConfluentMember(Member):
    def __init__(self, bootstrap: str, wanted: Membership) -> None:
        super().__init__()
        self.topic = wanted.topic
        config: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "group.id": wanted.group,
            "group.protocol": wanted.protocol,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 100,
            "topic.metadata.refresh.fast.interval.ms": 50,
            "isolation.level": "read_committed" if wanted.committed_only else "read_uncommitted",
        }
        if wanted.instance is not None:
            config["group.instance.id"] = wanted.instance
        if wanted.protocol == "classic":
            config["session.timeout.ms"] = wanted.session_ms
            config["heartbeat.interval.ms"] = HEARTBEAT_MS
            config["partition.assignment.strategy"] = "cooperative-sticky" if wanted.cooperative else "range"
        self.consumer = Consumer(config)
        self.consumer.subscribe([wanted.topic], on_revoke=self._on_revoke, on_lost=self._on_revoke)

    def _on_revoke(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.revoked.append({one.partition for one in partitions})

    def poll(self, seconds: float) -> list[Read]:
        found: list[Read] = []
        message = self.consumer.poll(seconds)
        while message is not None:
            error = message.error()
            if error is not None:
                raise _failure(error)
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            found.append(Read(partition, offset, message.value() or b""))
            message = self.consumer.poll(0)
        return found

    def assignment(self) -> set[int]:
        return {one.partition for one in self.consumer.assignment()}

    def commit(self, offsets: Mapping[int, int], metadata: str) -> None:
        wanted = [TopicPartition(self.topic, at, offset, metadata) for at, offset in offsets.items()]
        try:
            self.consumer.commit(offsets=wanted, asynchronous=False)
        except KafkaException as error:
            raise ClientFailure(error.args[0].code(), error.args[0].str()) from error

    def committed(self, partitions: Collection[int]) -> dict[int, Committed]:
        asked = [TopicPartition(self.topic, at) for at in partitions]
        found = self.consumer.committed(asked, timeout=_WAIT)
        return {one.partition: Committed(one.offset, one.metadata or "") for one in found if one.offset >= 0}

    def seek(self, partition: int, offset: int) -> None:
        self.consumer.seek(TopicPartition(self.topic, partition, offset))

    def pause(self, partition: int) -> None:
        self.consumer.pause([TopicPartition(self.topic, partition)])

    def resume(self, partition: int) -> None:
        self.consumer.resume([TopicPartition(self.topic, partition)])

    def close(self) -> None:
        self.consumer.close()
