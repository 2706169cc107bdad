"""A driver that dies with -9 at each place of a batch, and tasks that die: every row arrives once.

The places are as many as there are steps between the first row and Spark's own commit. The same without
Spark, with more cases and each on both brokers, is in test_protocol.py; kills at random moments are in
tests/spark/fire. Each start is a JVM: here a broker of each kind has its own half of the cases.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.broker_process import BrokerProcess
from tests.spark.driver_process import DriverProcess
from tests.spark.sink.reading import create, read

_PROGRAM = "tests.spark.sink.crashing_program"
_ROWS = 2000


class Crashing:
    def __init__(self, broker: BrokerProcess, topic: str, directory: Path) -> None:
        self.broker, self.topic, self.directory = broker, topic, directory
        (directory / "in").mkdir()
        for number in range(4):
            rows = range(number * _ROWS, (number + 1) * _ROWS)
            pq.write_table(pa.table({"id": list(rows)}), directory / "in" / f"{number}.parquet")
        create(broker.bootstrap, topic, 3)

    def start(self, **orders: str) -> int:
        document = {
            "bootstrap": self.broker.bootstrap,
            "topic": self.topic,
            "input": str(self.directory / "in"),
            "directory": str(self.directory),
            **orders,
        }
        with DriverProcess(_PROGRAM, json.dumps(document), self.directory / "driver.out") as driver:
            return driver.wait(580)

    def expect_crash(self, place: str, **orders: str) -> None:
        status = self.start(crash=place, **orders)
        assert status == -signal.SIGKILL, (self.directory / "driver.out").read_text()[-5000:]

    def finish(self, **orders: str) -> None:
        assert self.start(**orders) == 0, (self.directory / "driver.out").read_text()[-5000:]
        found = sorted(int(each.value or b"") for each in read(self.broker.bootstrap, self.topic))
        assert found == list(range(4 * _ROWS))


def test_a_driver_that_dies_at_every_place(
    headrace: BrokerProcess, new_topic: Callable[[], str], tmp_path: Path
) -> None:
    crashing = Crashing(headrace, new_topic(), tmp_path)
    crashing.expect_crash("decided:0")
    crashing.expect_crash("ended:0")
    crashing.expect_crash("written:1")
    crashing.expect_crash("ending:1")
    crashing.finish()


def test_tasks_that_die_or_fail_are_tried_again(
    apache_kafka: BrokerProcess, new_topic: Callable[[], str], tmp_path: Path
) -> None:
    crashing = Crashing(apache_kafka, new_topic(), tmp_path)
    crashing.expect_crash("writing:1", flaky="true", shuffle="2")
    crashing.finish(flaky="true", shuffle="3")
