"""Producers and consumers on librdkafka that record everything they do and are told.

A producer that fails for good, or has lived long enough, is replaced by another one: what was in flight is
unknown. Nothing is sent twice above the library, so values are unique.
"""

from __future__ import annotations

import random
import threading
import time
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.chaos.recorder import Recorder
from tests.checker.history import Assign, Poll, Send

TOPIC: Final = "chaos"
#: Records of one producer that may wait for their acknowledgement.
IN_FLIGHT: Final = 500
#: How long a record is tried: longer than any client lives. When librdkafka gives up a record by itself it
#: takes a new epoch, and sends again under it what is still in its queue. That stores records twice, also on
#: Apache Kafka. What is in flight when a client ends is never sent again: it is unknown, and not twice.
TRIED_SECONDS: Final = 600
FLUSHED_SECONDS: Final = 30
#: A broker refuses records from its future. When its own clock is wrong, that is no loss, but dull.
ANY_TIMESTAMP: Final = {"message.timestamp.after.max.ms": str(2**53)}
QUICK: Final[dict[str, str | int | float | bool]] = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 500,
    "socket.connection.setup.timeout.ms": 2000,
    # A host that has gone silent is given up after this. By default it would be a minute.
    "socket.timeout.ms": 5000,
    "topic.metadata.refresh.interval.ms": 5000,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "log_level": 0,
}

#: For what only prepares a test: each record once, however often it takes.
TRIED_AGAIN: Final = {"enable.idempotence": "true", "retries": "100"}


#: No batch may be larger than a segment (`run.py`). After such a refusal librdkafka takes a new epoch, and
#: writes again what was not answered in other partitions (its report 4953).
SMALL_BATCHES: Final = {"batch.size": 16384}


def key(partition: int) -> str:
    return f"{TOPIC}-{partition}"


def encode(value: str, padding: int) -> bytes:
    return f"{value} ".encode() + b"x" * padding


def decode(data: bytes | None) -> str:
    return (data or b"").split(b" ", 1)[0].decode()


class Client:
    """One thread, from `start` to `stop`."""

    life_seconds: tuple[float, float] = (15, 45)
    """How long each of its clients is used. What is in flight at the end of one is given up."""

    def __init__(self, name: str, bootstrap: str, partitions: int, recorder: Recorder, seed: str) -> None:
        self.name = name
        self.bootstrap = bootstrap
        self.partitions = partitions
        self.recorder = recorder
        self.random = random.Random(seed)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._guarded, name=name)
        self._failure: BaseException | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()

    def join(self) -> None:
        self._thread.join(180)
        assert not self._thread.is_alive(), f"{self.name} does not end"
        if self._failure is not None:
            raise RuntimeError(f"{self.name} failed") from self._failure

    def _guarded(self) -> None:
        try:
            while not self._ended.is_set():
                self.live(time.monotonic() + self.random.uniform(*self.life_seconds))
        except BaseException as error:
            self._failure = error

    @abstractmethod
    def live(self, until: float) -> None:
        """One client of the library, from its making to its end."""


class LibrdkafkaProducer(Client):
    def __init__(self, *arguments: object, rate: float = 100.0) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]  # passed through
        self._pause = 1 / rate
        self._number = 0
        self._lives = 0
        self._broken = False

    def live(self, until: float) -> None:
        self._lives += 1
        self._broken = False
        producer = Producer(
            {
                **QUICK,
                **SMALL_BATCHES,
                "bootstrap.servers": self.bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": self.random.choice((0, 5, 20)),
                "compression.type": self.random.choice(("none", "lz4")),
                "message.timeout.ms": TRIED_SECONDS * 1000,
                "request.timeout.ms": 5000,
                "retry.backoff.ms": 50,
                "error_cb": self._told_error,
            }
        )
        while time.monotonic() < until and not self._ended.is_set() and not self._broken:
            if len(producer) < IN_FLIGHT:
                self._send(producer)
            try:
                producer.poll(self._pause)
            except KafkaException as error:  # raised by whatever is called next after an error for good
                self._told_error(error.args[0])
        if self._ended.is_set():
            producer.flush(FLUSHED_SECONDS)
        # What is still waiting is given up, as in a crash: nobody knows.
        producer.purge()
        producer.flush(5)

    def _send(self, producer: Producer) -> None:
        partition = self.random.randrange(self.partitions)
        value = f"{self.name}.{self._number}"
        self._number += 1
        # A producer that starts anew may overtake what its predecessor has left: it is another process.
        operation = self.recorder.invoke(f"{self.name}/{self._lives}", "send", [Send(key(partition), value)])
        try:
            producer.produce(
                TOPIC,
                encode(value, self.random.randrange(300)),
                partition=partition,
                on_delivery=partial(self._told, operation, partition, value),
            )
        except (BufferError, KafkaException) as error:
            self.recorder.fail(operation, str(error))
            self._broken = not isinstance(error, BufferError)

    def _told(
        self, operation: int, partition: int, value: str, error: KafkaError | None, message: Message
    ) -> None:
        offset = message.offset()
        if error is None and offset is not None and offset >= 0:
            self.recorder.ok(operation, [Send(key(partition), value, offset)])
        else:
            self.recorder.unknown(operation, str(error))
            if error is not None and error.fatal():
                self._broken = True

    def _told_error(self, error: KafkaError) -> None:
        if error.fatal() or error.code() == KafkaError._FATAL:
            self._broken = True
            self.recorder.remark(f"a producer of librdkafka ended by {error.name()}")
            if error.code() == KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER:
                # What comes before it was acknowledged, and the broker does not know it.
                self.recorder.complain(f"{self.name}: {error.str()}")


class LibrdkafkaConsumer(Client):
    """Reads every partition by assignment, goes back now and then, and starts anew now and then."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]  # passed through
        self._positions = dict.fromkeys(range(self.partitions), 0)

    def live(self, until: float) -> None:
        consumer = new_consumer(self.bootstrap)
        try:
            self._assign(consumer)
            while time.monotonic() < until and not self._ended.is_set():
                if self.random.random() < 1 / 64:
                    self._assign(consumer)
                self._poll(consumer)
        finally:
            consumer.close()

    def _assign(self, consumer: Consumer) -> None:
        """Everything again from a little earlier: what was read once must be read again."""
        back = self.random.choice((0, 0, 10, 1000))
        wanted = [TopicPartition(TOPIC, p, max(0, at - back)) for p, at in self._positions.items()]
        consumer.assign(wanted)
        keys = tuple(key(partition) for partition in self._positions)
        self.recorder.done(self.name, "assign", [Assign(keys, from_beginning=True)])

    def _poll(self, consumer: Consumer) -> None:
        found, problems = sort_messages(consumer.consume(1000, 0.2))
        for problem in problems:
            self.recorder.remark(f"a consumer of librdkafka was told {problem.name()}")
            if problem.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
                self.recorder.complain(f"{self.name}: {problem.str()}")
        if found:
            for partition, records in found.items():
                self._positions[partition] = records[-1][0] + 1
            self.recorder.done(self.name, "poll", [Poll({key(p): r for p, r in found.items()})])


def new_consumer(bootstrap: str) -> Consumer:
    return Consumer(
        {
            **QUICK,
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "check.crcs": True,
            "fetch.wait.max.ms": 200,
            "fetch.error.backoff.ms": 50,
            "error_cb": lambda _: None,
        }
    )


def sort_messages(messages: list[Message]) -> tuple[dict[int, list[tuple[int, str]]], list[KafkaError]]:
    """(offset, value) by partition in the order in which they came, and what else came."""
    found: dict[int, list[tuple[int, str]]] = {}
    problems: list[KafkaError] = []
    for message in messages:
        error = message.error()
        partition, offset = message.partition(), message.offset()
        if error is not None:
            problems.append(error)
        elif partition is not None and offset is not None:
            found.setdefault(partition, []).append((offset, decode(message.value())))
    return found, problems


def read_everything(
    bootstrap: str, partitions: int, recorder: Recorder, seconds: float, say: Callable[[str], None]
) -> None:
    """The last phase: one process reads every key from its beginning to its end."""
    consumer = new_consumer(bootstrap)
    try:
        deadline = time.monotonic() + seconds
        ends = {p: _end_of(consumer, p, deadline) for p in range(partitions)}
        consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in ends])
        keys = tuple(key(partition) for partition in ends)
        recorder.done("final", "assign", [Assign(keys, from_beginning=True)])
        positions = dict.fromkeys(ends, 0)
        while any(positions[p] < ends[p] for p in ends):
            if time.monotonic() > deadline:
                recorder.complain(f"the last reads ended at {positions} of {ends}")
                return
            found, problems = sort_messages(consumer.consume(5000, 0.5))
            for problem in problems:
                recorder.remark(f"the last reader was told {problem.name()}")
            if found:
                recorder.done("final", "poll", [Poll({key(p): r for p, r in found.items()})])
            positions |= {p: records[-1][0] + 1 for p, records in found.items()}
        say(f"read everything: {sum(ends.values())} records in {partitions} partitions")
    finally:
        consumer.close()


def _end_of(consumer: Consumer, partition: int, deadline: float) -> int:
    while True:
        try:
            return int(consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), timeout=5)[1])
        except KafkaException:
            if time.monotonic() > deadline:
                raise
