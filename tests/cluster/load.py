"""A steady load of acks=all writes beside a test, and the judgement of what became of them."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Mapping
from itertools import pairwise
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

#: A client that hears soon of new leaders. Retries are the library's own, as every application has them.
PRODUCER: dict[str, str | int | float | bool] = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 1,
    "message.timeout.ms": 60_000,
    "topic.metadata.refresh.interval.ms": 500,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "socket.timeout.ms": 5000,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 100,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "log_level": 0,
}
READER: dict[str, str | int | float | bool] = {
    "group.id": "unused",
    "enable.auto.commit": False,
    "auto.offset.reset": "error",
    "log_level": 0,
}


class Load:
    """Sends numbers in a thread of its own until it is stopped, to each partition in turn."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        partitions: int = 1,
        *,
        rate: int = 300,
        padding: int = 92,
        settings: Mapping[str, str | int | float | bool] | None = None,
    ) -> None:
        self.topic = topic
        self.partitions = partitions
        self.sent = 0
        self.failures: list[str] = []
        self.acknowledged: dict[int, float] = {}
        """Which number was acknowledged when."""
        self.highest = -1
        self._bootstrap = bootstrap
        self._rate = rate
        self._padding = b"x" * padding
        self._producer = _producer(bootstrap, settings or {})
        self._next: Producer | None = None
        self._has_moved = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)

    def _told(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(str(error))
        else:
            number = number_of(message)
            self.acknowledged[number] = time.monotonic()
            self.highest = max(self.highest, number)

    def _run(self) -> None:
        began = time.monotonic()
        while not self._stop.is_set():
            self._take_next()
            due = int((time.monotonic() - began) * self._rate)
            while self.sent < due:
                value = struct.pack(">q", self.sent) + self._padding
                try:
                    self._producer.produce(
                        self.topic, value, partition=self.sent % self.partitions, on_delivery=self._told
                    )
                except BufferError:
                    break
                self.sent += 1
            self._producer.poll(0.005)

    def move(self, bootstrap: str, access: Mapping[str, str | int | float | bool]) -> None:
        """Go on with another client, as an application that is restarted: what the old one has sent is
        acknowledged first, so that the order stays. Returns when a write of the new one is."""
        self._bootstrap = bootstrap
        self._has_moved.clear()
        self._next = _producer(bootstrap, access)
        assert self._has_moved.wait(60), "the old client does not come to its end"
        self.wait_flowing()

    def _take_next(self) -> None:
        if self._next is not None and self._producer.flush(30) == 0:
            self._producer, self._next = self._next, None
            self._has_moved.set()

    def wait_flowing(self, seconds: float = 30) -> None:
        """Until a write that was sent after this call has been acknowledged."""
        behind = self.sent
        deadline = time.monotonic() + seconds
        while self.highest < behind:
            assert time.monotonic() < deadline, f"nothing acknowledged for {seconds:g} s"
            time.sleep(0.02)

    def stop(self, seconds: float = 60) -> None:
        self._stop.set()
        self._thread.join(seconds)
        self._producer.flush(seconds)

    def longest_gap(self, since: float = 0.0) -> float:
        """The longest time without an acknowledgement."""
        times = sorted(moment for moment in self.acknowledged.values() if moment >= since)
        return max((after - before for before, after in pairwise(times)), default=0.0)

    def judge(self, reader: Mapping[str, str | int | float | bool] | None = None) -> list[int]:
        """Every write was acknowledged and is there, once, in the order of its partition. `reader` says how
        to connect, where not everybody may read."""
        assert not self.failures, self.failures[:3]
        assert len(self.acknowledged) == self.sent, "every write is answered"
        found: list[int] = []
        for partition in range(self.partitions):
            numbers = read_numbers(self._bootstrap, self.topic, partition, settings=reader)
            assert numbers == list(range(partition, self.sent, self.partitions))
            found += numbers
        return found

    def __enter__(self) -> Self:
        self._thread.start()
        self.wait_flowing()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop(60 if error is None else 1)


def _producer(bootstrap: str, settings: Mapping[str, str | int | float | bool]) -> Producer:
    return Producer({**PRODUCER, **settings, "bootstrap.servers": bootstrap, "error_cb": lambda _: None})


def number_of(message: Message) -> int:
    value = message.value()
    assert isinstance(value, bytes)
    return int(struct.unpack_from(">q", value)[0])


def read_numbers(
    bootstrap: str,
    topic: str,
    partition: int = 0,
    seconds: float = 60,
    settings: Mapping[str, str | int | float | bool] | None = None,
) -> list[int]:
    """Everything up to the end that the leader tells."""
    return [number_of(message) for message in read(bootstrap, topic, partition, seconds, settings)]


def read(
    bootstrap: str,
    topic: str,
    partition: int = 0,
    seconds: float = 60,
    settings: Mapping[str, str | int | float | bool] | None = None,
) -> list[Message]:
    consumer = Consumer({**READER, **(settings or {}), "bootstrap.servers": bootstrap})
    try:
        deadline = time.monotonic() + seconds
        where = TopicPartition(topic, partition)
        start, end = ends_of(consumer, where, deadline)
        consumer.assign([TopicPartition(topic, partition, start)])
        found: list[Message] = []
        position = start
        while position < end:
            assert time.monotonic() < deadline, f"{topic}-{partition} read to {position} of {end} only"
            for message in consumer.consume(5000, 0.2):
                if message.error() is None:
                    found.append(message)
                    position = (message.offset() or 0) + 1
        return found
    finally:
        consumer.close()


def ends_of(consumer: Consumer, where: TopicPartition, deadline: float) -> tuple[int, int]:
    """Leaders may be on their way back to where they were: the library does not ask a second time."""
    while True:
        try:
            start, end = consumer.get_watermark_offsets(where, timeout=max(deadline - time.monotonic(), 1))
        except KafkaException as error:
            if error.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return start, end


def write(bootstrap: str, topic: str, count: int, *, partition: int = 0, size: int = 1000) -> None:
    """Records that can be read back as numbers; returns when all are acknowledged."""
    failures: list[str] = []
    producer = Producer({**PRODUCER, "bootstrap.servers": bootstrap})
    for number in range(count):
        producer.produce(
            topic,
            struct.pack(">q", number) + b"x" * (size - 8),
            partition=partition,
            on_delivery=lambda error, _: failures.append(str(error)) if error else None,
        )
        producer.poll(0)
    assert producer.flush(60) == 0
    assert not failures, failures[:3]
