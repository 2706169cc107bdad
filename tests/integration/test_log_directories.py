"""A broker with two log directories: a partition goes where somebody asked for, now or before it came."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from headrace.protocol.messages.alter_replica_log_dirs_response import AlterReplicaLogDirsResponse
from headrace.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from headrace.protocol.messages.create_topics_response import CreateTopicsResponse
from headrace.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from headrace.protocol.messages.describe_log_dirs_response import DescribeLogDirsResponse
from tests.both_brokers import TARGETS
from tests.wire import Wire


class Broker(NamedTuple):
    name: str
    wire: Wire
    directories: tuple[str, str]

    def assign(self, directory: str, topic: str, partition: int) -> int:
        topics = [AlterReplicaLogDirTopic(name=topic, partitions=[partition])]
        asked = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=directory, topics=topics)])
        answer: AlterReplicaLogDirsResponse = self.wire.ask(asked, 2, AlterReplicaLogDirsResponse)
        return answer.results[0].partitions[0].error_code

    def create(self, topic: str, partitions: int) -> None:
        new = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
        answer: CreateTopicsResponse = self.wire.ask(
            CreateTopicsRequest(topics=[new], timeout_ms=10_000), 7, CreateTopicsResponse
        )
        assert answer.topics[0].error_code == ErrorCode.NONE

    def places(self, topic: str) -> dict[int, str]:
        answer: DescribeLogDirsResponse = self.wire.ask(
            DescribeLogDirsRequest(topics=None), 5, DescribeLogDirsResponse
        )
        return {
            row.partition_index: directory.log_dir
            for directory in answer.results
            for each in directory.topics
            if each.name == topic
            for row in each.partitions
            if not row.is_future_key
        }

    def settled_places(self, topic: str, partitions: int) -> dict[int, str]:
        deadline = time.monotonic() + 30
        while len(places := self.places(topic)) < partitions:
            assert time.monotonic() < deadline, places
            time.sleep(0.05)
        return places


@pytest.fixture
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    name = str(request.config.getoption("--target"))
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    with (
        TARGETS[name](tmp_path / "broker", {"log.dirs": f"{first},{second}"}) as process,
        Wire(process.port, timeout=30) as wire,
    ):
        yield Broker(name, wire, (first, second))


def test_partitions_are_placed_where_they_were_asked_for(broker: Broker) -> None:
    first, second = broker.directories
    for partition in range(6):
        code = broker.assign(second, "placed", partition)
        assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    broker.create("placed", 6)
    assert set(broker.settled_places("placed", 6).values()) == {second}
    assert broker.assign(second, "placed", 0) == ErrorCode.NONE

    broker.create("elsewhere", 4)
    assert set(broker.settled_places("elsewhere", 4).values()) == {first}, "where the fewest are"


def test_a_replica_that_is_here_is_moved_with_what_it_holds(broker: Broker) -> None:
    first, second = broker.directories
    broker.create("here", 2)
    before = broker.settled_places("here", 2)
    goals = {partition: second if place == first else first for partition, place in before.items()}
    for partition, place in before.items():
        assert broker.assign(place, "here", partition) == ErrorCode.NONE
    assert broker.places("here") == before
    for partition, goal in goals.items():
        assert broker.assign(goal, "here", partition) == ErrorCode.NONE
    deadline = time.monotonic() + 30
    while broker.places("here") != goals:
        assert time.monotonic() < deadline, broker.places("here")
        time.sleep(0.05)


def test_a_directory_that_the_broker_does_not_have_is_not_found(broker: Broker) -> None:
    broker.create("stays", 1)
    before = broker.settled_places("stays", 1)
    assert broker.assign("/nowhere", "stays", 0) == ErrorCode.LOG_DIR_NOT_FOUND
    assert broker.places("stays") == before
