"""Producers and consumers of librdkafka, each a thread that goes on until it is told to end."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Final
from uuid import uuid4

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.cluster.tier_fire.ledger import Key, Ledger, Sent, value_of

PLAIN, TRADED = "plain", "traded"
PARTITIONS: Final = {PLAIN: 3, TRADED: 2}
PATIENCE_SECONDS: Final = 600
LARGEST_BATCH: Final = 50_000
"""After a long pause a client sends all that has waited; no batch may be larger than a segment."""


class Client(threading.Thread):
    """`go_on` is asked before each step. What it raises is an anomaly."""

    def __init__(self, name: str, bootstrap: str, ledger: Ledger) -> None:
        super().__init__(name=name, daemon=True)
        self.bootstrap = bootstrap
        self.ledger = ledger
        self.ending = threading.Event()

    def run(self) -> None:
        try:
            self.work()
        except Exception as error:
            self.ledger.accuse(f"{self.name} ended: {error!r}")

    def work(self) -> None:
        raise NotImplementedError


class IdempotentProducer(Client):
    """Every record arrives, however long that takes."""

    def __init__(self, writer: int, bootstrap: str, ledger: Ledger, per_second: float) -> None:
        super().__init__(f"producer {writer}", bootstrap, ledger)
        self.writer = writer
        self.per_second = per_second
        self.sent = 0
        self.slowest: list[tuple[float, float]] = []
        """When a record was acknowledged, and how long that took: of each second the slowest."""

    def work(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "enable.idempotence": True,
                "delivery.timeout.ms": PATIENCE_SECONDS * 1000,
                "linger.ms": 20,
                "batch.size": LARGEST_BATCH,
            }
        )
        chance = random.Random(self.writer)
        begun = time.monotonic()
        while not self.ending.is_set():
            due = int((time.monotonic() - begun) * self.per_second)
            while self.sent < due:
                sent, partition = Sent(self.writer, self.sent), chance.randrange(PARTITIONS[PLAIN])
                try:
                    producer.produce(
                        PLAIN, value_of(sent), partition=partition, on_delivery=self._noting(sent)
                    )
                except BufferError:
                    break
                self.sent += 1
            producer.poll(0.05)
        if producer.flush(PATIENCE_SECONDS):
            self.ledger.accuse(f"{self.name} still has {len(producer)} records")

    def _noting(self, sent: Sent) -> Callable[[KafkaError | None, Message], None]:
        def note(error: KafkaError | None, message: Message) -> None:
            offset = message.offset()
            if error is not None or offset is None:
                self.ledger.accuse(f"{sent} was refused: {error}")
                return
            took, now = message.latency() or 0.0, time.monotonic()
            if self.slowest and int(self.slowest[-1][0]) == int(now):
                self.slowest[-1] = (self.slowest[-1][0], max(took, self.slowest[-1][1]))
            else:
                self.slowest.append((now, took))
            self.ledger.on_acknowledged((PLAIN, message.partition() or 0), offset, sent)

        return note


class Trader(Client):
    """Transactions over all partitions, each third of them aborted. A producer that cannot go on gets a
    successor with the same id, which decides about what it left."""

    WRITER: Final = 1000

    def __init__(self, bootstrap: str, ledger: Ledger) -> None:
        super().__init__("trader", bootstrap, ledger)
        self.outcomes: dict[int, tuple[range, bool | None]] = {}
        self.acknowledged: set[tuple[Key, int]] = set()
        self._next = 0

    def work(self) -> None:
        producer = self._begin_anew()
        while not self.ending.is_set():
            numbers = range(self._next, self._next + 20)
            self._next = numbers.stop
            number = len(self.outcomes)
            self.outcomes[number] = (numbers, None)
            try:
                committed = self._one(producer, numbers, commit=number % 3 != 2)
            except KafkaException:
                producer = self._begin_anew()
            else:
                self.outcomes[number] = (numbers, committed)
            self.ending.wait(0.3)

    def _begin_anew(self) -> Producer:
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            producer = Producer(
                {
                    "bootstrap.servers": self.bootstrap,
                    "transactional.id": "trader",
                    "transaction.timeout.ms": 60_000,
                    "linger.ms": 5,
                }
            )
            try:
                producer.init_transactions(60)
                return producer
            except KafkaException:
                if time.monotonic() > until:
                    raise

    def _one(self, producer: Producer, numbers: range, *, commit: bool) -> bool:
        producer.begin_transaction()
        for number in numbers:
            sent, partition = Sent(self.WRITER, number), number // 10 % PARTITIONS[TRADED]
            producer.produce(TRADED, value_of(sent), partition=partition, on_delivery=self._noting(sent))
        producer.flush(60)
        if not commit:
            self._until_done(lambda: producer.abort_transaction(60))
            return False
        try:
            self._until_done(lambda: producer.commit_transaction(60))
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            self._until_done(lambda: producer.abort_transaction(60))
            return False
        return True

    def _noting(self, sent: Sent) -> Callable[[KafkaError | None, Message], None]:
        def note(error: KafkaError | None, message: Message) -> None:
            offset = message.offset()
            if error is None and offset is not None:
                key = (TRADED, message.partition() or 0)
                self.acknowledged.add((key, offset))
                self.ledger.on_acknowledged(key, offset, sent)

        return note

    def _until_done(self, end: Callable[[], None]) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                end()
                return
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > until:
                    raise


def make_consumer(bootstrap: str, level: str = "read_committed") -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": uuid4().hex,
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
            "isolation.level": level,
            "check.crcs": True,
            "fetch.wait.max.ms": 200,
        }
    )


class HotReader(Client):
    """Follows the ends of all partitions."""

    def work(self) -> None:
        consumer = make_consumer(self.bootstrap)
        consumer.assign(
            [TopicPartition(name, n, 0) for name, count in PARTITIONS.items() for n in range(count)]
        )
        last: dict[Key, int] = {}
        try:
            while not self.ending.is_set():
                for message in consumer.consume(1000, 0.5):
                    note(self.ledger, message, last, self.name)
        finally:
            consumer.close()


def note(ledger: Ledger, message: Message, last: dict[Key, int], who: str) -> None:
    """One message of a reader: no error, no offset left out where none can be empty, none twice."""
    error, offset = message.error(), message.offset()
    if error is not None or offset is None:
        raise KafkaException(error)
    key = (message.topic() or "", message.partition() or 0)
    before = last.get(key, offset - 1)
    if offset <= before or (key[0] == PLAIN and offset != before + 1):
        ledger.accuse(f"{who}: {key} went from {before} to {offset}")
    last[key] = offset
    value = message.value()
    ledger.on_read(key, offset, value if isinstance(value, bytes) else None)


class ColdReader(Client):
    """Somewhere in the history, some hundreds of records, again and again."""

    def __init__(
        self, number: int, bootstrap: str, ledger: Ledger, ends: Callable[[], dict[Key, int]]
    ) -> None:
        super().__init__(f"cold reader {number}", bootstrap, ledger)
        self._chance = random.Random(f"cold {number}")
        self._ends = ends
        self.answered = 0
        self.unanswered = 0

    def work(self) -> None:
        while not self.ending.is_set():
            consumer = make_consumer(
                self.bootstrap, self._chance.choice(["read_committed", "read_uncommitted"])
            )
            try:
                for _ in range(self._chance.randrange(1, 10)):
                    self._visit(consumer)
            finally:
                consumer.close()

    def _visit(self, consumer: Consumer) -> None:
        ends = {key: end for key, end in self._ends().items() if end > 1}
        if not ends or self.ending.wait(0.2):
            return
        key = self._chance.choice(sorted(ends))
        first = self._chance.choice([0, self._chance.randrange(ends[key])])
        wanted = self._chance.randrange(1, 1500)
        last = {key: first - 1} if key[0] == PLAIN else {}
        consumer.assign([TopicPartition(*key, first)])
        found, until = 0, time.monotonic() + 15
        while found < wanted and time.monotonic() < until and not self.ending.is_set():
            messages = consumer.consume(500, 0.5)
            for message in messages:
                note(self.ledger, message, last, self.name)
            found += len(messages)
            if last.get(key, -1) >= ends[key] - 1:
                break
        if found:
            self.answered += 1
        else:
            self.unanswered += 1
