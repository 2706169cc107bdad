"""Clients that work at one cluster until it refuses them, and go on at another: what each was told, and
whether the other cluster agrees."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import closing, suppress

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

SECONDS = 120.0
GROUP = "readers"
BATCH = 10
COMMIT_EACH = 20
REFUSED = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.POLICY_VIOLATION)
"""Certainly not written."""


class Writer(threading.Thread):
    """An idempotent producer. What is refused is sent again at the target, once the way is free."""

    def __init__(self, clients: Clients, name: str, rate: float) -> None:
        super().__init__(daemon=True)
        self.clients, self.label, self.rate = clients, name, rate
        self.acknowledged: list[str] = []
        self.unknown: list[str] = []
        self.refused: list[tuple[str, int]] = []
        self.last_at = 0.0
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            self._write(self.clients.source, self.clients.arrived)
            assert self.clients.arrived.wait(SECONDS) or self.clients.over.is_set()
            self._write(self.clients.target, self.clients.over)
        except BaseException as error:
            self.failure = error

    def _write(self, bootstrap: str, until: threading.Event) -> None:
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.timeout.ms": int(SECONDS * 1000),
                "log_level": 0,
            }
        )
        # What this client refused by itself was told before the broker's word on what came first.
        waiting, self.refused = sorted(self.refused, key=lambda each: int(each[0].split()[1])), []
        for value, partition in waiting:
            self._send(producer, value, partition)
        number = len(self.acknowledged) + len(self.unknown) + len(waiting)
        while not until.is_set() and not self.refused:
            value, partition = f"{self.label} {number}", number % self.clients.topics["orders"]
            self._send(producer, value, partition)
            number += 1
            producer.poll(0)
            time.sleep(1 / self.rate)  # the pace of the load
        assert producer.flush(SECONDS) == 0

    def _send(self, producer: Producer, value: str, partition: int) -> None:
        def told(error: KafkaError | None, _: Message | None) -> None:
            if error is None:
                self.acknowledged.append(value)
                self.last_at = time.monotonic()
            elif error.code() in REFUSED:
                self.refused.append((value, partition))
            else:
                self.unknown.append(value)

        try:
            producer.produce("orders", value.encode(), partition=partition, on_delivery=told)
        except KafkaException as error:  # it remembers that the topic is forbidden
            told(error.args[0], None)


class Transactor(threading.Thread):
    """Transactions over both topics, every fourth aborted. One that fails is made again at the target."""

    def __init__(self, clients: Clients) -> None:
        super().__init__(daemon=True)
        self.clients = clients
        self.committed: list[str] = []
        self.aborted: list[str] = []
        self.round = 0
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            self._work(self.clients.source, self.clients.arrived)
            assert self.clients.arrived.wait(SECONDS) or self.clients.over.is_set()
            self._work(self.clients.target, self.clients.over)
        except BaseException as error:
            self.failure = error

    def _work(self, bootstrap: str, until: threading.Event) -> None:
        producer = Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": "till", "linger.ms": 5, "log_level": 0}
        )
        producer.init_transactions(SECONDS)
        while not until.is_set():
            values = [f"t {bootstrap} {self.round} {i}" for i in range(BATCH)]
            try:
                self._one(producer, values)
            except KafkaException as error:
                self.aborted += values
                self._give_up(producer, error)
                return
            finally:
                self.round += 1
            time.sleep(0.05)  # the pace of the load

    @staticmethod
    def _give_up(producer: Producer, error: KafkaException) -> None:
        """Its coordinator may say that there is nothing to abort: no partition was let into it."""
        if error.args[0].txn_requires_abort():
            with suppress(KafkaException):
                producer.abort_transaction(SECONDS)

    def _one(self, producer: Producer, values: list[str]) -> None:
        producer.begin_transaction()
        for i, value in enumerate(values):
            topic = "orders" if i % 2 else "bills"
            producer.produce(topic, value.encode(), partition=i % self.clients.topics[topic])
        if self.round % 4 == 3:
            producer.flush(SECONDS)
            producer.abort_transaction(SECONDS)
            self.aborted += values
        else:
            producer.commit_transaction(SECONDS)
            self.committed += values


class Reader(threading.Thread):
    """A member of the group. It commits all the time, also while the cutover runs."""

    def __init__(self, clients: Clients, bootstrap: str, until: threading.Event) -> None:
        super().__init__(daemon=True)
        self.clients, self.bootstrap, self.until = clients, bootstrap, until
        self.seen: list[str] = []
        self.failure: BaseException | None = None

    def run(self) -> None:
        settings = {
            "bootstrap.servers": self.bootstrap,
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
        try:
            with closing(Consumer(settings)) as consumer:
                consumer.subscribe(["orders"])
                while not self.until.is_set() and not self.clients.is_all_read():
                    message = consumer.poll(0.2)
                    if message is not None and message.error() is None:
                        self.seen.append(_text(message))
                        if len(self.seen) % COMMIT_EACH == 0:
                            consumer.commit(asynchronous=False)
                with suppress(KafkaException):  # there may be nothing new to commit: the checker would see it
                    consumer.commit(asynchronous=False)
        except BaseException as error:
            self.failure = error


class Probe(threading.Thread):
    """Tries to write at the target all the time: when it first may is when the outage ends."""

    def __init__(self, clients: Clients) -> None:
        super().__init__(daemon=True)
        self.clients = clients
        self.acknowledged: list[str] = []
        self.first_at = 0.0
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            self._try()
        except BaseException as error:
            self.failure = error

    def _try(self) -> None:
        producer = Producer({"bootstrap.servers": self.clients.target, "linger.ms": 0, "log_level": 0})
        number = 0
        while not self.first_at and not self.clients.over.is_set():
            outcome: list[KafkaError | None] = []
            value = f"probe {number}"
            number += 1
            # The last partition that opens ends it: take them in turn, and only a whole round counts.
            for partition in range(self.clients.topics["orders"]):
                producer.produce(
                    "orders",
                    f"{value} {partition}".encode(),
                    partition=partition,
                    on_delivery=lambda error, message: self._told(error, message, outcome),  # noqa: B023 - called in this round
                )
            producer.flush(SECONDS)
            if outcome and all(error is None for error in outcome):
                self.first_at = time.monotonic()
            else:
                time.sleep(0.02)  # how exactly the end of the outage is measured

    def _told(self, error: KafkaError | None, message: Message, outcome: list[KafkaError | None]) -> None:
        outcome.append(error)
        if error is None:
            self.acknowledged.append(_text(message))


def _text(message: Message) -> str:
    value = message.value()
    assert value is not None
    return value.decode()


class Clients:
    def __init__(self, source: str, target: str, topics: Mapping[str, int], rate: float) -> None:
        self.source, self.target, self.topics = source, target, topics
        self.arrived, self.left, self.over = threading.Event(), threading.Event(), threading.Event()
        self.given_up = threading.Event()
        self.writers = [Writer(self, f"w{number}", rate) for number in range(2)]
        self.transactor = Transactor(self)
        self.readers = [Reader(self, source, self.left), Reader(self, target, self.given_up)]
        self.probe = Probe(self)
        self._last_at_source = 0.0

    def start(self) -> None:
        for thread in (*self.writers, self.transactor, self.readers[0]):
            thread.start()

    def wait_busy(self) -> None:
        """Everybody has done something at the source."""
        deadline = time.monotonic() + SECONDS
        while not (
            all(writer.acknowledged for writer in self.writers)
            and self.transactor.committed
            and self.readers[0].seen
        ):
            assert time.monotonic() < deadline, "the clients do not get to work"
            time.sleep(0.05)

    def leave_the_source(self) -> None:
        """Its writers have been refused by now; its reader has committed until now."""
        self.left.set()
        self.readers[0].join(SECONDS)

    def arrive(self) -> None:
        """The clients are pointed anew."""
        self._last_at_source = max(writer.last_at for writer in self.writers)
        self.readers[1].start()
        self.arrived.set()

    def stop(self) -> None:
        """The reader at the target ends by itself, when it has seen what the others have written."""
        threads: list[Writer | Transactor | Probe | Reader] = [*self.writers, self.transactor, self.probe]
        threads += self.readers
        self.arrived.set()
        self.left.set()
        self.over.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join(SECONDS)
        self.given_up.set()
        for thread in threads:
            if thread.failure is not None:
                raise thread.failure

    @property
    def outage_seconds(self) -> float:
        """From the source's last acknowledgement to a round of them from every partition at the target."""
        return self.probe.first_at - self._last_at_source

    def _acknowledged(self) -> list[str]:
        written = [value for writer in self.writers for value in writer.acknowledged]
        return [*written, *self.transactor.committed, *self.probe.acknowledged]

    def is_all_read(self) -> bool:
        """Of the group; never before the writers have ended."""
        writing = (*self.writers, self.transactor, self.probe)
        if not self.over.is_set() or any(thread.is_alive() for thread in writing):
            return False
        orders = {value for value in self._acknowledged() if self._topic_of(value) == "orders"}
        return orders <= {value for reader in self.readers for value in reader.seen}

    @staticmethod
    def _topic_of(value: str) -> str:
        return "bills" if value.startswith("t ") and int(value.split()[-1]) % 2 == 0 else "orders"

    def judge(self) -> str:
        """One sentence; AssertionError with what is wrong."""
        expected = set(self._acknowledged())
        unknown = {value for writer in self.writers for value in writer.unknown}
        logs = {topic: self._read(topic) for topic in self.topics}
        found = Counter(value for partitions in logs.values() for values in partitions for value in values)
        assert not (lost := expected - found.keys()), sorted(lost)[:10]
        assert not (twice := [value for value, count in found.items() if count > 1]), twice[:10]
        assert not (strange := found.keys() - expected - unknown), sorted(strange)[:10]
        for writer in self.writers:
            for values in logs["orders"]:
                own = [int(value.split()[1]) for value in values if value.startswith(f"{writer.label} ")]
                assert own == sorted(own), f"{writer.label} is out of order"
        read = Counter(value for reader in self.readers for value in reader.seen)
        orders = {value for value in expected if self._topic_of(value) == "orders"}
        assert not (unread := orders - read.keys()), sorted(unread)[:10]
        assert not (again := [value for value, count in read.items() if count > 1]), again[:10]
        return (
            f"{len(expected):,} acknowledged records once, {len(self.transactor.committed):,} of them in"
            f" transactions, {len(self.transactor.aborted):,} of aborted ones gone, {len(unknown)} unknown;"
            f" the group has read {len(orders):,}, {len(self.readers[0].seen):,} at the source, each once;"
            f" {self.outage_seconds:.1f} s without acknowledgements"
        )

    def _read(self, topic: str) -> list[list[str]]:
        """What a reader of committed records sees at the target, by partition."""
        settings = {
            "bootstrap.servers": self.target,
            "group.id": "checker",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
        values: list[list[str]] = [[] for _ in range(self.topics[topic])]
        ended: set[int] = set()
        with closing(Consumer(settings)) as consumer:
            consumer.assign([TopicPartition(topic, partition, 0) for partition in range(self.topics[topic])])
            deadline = time.monotonic() + SECONDS
            while len(ended) < self.topics[topic]:
                assert time.monotonic() < deadline, f"{topic} cannot be read to its end"
                for message in consumer.consume(1000, 0.2):
                    partition = message.partition()
                    assert partition is not None
                    if (error := message.error()) is None:
                        values[partition].append(_text(message))
                    elif error.code() == KafkaError._PARTITION_EOF:
                        ended.add(partition)
        return values
