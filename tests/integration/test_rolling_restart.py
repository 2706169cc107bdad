"""Every broker is restarted in turn while a producer writes, as docs/operations.md tells an operator to."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from headrace.cli.main import cli
from headrace.testing.cluster import Cluster
from headrace.testing.zookeeper_jars import CLASSPATH_VARIABLE, ZooKeeperMissing, find_classpath
from tests.zookeeper_server import CACHE

PARTITIONS = 6
RECORDS_A_SECOND = 500


@pytest.fixture(autouse=True)
def _zookeeper_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        monkeypatch.setenv(CLASSPATH_VARIABLE, find_classpath(CACHE))
    except ZooKeeperMissing as error:
        pytest.skip(f"{error}; or run `poe clients`")


class Load:
    """Numbers, one after the other, with acks=all and idempotence, until it is told to stop."""

    def __init__(self, bootstrap: str) -> None:
        self.acked: list[int] = []
        self.failed: list[str] = []
        self.sent = 0
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 2,
                "message.timeout.ms": 30_000,
            }
        )
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        begin = time.monotonic()
        while not self._stop.is_set():
            while self.sent < (time.monotonic() - begin) * RECORDS_A_SECOND:
                self._send(self.sent)
                self.sent += 1
            self._producer.poll(0.005)

    def _send(self, number: int) -> None:
        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is None:
                self.acked.append(number)
            else:
                self.failed.append(f"{number}: {error}")

        self._producer.produce("t", str(number), partition=number % PARTITIONS, on_delivery=delivered)

    def wait_for_more_than(self, acked: int) -> None:
        _until(lambda: len(self.acked) > acked)

    def end(self) -> None:
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(60) == 0


def operator(cluster: Cluster, *args: str) -> str:
    result = CliRunner().invoke(
        cli, args, env={"HEADRACE_BOOTSTRAP": cluster.bootstrap}, prog_name="headrace"
    )
    assert result.exit_code == 0, (args, result.output, result.exception)
    return result.stdout


def consume(bootstrap: str, count: int) -> list[int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False})
    consumer.assign([TopicPartition("t", index, 0) for index in range(PARTITIONS)])
    found: list[int] = []
    deadline = time.monotonic() + 30
    while len(found) < count and time.monotonic() < deadline:
        found += [int(message.value() or b"") for message in consumer.consume(1000, 0.2)]
    found += [int(message.value() or b"") for message in consumer.consume(1000, 1.0)]  # more than was sent?
    consumer.close()
    return found


def test_no_write_fails_and_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    """Fault 23."""
    with Cluster(brokers=3, directory=tmp_path) as cluster:
        operator(cluster, "topic", "create", "t", "-p", str(PARTITIONS))
        load = Load(cluster.bootstrap)
        try:
            load.wait_for_more_than(0)
            for broker_id in (1, 2, 3):
                operator(cluster, "cluster", "status", "--wait", "60")
                acked = len(load.acked)
                before = cluster.processes.pids[broker_id]
                os.kill(before, signal.SIGTERM)
                _until_it_runs_again(cluster, broker_id, before)
                operator(cluster, "cluster", "status", "--wait", "60")
                load.wait_for_more_than(acked)
            operator(cluster, "topic", "elect-leaders")
        finally:
            load.end()
        assert load.failed == []
        assert sorted(load.acked) == list(range(load.sent))
        assert sorted(consume(cluster.bootstrap, load.sent)) == list(range(load.sent))
        ended = [line for line in cluster.processes.events if "ended with exit code 0" in line]
        assert len(ended) == 3, "each of them left in order"


def _until_it_runs_again(cluster: Cluster, broker_id: int, before: int) -> None:
    said = f"broker {broker_id} serves again"
    _until(lambda: any(line.startswith(said) for line in cluster.processes.events))
    assert cluster.processes.pids[broker_id] != before


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
