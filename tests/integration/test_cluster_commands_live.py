"""The commands for clusters against real brokers: look, drain, rebalance, lose ZooKeeper, rebuild it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.testing.cluster import Cluster
from headrace.testing.zookeeper_jars import CLASSPATH_VARIABLE, ZooKeeperMissing, find_classpath, find_java
from tests.zookeeper_server import CACHE

SECONDS = 60.0


@pytest.fixture(scope="module", autouse=True)
def _zookeeper_jars() -> Iterator[None]:
    try:
        find_java()
        jars = find_classpath(CACHE)
    except ZooKeeperMissing as error:
        pytest.skip(f"{error}; or run `poe clients`")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CLASSPATH_VARIABLE, jars)
        yield


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(brokers=4, racks=("a", "b"), directory=tmp_path_factory.mktemp("cluster")) as running:
        yield running


class Commands:
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def succeeds(self, *args: str) -> bool:
        environment = {"HEADRACE_BOOTSTRAP": self.bootstrap}
        return CliRunner().invoke(cli, args, env=environment, prog_name="headrace").exit_code == 0

    def __call__(self, *args: str, stdin: str | None = None, code: int = 0) -> str:
        environment = {"HEADRACE_BOOTSTRAP": self.bootstrap}
        result = CliRunner().invoke(cli, args, input=stdin, env=environment, prog_name="headrace")
        assert result.exit_code == code, (args, result.output, result.exception)
        return result.stdout

    def json(self, *args: str, code: int = 0) -> Any:
        return json.loads(self(*args, "--json", code=code))

    def status(self) -> Any:
        result = CliRunner().invoke(
            cli, ["cluster", "status", "--json"], env={"HEADRACE_BOOTSTRAP": self.bootstrap}
        )
        assert result.exit_code in (0, 3), (result.output, result.exception)
        return json.loads(result.stdout)


@pytest.fixture
def run(cluster: Cluster) -> Commands:
    return Commands(cluster.bootstrap)


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def replicas(run: Commands, topic: str) -> list[list[int]]:
    (described,) = run.json("topic", "describe", topic)
    return [entry["replicas"] for entry in described["partitions"]]


def test_a_new_cluster_is_healthy_and_spreads_its_topics(run: Commands) -> None:
    run("topic", "create", "spread", "-p", "8", "-r", "2")
    told = run.status()
    assert told["verdict"] == "healthy"
    assert [broker["rack"] for broker in told["brokers"]] == ["a", "b", "a", "b"]
    assert told["controller"] in (1, 2, 3, 4)
    assert all(first % 2 != second % 2 for first, second in replicas(run, "spread")), "racks are kept apart"


def test_a_broker_is_drained_and_filled_again(run: Commands) -> None:
    run("topic", "create", "moved", "-p", "4", "-r", "2")
    run("produce", "moved", stdin="".join(f"{number}\n" for number in range(5_000)))
    run("cluster", "drain", "4", "--throttle", "100MB")
    assert not any(4 in ids for ids in replicas(run, "moved"))
    told = run.status()
    assert told["brokers"][3]["replicas"] == 0
    assert told["reassignments"] == told["under_replicated"] == []
    (described,) = run.json("topic", "describe", "moved")
    assert described["configs"] == {}, "the throttle is gone"
    run("cluster", "rebalance")
    assert run.status()["brokers"][3]["replicas"] > 0
    assert len(run("consume", "moved", "-e").splitlines()) == 5_000


def test_leaders_leave_a_broker_without_its_data(run: Commands) -> None:
    run("topic", "create", "led", "-p", "4", "-r", "3")
    before = replicas(run, "led")
    run("cluster", "drain", "1", "--leaders-only")
    assert run.status()["brokers"][0]["leaders"] == 0
    assert [sorted(ids) for ids in replicas(run, "led")] == [sorted(ids) for ids in before]
    run("cluster", "rebalance")
    assert run.status()["brokers"][0]["leaders"] > 0


def test_a_broker_that_dies_is_seen_and_comes_back(run: Commands, cluster: Cluster) -> None:
    run("topic", "create", "watched", "-p", "4", "-r", "3")
    eventually(lambda: run.status()["verdict"] == "healthy")
    # Without its file it cannot be started: it stays away until it has been seen to be.
    (file,) = Path(cluster.directory).rglob("broker-2.properties")
    elsewhere = file.rename(file.with_suffix(".away"))
    cluster.processes.kill(2)
    eventually(lambda: not run.status()["brokers"][1]["alive"])
    elsewhere.rename(file)
    eventually(lambda: run.status()["verdict"] == "healthy")
    assert any(line.startswith("broker 2 ended with SIGKILL") for line in cluster.processes.events)


def test_groups_are_found_at_all_coordinators_and_again_when_one_dies(
    run: Commands, cluster: Cluster
) -> None:
    run("topic", "create", "grouped", "-p", "2", "-r", "3")
    run("produce", "grouped", stdin="".join(f"{number}\n" for number in range(100)))
    names = [f"readers-{number}" for number in range(5)]
    assert len(run("consume", "grouped", "--group", names[0], "--exit").splitlines()) == 100
    for name in names[1:]:
        run("group", "reset", name, "--to-latest", "--topic", "grouped", "--execute")
    eventually(lambda: run.status()["verdict"] == "healthy")
    listed = {entry["group"]: entry for entry in run.json("group", "list")}
    assert list(listed) == names
    homes = {entry["coordinator"] for entry in listed.values()}
    assert len(homes) > 1, "one coordinator has all groups: the test says nothing"
    victim = listed["readers-0"]["coordinator"]
    cluster.processes.kill(victim)
    told = run.json("group", "lag", *names)
    assert [entry["group"] for entry in told] == names
    assert all(entry["total_lag"] == 0 for entry in told)
    assert sum(partition["committed"] for partition in told[0]["partitions"]) == 100
    run("group", "delete", *names)
    assert run.json("group", "list") == []
    eventually(lambda: run.status()["verdict"] == "healthy")


def test_a_broker_is_retired(tmp_path: Path) -> None:
    """Drained, stopped for good and forgotten, and the others do not miss it."""
    with Cluster(brokers=3, directory=tmp_path) as cluster:
        run = Commands(cluster.bootstrap)
        run("topic", "create", "t", "-p", "3", "-r", "2")
        assert "is alive" in _refusal(run, "cluster", "unregister", "3")
        run("cluster", "drain", "3")
        run("topic", "create", "late", "-p", "6", "-r", "2")  # before it is stopped: it gets replicas again
        cluster.processes.retire(3)
        eventually(lambda: not run.status()["brokers"][2]["alive"])
        eventually(lambda: "headrace cluster drain 3" in _refusal(run, "cluster", "unregister", "3"))
        run("cluster", "drain", "3")
        eventually(lambda: run.succeeds("cluster", "unregister", "3"))  # each broker hears of it by itself
        eventually(lambda: [broker["id"] for broker in run.status()["brokers"]] == [1, 2])
        assert run.status()["verdict"] == "healthy"


def _refusal(run: Commands, *args: str) -> str:
    result = CliRunner().invoke(cli, args, env={"HEADRACE_BOOTSTRAP": run.bootstrap}, prog_name="headrace")
    assert result.exit_code == 1
    return result.stderr


def test_a_lost_zookeeper_is_rebuilt_from_a_copy(tmp_path: Path) -> None:
    """Fault 29: the brokers come back with every topic and every record, and nothing is deleted."""
    with Cluster(brokers=3, directory=tmp_path) as cluster:
        run = Commands(cluster.bootstrap)
        run("topic", "create", "kept", "-p", "3", "-c", "retention.ms=12345678")
        run("produce", "kept", stdin="".join(f"{number}\n" for number in range(1_000)))
        cluster.processes.stop_brokers()
        cluster.processes.lose_zookeeper()
        given = [f"--from={tmp_path / f'broker-{number}'}" for number in (1, 2, 3)]
        assert cluster.processes.zookeeper is not None
        connect = cluster.processes.zookeeper.connect
        said = run("cluster", "recover-metadata", "--zookeeper", connect, *given, "--yes")
        assert re.fullmatch(r"restored cluster \S+ with 1 topic; start the brokers\n", said)
        cluster.processes.start_brokers()
        run = Commands(cluster.bootstrap)
        eventually(lambda: run.status()["verdict"] == "healthy")
        (described,) = run.json("topic", "describe", "kept")
        assert described["configs"] == {"retention.ms": "12345678"}
        assert sorted(map(int, run("consume", "kept", "-e").split())) == list(range(1_000))
        run("produce", "kept", stdin="1000\n")


def test_a_file_moves_replicas_and_adds_partitions(run: Commands, tmp_path: Path) -> None:
    run("topic", "create", "declared", "-p", "2", "-r", "1")
    file = tmp_path / "cluster.yaml"
    file.write_text("owns: {topics: [declared]}\ntopics: {declared: {partitions: 5, replicas: 3}}\n")
    planned = run("apply", "-f", str(file), "--dry-run")
    assert planned.splitlines() == ["~ topic declared", "    partitions: 2 -> 5", "    replicas: 1 -> 3"]
    run("apply", "-f", str(file), "--yes")
    assert [len(ids) for ids in replicas(run, "declared")] == [3] * 5
    assert not run("apply", "-f", str(file), "--check")
