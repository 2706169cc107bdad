"""The cluster that the tests under fire use: jobs run on it, and it leaves nothing behind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker_process import BrokerProcess
from tests.spark import processes, standalone_job
from tests.spark.connector.topics import create, read
from tests.spark.driver_process import DriverProcess
from tests.spark.standalone import Standalone


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with Standalone(tmp_path_factory.mktemp("cluster") / "spark") as cluster:
        yield cluster
        below = [
            pid for daemon in cluster.daemons for pid in [daemon.pid, *processes.descendants(daemon.pid)]
        ]
    assert not [pid for pid in below if processes.alive(pid)]


def document(cluster: Standalone, directory: Path, broker: BrokerProcess, topic: str) -> str:
    """What the driver is told. Its tasks wait for as long as the file `held` is there."""
    (directory / "held").touch()
    return json.dumps(
        {
            "master": cluster.url,
            "settings": cluster.session_settings(),
            "warehouse": str(directory / "warehouse"),
            "bootstrap": broker.bootstrap,
            "topic": topic,
            "held": str(directory / "held"),
        }
    )


def test_a_job_runs_on_executors_of_both_workers_and_outlives_one(
    cluster: Standalone, headrace: BrokerProcess, tmp_path: Path
) -> None:
    topic = create(headrace.bootstrap, "on-a-cluster")
    orders = document(cluster, tmp_path, headrace, topic)
    with DriverProcess("tests.spark.standalone_job", orders, tmp_path / "out") as driver:
        processes.wait_until(lambda: len(cluster.executors()) == 2, 180, "two executors run")
        first = cluster.executors()[0]
        processes.kill([first])
        processes.wait_until(
            lambda: len(cluster.executors()) == 2 and first not in cluster.executors(),
            60,
            "the master has the executor replaced",
        )
        (tmp_path / "held").unlink()
        assert driver.wait(180) == 0, driver.tail()
    found = [json.loads(message.value() or b"") for message in read(headrace.bootstrap, topic, 4)]
    assert sum(each["total"] for each in found) == sum(range(standalone_job.ROWS))


def test_a_driver_that_is_killed_leaves_neither_a_jvm_nor_executors(
    cluster: Standalone, headrace: BrokerProcess, tmp_path: Path
) -> None:
    processes.wait_until(lambda: not cluster.executors(), 60, "the executors of the last job end")
    orders = document(cluster, tmp_path, headrace, "never-written")
    with DriverProcess("tests.spark.standalone_job", orders, tmp_path / "out") as driver:
        processes.wait_until(cluster.executors, 180, "an executor runs")
        below = [driver.pid, *processes.descendants(driver.pid)]
        driver.kill()
        assert not [pid for pid in below if processes.alive(pid)]
        processes.wait_until(lambda: not cluster.executors(), 60, "the executors of a dead driver end")
