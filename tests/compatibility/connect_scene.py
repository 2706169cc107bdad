"""Apache's Connect on three brokers: files on both sides, and MirrorMaker 2 from a broker beside them."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ConsumerGroupTopicPartitions,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from tests.apache_connect import Answer, ConnectWorker
from tests.both_brokers import TARGETS
from tests.chaos.apache_kafka_cluster import ApacheKafkaCluster
from tests.cluster_process import ClusterProcess, HeadraceCluster

SECONDS: Final = 240.0
CLUSTERS: Final = {"headrace": HeadraceCluster, "kafka": ApacheKafkaCluster}
#: ACLs are there to be copied; everybody may do everything.
GUARDED: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "group.initial.rebalance.delay.ms": "0",
    # The transaction of a worker that was killed holds up its successor's reader: end it soon.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
LINES, COPIED, ORDERS = "lines", "lines-of-file", "orders"
MIRRORED = f"east.{ORDERS}"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"


class Row(NamedTuple):
    """What a mirror must keep of a record."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | str | None], ...]
    timestamp: int


def eventually(check: Callable[[], bool], what: str, scene: Scene | None = None) -> None:
    deadline = time.monotonic() + SECONDS
    while not check():
        states = scene.states() if scene and time.monotonic() > deadline else ""
        assert time.monotonic() < deadline, f"not within {SECONDS:g} s: {what}\n{states}"
        time.sleep(0.1)


class Scene:
    """Two workers on the cluster `west`; the broker `east` is what MirrorMaker 2 reads."""

    def __init__(self, target: str, directory: Path) -> None:
        self.directory = directory
        self.east = TARGETS[target](directory / "east", GUARDED)
        self.west: ClusterProcess = CLUSTERS[target](directory / "west", 3, GUARDED)
        self.workers: list[ConnectWorker] = []
        self.source_file = directory / "source.txt"
        self.sink_file = directory / "sink.txt"
        self.written: list[str] = []
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.east)
            stack.enter_context(self.west)
            for number in (1, 2):
                worker = ConnectWorker(
                    self.directory / f"worker-{number}", self.west.bootstrap, replication=3
                )
                worker.launch()
                stack.callback(worker.kill)
                self.workers.append(worker)
            for worker in self.workers:
                worker.wait_ready()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            error.add_note(self.states())
        self._stack.close()

    # What Connect is told.

    def ask(self, method: str, path: str, body: object = None) -> Answer:
        """By the first worker that answers, or 503: one that has just been started is not there yet."""
        for worker in self.workers:
            if worker.running:
                try:
                    return worker.call(method, path, body)
                except OSError:
                    continue
        return Answer(503, {}, {})

    def connector(self, name: str, config: dict[str, str]) -> None:
        def made() -> bool:
            # While workers agree on who does what, a request is answered with 409.
            answer = self.ask("PUT", f"/connectors/{name}/config", config)
            assert answer.status in (200, 201, 409, 503), answer
            return answer.status in (200, 201)

        eventually(made, f"connector {name} is made", self)

    def run_files(self) -> None:
        self.source_file.touch()
        source = {"connector.class": "FileStreamSource", "file": str(self.source_file), "topic": LINES}
        self.connector("file-source", {**source, "exactly.once.support": "required"})
        sink = {"connector.class": "FileStreamSink", "file": str(self.sink_file), "topics": LINES}
        self.connector("file-sink", {**sink, "consumer.override.isolation.level": "read_committed"})

    def run_mirror(self) -> None:
        both = {
            "source.cluster.alias": "east",
            "target.cluster.alias": "west",
            "source.cluster.bootstrap.servers": self.east.bootstrap,
            "target.cluster.bootstrap.servers": self.west.bootstrap,
            "key.converter": BYTES,
            "value.converter": BYTES,
            "header.converter": BYTES,
            "topics": ORDERS,
            "tasks.max": "2",
            "refresh.topics.interval.seconds": "1",
            "refresh.groups.interval.seconds": "1",
        }
        package = "org.apache.kafka.connect.mirror"
        copying = {
            "connector.class": f"{package}.MirrorSourceConnector",
            "exactly.once.support": "required",
            "offset-syncs.topic.replication.factor": "1",
            "sync.topic.configs.interval.seconds": "1",
            "sync.topic.acls.interval.seconds": "1",
            "source.consumer.isolation.level": "read_committed",
        }
        groups = {
            "connector.class": f"{package}.MirrorCheckpointConnector",
            "checkpoints.topic.replication.factor": "3",
            "emit.checkpoints.interval.seconds": "1",
            "sync.group.offsets.enabled": "true",
            "sync.group.offsets.interval.seconds": "1",
        }
        self.connector("mirror", {**both, **copying})
        self.connector("checkpoints", {**both, **groups})

    # What is done to it.

    def write_lines(self, count: int) -> None:
        begin = len(self.written)
        lines = [f"line {number} {'x' * (number % 50)}" for number in range(begin, begin + count)]
        with self.source_file.open("a") as output:
            output.writelines(f"{line}\n" for line in lines)
        self.written += lines

    def write_orders(self, count: int) -> None:
        producer = Producer({"bootstrap.servers": self.east.bootstrap, "enable.idempotence": True})
        begin = sum(self._ends(self.east.bootstrap, ORDERS))
        for number in range(begin, begin + count):
            producer.produce(
                ORDERS,
                key=f"key {number}",
                value=f"order {number}",
                partition=number % 2,
                headers=[("number", str(number).encode())],
            )
        assert producer.flush(SECONDS) == 0

    def worker_of(self, connector: str) -> ConnectWorker:
        """The worker that runs the connector's first task."""
        places: list[str] = []

        def known() -> bool:
            body = self.ask("GET", f"/connectors/{connector}/status").body
            places[:] = [task["worker_id"] for task in body.get("tasks", ()) if task["state"] == "RUNNING"]
            return bool(places)

        eventually(known, f"{connector} runs", self)
        return next(worker for worker in self.workers if worker.bootstrap == places[0])

    def states(self) -> str:
        """What the workers say of their connectors, for a failure."""
        return str(self.ask("GET", "/connectors?expand=status"))

    # What has become of it.

    def _ends(self, bootstrap: str, topic: str) -> list[int]:
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
        try:
            partitions = consumer.list_topics(topic, 30).topics[topic].partitions
            return [
                consumer.get_watermark_offsets(TopicPartition(topic, at), 30)[1] for at in sorted(partitions)
            ]
        finally:
            consumer.close()

    def rows(self, bootstrap: str, topic: str, partition: int, count: int) -> list[Row]:
        """All committed records of a partition. Waits for `count`, then for what should not be there."""
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
            }
        )
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
        rows: list[Row] = []
        deadline = time.monotonic() + SECONDS
        try:
            while time.monotonic() < deadline:
                message = consumer.poll(0.2)
                if message is None:
                    continue
                if message.error() is None:
                    headers = tuple((str(each[0]), each[1]) for each in message.headers() or ())
                    rows.append(Row(message.key(), message.value(), headers, message.timestamp()[1]))
                elif len(rows) >= count:
                    break
        finally:
            consumer.close()
        return rows

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """What the group has committed on the cluster that is mirrored to."""
        admin = AdminClient({"bootstrap.servers": self.west.bootstrap})
        answer = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(60)
        return {each.partition: each.offset for each in answer.topic_partitions or () if each.topic == topic}

    def sunk(self) -> list[str]:
        return self.sink_file.read_text().splitlines() if self.sink_file.exists() else []
