"""Replicas move between two log directories while a producer never rests, and while the broker is killed.

Every record that was acknowledged is there, at its offset, once, and in one directory.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from headrace.protocol.messages.alter_replica_log_dirs_response import AlterReplicaLogDirsResponse
from headrace.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from headrace.protocol.messages.describe_log_dirs_response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
)
from tests.broker_process import HeadraceProcess
from tests.compatibility.clients.confluent import ConfluentClient
from tests.durability.load import Load, stored, value_of
from tests.wire import Wire

TOPIC = "load"
PARTITIONS = 2
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
SECONDS = 60


class TwoDirectories:
    def __init__(self, root: Path, properties: dict[str, str]) -> None:
        self.paths = (str(root / "first"), str(root / "second"))
        self.process = HeadraceProcess(root / "broker", {"log.dirs": ",".join(self.paths), **properties})

    def move(self, partition: int, path: str, topic: str = TOPIC) -> None:
        topics = [AlterReplicaLogDirTopic(name=topic, partitions=[partition])]
        asked = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=topics)])
        with Wire(self.process.port, timeout=30) as wire:
            answer: AlterReplicaLogDirsResponse = wire.ask(asked, 2, AlterReplicaLogDirsResponse)
        assert answer.results[0].partitions[0].error_code == ErrorCode.NONE

    def rows(self, partition: int, wanted: str = TOPIC) -> dict[str, DescribeLogDirsPartition]:
        with Wire(self.process.port, timeout=30) as wire:
            answer: DescribeLogDirsResponse = wire.ask(
                DescribeLogDirsRequest(topics=None), 4, DescribeLogDirsResponse
            )
        return {
            directory.log_dir: row
            for directory in answer.results
            for topic in directory.topics
            if topic.name == wanted
            for row in topic.partitions
            if row.partition_index == partition
        }

    def place(self, partition: int, topic: str = TOPIC) -> str:
        return next(path for path, row in self.rows(partition, topic).items() if not row.is_future_key)

    def other(self, partition: int, topic: str = TOPIC) -> str:
        return next(path for path in self.paths if path != self.place(partition, topic))

    def wait_for(self, partition: int, path: str, topic: str = TOPIC) -> None:
        deadline = time.monotonic() + SECONDS
        while True:
            rows = self.rows(partition, topic)
            if list(rows) == [path] and not rows[path].is_future_key:
                return
            assert time.monotonic() < deadline, (rows, self.process.tail())
            time.sleep(0.01)


@contextmanager
def running(root: Path, **properties: str) -> Iterator[tuple[TwoDirectories, Load]]:
    broker = TwoDirectories(root, properties)
    broker.process.start()
    try:
        admin = ConfluentClient(broker.process.bootstrap)
        admin.create_topic(TOPIC, PARTITIONS, {"segment.bytes": str(1 << 20)})
        with Load(broker.process.bootstrap, TOPIC, PARTITIONS) as load:
            load.run()
            yield broker, load
            load.pause()
            check(broker, load)
        assert broker.process.running
        broker.process.stop()
    finally:
        broker.process.kill()
    for partition in range(PARTITIONS):
        folders = [path for path in broker.paths if (Path(path) / f"{TOPIC}-{partition}").exists()]
        assert len(folders) == 1


def check(broker: TwoDirectories, load: Load) -> None:
    for partition, acked in enumerate(load.acked):
        assert sorted(acked) == [*range(load.sent[partition])]
        assert [acked[number] for number in range(len(acked))] == [*range(len(acked))], "the order is kept"
        values = stored(broker.process.bootstrap, TOPIC, partition, 0, len(acked))
        assert values == [value_of(partition, number) for number in range(len(acked))]


def wait_for_load(load: Load, more: int) -> None:
    wanted = len(load.acked[0]) + more
    deadline = time.monotonic() + SECONDS
    while len(load.acked[0]) < wanted:
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.timeout(180)
def test_a_replica_moves_there_and_back_under_load(tmp_path: Path) -> None:
    with running(tmp_path) as (broker, load):
        for _ in range(4):
            load.run()
            wait_for_load(load, 500)
            before = len(load.acked[0])
            goal = broker.other(0)
            broker.move(0, goal)
            broker.wait_for(0, goal)
            wait_for_load(load, 1)
            assert len(load.acked[0]) > before
            load.pause()  # so that there is not more and more to move
        assert "replica not moved" not in broker.process.output.read_text()


@pytest.mark.timeout(180)
def test_a_move_that_a_kill_interrupts_goes_on_after_the_start(tmp_path: Path) -> None:
    with running(tmp_path, **{RATE: "300000"}) as (broker, load):
        wait_for_load(load, 5000)
        load.pause()
        goal = broker.other(0)
        broker.move(0, goal)
        deadline = time.monotonic() + SECONDS
        while not (row := broker.rows(0).get(goal)) or not row.partition_size:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        assert row.is_future_key
        assert row.offset_lag > 0
        load.run()
        broker.process.kill()
        assert [*Path(goal).glob(f"{TOPIC}-0.*-future")]
        del broker.process.properties[RATE]  # or it would never reach the producer
        broker.process.start()
        broker.wait_for(0, goal)


@pytest.mark.timeout(240)
def test_a_kill_at_any_moment_of_a_move_loses_nothing(tmp_path: Path) -> None:
    random = Random(7)
    with running(tmp_path) as (broker, load):
        for _ in range(6):
            load.run()
            wait_for_load(load, 500)
            broker.move(0, broker.other(0))
            time.sleep(random.uniform(0.0, 0.12))
            broker.process.kill()
            broker.process.start()
            load.pause()


@pytest.mark.timeout(180)
def test_transactions_and_groups_go_on_while_the_logs_of_their_coordinators_move(tmp_path: Path) -> None:
    """Each transaction writes a record and commits an offset; the logs of both coordinators change places."""
    internal = ("__consumer_offsets", "__transaction_state")
    one = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
    broker = TwoDirectories(tmp_path, one)
    broker.process.start()
    try:
        address = broker.process.bootstrap
        ConfluentClient(address).create_topic(TOPIC, 1, {})
        producer = Producer({"bootstrap.servers": address, "transactional.id": "moves", "log_level": 0})
        producer.init_transactions(SECONDS)
        consumer = Consumer({"bootstrap.servers": address, "group.id": "moves", "log_level": 0})
        group = consumer.consumer_group_metadata()
        written = 0
        for number in range(8):
            goal = ""
            topic = internal[number % 2]
            for step in range(6):
                if step == 1:  # the topics are there from the first transaction on
                    goal = broker.other(0, topic)
                    broker.move(0, goal, topic)
                producer.begin_transaction()
                producer.produce(TOPIC, b"%d" % written)
                producer.send_offsets_to_transaction([TopicPartition(TOPIC, 0, written + 1)], group, SECONDS)
                producer.commit_transaction(SECONDS)
                written += 1
            broker.wait_for(0, goal, topic)
        committed = consumer.committed([TopicPartition(TOPIC, 0)], timeout=SECONDS)
        assert committed[0].offset == written
        consumer.close()
        reader = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "readers",
                "isolation.level": "read_committed",
                "log_level": 0,
            }
        )
        reader.assign([TopicPartition(TOPIC, 0, 0)])
        values: list[bytes | None] = []
        while len(values) < written:
            messages = reader.consume(written - len(values), timeout=SECONDS)
            assert messages
            values += [message.value() for message in messages if message.error() is None]
        reader.close()
        assert values == [b"%d" % number for number in range(written)]
    finally:
        broker.process.kill()
