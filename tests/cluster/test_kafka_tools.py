"""Apache Kafka's own tools, against three brokers."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apache_kafka import KafkaTools
from tests.cluster.kafka_commands import Commands, verify_replicas, write_plan
from tests.cluster.load import read_numbers, write
from tests.cluster_process import HeadraceCluster, eventually

KILOBYTE = 1000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadraceCluster]:
    properties = {"auto.leader.rebalance.enable": "false"}
    with HeadraceCluster(tmp_path_factory.mktemp("cluster"), 3, properties) as running:
        yield running


@pytest.fixture
def commands(tools: KafkaTools, cluster: HeadraceCluster) -> Iterator[Commands]:
    yield Commands(tools, cluster)
    for number, broker in cluster.brokers.items():
        if not broker.running:
            cluster.restart(number)
    cluster.wait_whole()


def test_topics_that_lack_replicas_are_listed(cluster: HeadraceCluster, commands: Commands) -> None:
    commands.output(
        *("topics", "--create", "--topic", "lacking", "--partitions", "2", "--replication-factor", "3"),
        *("--config", "min.insync.replicas=2"),
    )
    cluster.create_topic("alone", [[3]])
    cluster.wait_in_sync("lacking")
    both = {"lacking-0", "lacking-1"}
    for filtered in ("under-replicated", "under-min-isr", "at-min-isr", "unavailable"):
        assert not commands.listed(f"--{filtered}-partitions") & both

    cluster.kill(3)
    eventually(lambda: commands.listed("--under-replicated-partitions") >= both, 20, "two of three in sync")
    assert both <= commands.listed("--at-min-isr-partitions")
    assert not commands.listed("--under-min-isr-partitions") & both
    assert "alone-0" in commands.listed("--unavailable-partitions")

    cluster.kill(2)
    eventually(lambda: commands.listed("--under-min-isr-partitions") >= both, 20, "one of three in sync")
    described = commands.output("topics", "--describe", "--topic", "lacking")
    rows = re.findall(r"Leader: (\d+)\t.*Isr: (\S+)\tElr: (\S*)", described)
    assert rows == [("1", "1", "2")] * 2, "what left below the minimum may still lead"

    cluster.restart(2)
    cluster.restart(3)
    cluster.wait_in_sync("lacking")
    for filtered in ("under-replicated", "under-min-isr", "unavailable"):
        assert not commands.listed(f"--{filtered}-partitions") & {*both, "alone-0"}
    assert not re.search(r"Elr: \d", commands.output("topics", "--describe", "--topic", "lacking"))


def test_a_plan_is_generated_for_other_brokers(
    cluster: HeadraceCluster, commands: Commands, tmp_path: Path
) -> None:
    cluster.create_topic("generated", [[1, 2], [2, 1]])
    chosen = tmp_path / "topics.json"
    chosen.write_text(json.dumps({"version": 1, "topics": [{"topic": "generated"}]}))
    arguments = ("--generate", "--topics-to-move-json-file", str(chosen), "--broker-list", "2,3")
    plans = [
        json.loads(line)
        for line in commands.output("reassign", *arguments).splitlines()
        if line.startswith("{")
    ]
    assert [set(p["replicas"]) for p in plans[0]["partitions"]] == [{1, 2}, {1, 2}]
    assert [set(p["replicas"]) for p in plans[1]["partitions"]] == [{2, 3}, {2, 3}]


def test_a_throttled_reassignment_is_slow_until_the_throttle_is_raised(
    cluster: HeadraceCluster, commands: Commands, tmp_path: Path
) -> None:
    cluster.create_topic("moved", [[1, 2]])
    write(cluster.bootstrap, "moved", 9000, size=KILOBYTE)
    plan = write_plan(tmp_path / "plan.json", {("moved", 0): [3, 2]})
    began = time.monotonic()
    arguments = ("--reassignment-json-file", plan)
    started = commands.output("reassign", "--execute", *arguments, "--throttle", str(300 * KILOBYTE))
    assert "Successfully started partition reassignment" in started
    assert "The inter-broker throttle limit was set to 300000 B/s" in started
    running = commands.output("reassign", "--list")
    assert "moved-0: replicas: 3,2,1. adding: 3. removing: 1." in running
    assert "is still in progress" in commands.output("reassign", "--verify", *arguments)
    limits = commands.output("configs", "--describe", "--entity-type", "brokers", "--entity-name", "1")
    assert "leader.replication.throttled.rate=300000" in limits

    time.sleep(max(0.0, began + 4 - time.monotonic()))
    partition = cluster.partition("moved")
    assert 3 in partition.replicas
    assert 3 not in partition.isr, "9 MB at 300 kB/s take half a minute"

    raised = commands.output(
        "reassign", "--execute", "--additional", *arguments, "--throttle", str(100_000 * KILOBYTE)
    )
    assert "The inter-broker throttle limit was set to 100000000 B/s" in raised

    def complete() -> bool:
        return "Reassignment of partition moved-0 is completed." in commands.output(
            "reassign", "--verify", *arguments
        )

    eventually(complete, 30, "the reassignment completes")
    assert cluster.partition("moved").replicas == (3, 2)
    for kind, name in (("brokers", "1"), ("brokers", "3"), ("topics", "moved")):
        left = commands.output("configs", "--describe", "--entity-type", kind, "--entity-name", name)
        assert "throttled" not in left, "--verify takes the throttles away"
    assert read_numbers(cluster.bootstrap, "moved") == list(range(9000))
    eventually(lambda: "moved-0" not in commands.log_dirs("moved")[1], 20, "the old replica is removed")


def test_a_cancelled_reassignment_leaves_the_replicas_as_they_were(
    cluster: HeadraceCluster, commands: Commands, tmp_path: Path
) -> None:
    cluster.create_topic("stays", [[1, 2]])
    write(cluster.bootstrap, "stays", 2000, size=KILOBYTE)
    plan = write_plan(tmp_path / "plan.json", {("stays", 0): [3, 2]})
    arguments = ("--reassignment-json-file", plan)
    commands.output("reassign", "--execute", *arguments, "--throttle", str(10 * KILOBYTE))
    assert "stays-0" in commands.output("reassign", "--list")
    cancelled = commands.output("reassign", "--cancel", *arguments)
    assert "Successfully cancelled partition reassignment for: stays-0" in cancelled
    assert "No partition reassignments found." in commands.output("reassign", "--list")
    assert set(cluster.partition("stays").replicas) == {1, 2}
    cluster.wait_in_sync("stays")
    eventually(lambda: "stays-0" not in commands.log_dirs("stays")[3], 20, "the new replica is removed")
    assert read_numbers(cluster.bootstrap, "stays") == list(range(2000))


def test_a_plan_that_cannot_be_carried_out_is_refused(
    cluster: HeadraceCluster, commands: Commands, tmp_path: Path
) -> None:
    cluster.create_topic("refused", [[1, 2]])
    plan = write_plan(tmp_path / "plan.json", {("refused", 0): [1, 9]})
    result = commands.run("reassign", "--execute", "--reassignment-json-file", plan)
    assert result.status != 0
    assert cluster.partition("refused").replicas == (1, 2)


def test_preferred_leaders_are_elected(cluster: HeadraceCluster, commands: Commands) -> None:
    cluster.create_topic("preferred", [[3, 1, 2], [1, 2, 3]])
    cluster.kill(3)
    eventually(lambda: cluster.leader("preferred") in (1, 2), 20, "another leads")
    unavailable = commands.run(
        "elect", "--election-type", "preferred", "--topic", "preferred", "--partition", "0"
    )
    assert unavailable.status != 0
    assert "PreferredLeaderNotAvailableException" in unavailable.output + unavailable.errors
    cluster.restart(3)
    cluster.wait_in_sync("preferred")
    assert cluster.leader("preferred") != 3
    printed = commands.output("elect", "--election-type", "preferred", "--all-topic-partitions")
    assert re.search(
        r"Successfully completed leader election \(PREFERRED\) for partitions .*preferred-0", printed
    )
    assert cluster.leader("preferred") == 3
    again = commands.output(
        "elect", "--election-type", "preferred", "--topic", "preferred", "--partition", "0"
    )
    assert "Valid replica already elected for partitions preferred-0" in again


def test_an_unclean_election_happens_only_when_it_is_asked_for(
    cluster: HeadraceCluster, commands: Commands
) -> None:
    cluster.create_topic("unclean", [[2, 3]])
    cluster.kill(3)
    eventually(lambda: cluster.partition("unclean").isr == (2,), 20, "only 2 is in sync")
    write(cluster.bootstrap, "unclean", 10)
    cluster.kill(2)
    eventually(lambda: cluster.leader("unclean") == -1, 20, "nobody leads")
    cluster.restart(3)
    eventually(lambda: 3 in cluster.alive(), 60, "3 is back")
    time.sleep(1)
    assert cluster.leader("unclean") == -1, "3 lacks what 2 has"
    assert "unclean-0" in commands.listed("--unavailable-partitions")
    printed = commands.output("elect", "--election-type", "unclean", "--topic", "unclean", "--partition", "0")
    assert "Successfully completed leader election (UNCLEAN) for partitions unclean-0" in printed
    eventually(lambda: cluster.leader("unclean") == 3, 10, "3 leads")
    cluster.restart(2)
    cluster.wait_in_sync("unclean")
    assert read_numbers(cluster.bootstrap, "unclean") == []


def test_replicas_are_verified_to_be_equal(cluster: HeadraceCluster) -> None:
    cluster.create_topic("equal", [[1, 2, 3], [2, 3, 1]])
    for partition in (0, 1):
        write(cluster.bootstrap, "equal", 500, partition=partition)
    said = verify_replicas(cluster.bootstrap, "equal")
    assert any("max lag is 0 for partition equal-" in line for line in said), said
    assert not any("isn't found" in line or "don't match" in line or "Exception" in line for line in said), (
        said
    )


def test_log_directories_are_told_by_every_broker(cluster: HeadraceCluster, commands: Commands) -> None:
    cluster.create_topic("sized", [[1, 2, 3]])
    write(cluster.bootstrap, "sized", 100)

    def same() -> bool:
        found = commands.log_dirs("sized")
        sizes = {replicas["sized-0"]["size"] for replicas in found.values()}
        lags = {replicas["sized-0"]["offsetLag"] for replicas in found.values()}
        return set(found) == {1, 2, 3} and len(sizes) == 1 and sizes.pop() > 100_000 and lags == {0}

    eventually(same, 10, "three equal replicas")
    for number, replicas in commands.log_dirs("sized").items():
        assert replicas["sized-0"]["logDir"] == str(cluster.brokers[number].log_dir)


def test_the_cluster_describes_itself(cluster: HeadraceCluster, commands: Commands) -> None:
    printed = commands.output("cluster", "cluster-id")
    assert re.fullmatch(r"Cluster ID: [A-Za-z0-9_-]{22}\n", printed)
    cluster.kill(2)
    eventually(lambda: 2 not in cluster.alive(), 20, "broker 2 is fenced")
    endpoints = commands.output("cluster", "list-endpoints").splitlines()[1:]
    assert [line.split()[0] for line in endpoints] == ["1", "3"]
    everyone = commands.output("cluster", "list-endpoints", "--include-fenced-brokers").splitlines()[1:]
    assert {(line.split()[0], line.split()[4]) for line in everyone} == {
        ("1", "unfenced"),
        ("2", "fenced"),
        ("3", "unfenced"),
    }
    unknown = commands.run("cluster", "unregister", "--id", "9")
    assert unknown.status != 0
    assert "BrokerIdNotRegisteredException" in unknown.output + unknown.errors
