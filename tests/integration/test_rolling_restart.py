"""Every broker is restarted in turn while a producer writes, as docs/operations.md tells an operator to."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.testing.cluster import Cluster
from headrace.testing.zookeeper_jars import CLASSPATH_VARIABLE, ZooKeeperMissing, find_classpath
from tests.numbered_load import NumberedLoad, consume
from tests.zookeeper_server import CACHE

PARTITIONS = 6


@pytest.fixture(autouse=True)
def _zookeeper_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        monkeypatch.setenv(CLASSPATH_VARIABLE, find_classpath(CACHE))
    except ZooKeeperMissing as error:
        pytest.skip(f"{error}; or run `poe clients`")


def operator(cluster: Cluster, *args: str) -> str:
    result = CliRunner().invoke(
        cli, args, env={"HEADRACE_BOOTSTRAP": cluster.bootstrap}, prog_name="headrace"
    )
    assert result.exit_code == 0, (args, result.output, result.exception)
    return result.stdout


def test_no_write_fails_and_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    """Fault 23."""
    with Cluster(brokers=3, directory=tmp_path) as cluster:
        operator(cluster, "topic", "create", "t", "-p", str(PARTITIONS))
        load = NumberedLoad(cluster.bootstrap, "t", PARTITIONS)
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
        assert sorted(consume(cluster.bootstrap, "t", PARTITIONS, load.sent)) == list(range(load.sent))
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
