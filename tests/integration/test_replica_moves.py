"""A move between two log directories as people see it: slow, shown, ended, begun again, and done.

The broker runs in this process, so its loop is watched meanwhile: it waits for no disk.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer

from headrace.cli.main import cli
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from headrace.protocol.messages.alter_replica_log_dirs_response import AlterReplicaLogDirsResponse
from headrace.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from headrace.protocol.messages.create_topics_response import CreateTopicsResponse
from headrace.testing.cluster import Cluster
from tests.durability.load import stored
from tests.wire import Wire

TOPIC = "moved"
RECORDS = 40
VALUE_BYTES = 100_000
SLOW = 200_000
"""Bytes a second: the whole takes twenty."""


class Moves:
    def __init__(self, cluster: Cluster, directories: tuple[Path, Path]) -> None:
        self.bootstrap = cluster.bootstrap
        self.port = int(cluster.bootstrap.rpartition(":")[2])
        self.first, self.second = directories

    def ask(self, directory: Path) -> None:
        topics = [AlterReplicaLogDirTopic(name=TOPIC, partitions=[0])]
        asked = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=str(directory), topics=topics)])
        with Wire(self.port, timeout=30) as wire:
            answer: AlterReplicaLogDirsResponse = wire.ask(asked, 2, AlterReplicaLogDirsResponse)
        assert answer.results[0].partitions[0].error_code == ErrorCode.NONE

    def command(self, *arguments: str) -> str:
        environment = {"HEADRACE_BOOTSTRAP": self.bootstrap}
        result = CliRunner().invoke(cli, arguments, env=environment, prog_name="headrace")
        assert result.exit_code == 0, result.output
        return result.output

    def moving(self) -> list[dict[str, Any]]:
        told = json.loads(self.command("topic", "describe", TOPIC, "--json"))
        found: list[dict[str, Any]] = told[0]["partitions"][0]["moving"]
        return found

    @property
    def place(self) -> list[Path]:
        return [each for each in (self.first, self.second) if (each / f"{TOPIC}-0").is_dir()]

    def futures(self) -> list[Path]:
        return [path for each in (self.first, self.second) for path in each.glob(f"{TOPIC}-0.*-future")]


@pytest.fixture
def moves(tmp_path: Path) -> Iterator[Moves]:
    directories = tmp_path / "first", tmp_path / "second"
    properties = {
        "log.dirs": ",".join(map(str, directories)),
        "replica.alter.log.dirs.io.max.bytes.per.second": str(SLOW),
    }
    with Cluster(properties, directory=tmp_path) as cluster:
        made = Moves(cluster, directories)
        with Wire(made.port, timeout=30) as wire:
            new = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
            answer: CreateTopicsResponse = wire.ask(
                CreateTopicsRequest(topics=[new], timeout_ms=10_000), 7, CreateTopicsResponse
            )
        assert answer.topics[0].error_code == ErrorCode.NONE
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 0})
        for number in range(RECORDS):
            producer.produce(TOPIC, _value(number), partition=0)
            producer.poll(0)
        assert producer.flush(60) == 0
        yield made


def _value(number: int) -> bytes:
    return b"%d:" % number + b"x" * VALUE_BYTES


def eventually(is_so: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def test_a_slow_move_is_shown_and_ended_and_a_fast_one_is_done(moves: Moves) -> None:
    (here,) = moves.place
    there = moves.second if here == moves.first else moves.first
    moves.ask(there)
    eventually(lambda: any(each["size"] for each in moves.moving()), "something was copied")
    (row,) = moves.moving()
    assert (row["broker"], row["directory"]) == (1, str(there))
    assert 0 < row["size"] < RECORDS * VALUE_BYTES
    assert 0 < row["lag"] < RECORDS
    assert f"partition 0 of broker 1 moves to {there}:" in moves.command("topic", "describe", TOPIC)
    assert len(moves.futures()) == 1

    moves.ask(here)
    eventually(lambda: not moves.futures(), "the future replica goes")
    assert moves.moving() == []
    assert moves.place == [here]

    moves.ask(there)
    limit = "replica.alter.log.dirs.io.max.bytes.per.second=1000000000"
    moves.command("config", "set", "--broker", "1", limit)
    eventually(lambda: moves.place == [there], "the replica is there")
    eventually(lambda: moves.moving() == [], "nothing is left to be moved")
    assert stored(moves.bootstrap, TOPIC, 0, 0, RECORDS) == [_value(number) for number in range(RECORDS)]
