"""A cluster and its ZooKeeper: how much is written there, and what happens without it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from headrace.protocol.messages.create_topics_response import CreateTopicsResponse
from headrace.testing.zookeeper import ZooKeeper
from tests.broker_process import HEADRACE
from tests.cluster.load import Load, read_numbers, write
from tests.cluster_process import HeadraceCluster, eventually
from tests.host import Stopwatch
from tests.wire import Wire

#: A minute, and ten thousand partitions, are for a task of their own.
QUORUM_SECONDS = float(os.environ.get("HEADRACE_QUORUM_SECONDS", "10"))
MOST_PARTITIONS = int(os.environ.get("HEADRACE_PARTITIONS", "1000"))
AT_ONCE = 1000
SESSION_SECONDS = 3 if MOST_PARTITIONS <= AT_ONCE else 12

pytestmark = pytest.mark.timeout(300 + QUORUM_SECONDS + MOST_PARTITIONS / 10)


def create_many(cluster: HeadraceCluster, count: int) -> list[str]:
    """Topics of up to a thousand partitions, three replicas each, all in sync."""
    names = []
    (port,) = [broker.port for broker in cluster.brokers.values()][:1]
    for start in range(0, count, AT_ONCE):
        names.append(f"many-{count}-{start}")
        topic = CreatableTopic(
            name=names[-1],
            num_partitions=min(AT_ONCE, count - start),
            replication_factor=3,
            assignments=[],
            configs=[],
        )
        with Wire(port, timeout=120) as wire:
            request = CreateTopicsRequest(topics=[topic], timeout_ms=110_000)
            answer: CreateTopicsResponse = wire.ask(request, 5, CreateTopicsResponse)
        assert answer.topics[0].error_code == 0, answer.topics[0]
    for name in names:
        cluster.wait_in_sync(name, 120)
    return names


def wait_quiet(cluster: HeadraceCluster, seconds: float = 1.5) -> int:
    """Until nothing has been written for a while; the number of the last change."""
    last, since = cluster.zookeeper.leader().zxid(), time.monotonic()
    deadline = since + 60
    while time.monotonic() - since < seconds:
        now = cluster.zookeeper.leader().zxid()
        if now != last:
            last, since = now, time.monotonic()
        assert time.monotonic() < deadline, "ZooKeeper is written to all the time"
        time.sleep(0.1)
    return last


def writes_of_a_failover(cluster: HeadraceCluster, topics: list[str], victim: int) -> int:
    before = wait_quiet(cluster)
    cluster.kill(victim)

    def moved() -> bool:
        rows = cluster.view(*topics).partitions.values()
        return all(row.leader not in (victim, -1) for row in rows)

    eventually(moved, 30, "every partition has another leader")
    time.sleep(SESSION_SECONDS + 1)  # the dead broker's session ends, which is a write too
    written = wait_quiet(cluster) - before
    cluster.restart(victim)
    cluster.wait_whole()
    for topic in topics:
        cluster.wait_in_sync(topic, 120)
    return written


def test_writes_per_failover_do_not_depend_on_the_number_of_partitions(tmp_path: Path) -> None:
    properties = {
        "auto.leader.rebalance.enable": "false",
        "zookeeper.session.timeout.ms": str(SESSION_SECONDS * 1000),
        # What a broker tells of its directories, one write in so long, is no part of a failover.
        "replica.high.watermark.checkpoint.interval.ms": "600000",
    }
    with HeadraceCluster(tmp_path, properties=properties) as cluster:
        topics: list[str] = []
        counted: dict[int, tuple[int, int]] = {}
        for count in (10, MOST_PARTITIONS):
            topics += create_many(cluster, count)
            controller = cluster.view().controller
            other = next(number for number in cluster.brokers if number != controller)
            of_another = writes_of_a_failover(cluster, topics, other)
            of_controller = writes_of_a_failover(cluster, topics, cluster.view().controller)
            counted[count] = (of_another, of_controller)
        print(f"\nwrites of a failover, of a broker and of the controller, by partitions: {counted}")
        # The commit that fences it, and the end of its session. A controller's successor also becomes
        # controller and marks the beginning of its epoch; ZooKeeper counts a slower candidate's attempt too.
        assert [of_another for of_another, _ in counted.values()] == [2, 2], counted
        assert all(of_controller <= 5 for _, of_controller in counted.values()), counted


def test_without_a_quorum_writes_go_on_and_nobody_is_elected(tmp_path: Path) -> None:
    cluster = HeadraceCluster(tmp_path, properties={"min.insync.replicas": "2"}, zookeepers=3)
    with cluster:
        cluster.create_topic("goes-on", [[1, 2, 3], [2, 3, 1], [3, 1, 2]])
        with Load(cluster.bootstrap, "goes-on", 3) as load:
            before = cluster.view("goes-on")
            lost = cluster.zookeeper.nodes[:2]
            watch = Stopwatch()
            for node in lost:
                node.kill()
            while time.monotonic() < watch.began + QUORUM_SECONDS:
                load.wait_flowing()
                time.sleep(0.2)
            assert load.longest_gap(watch.began) - watch.taken < 2
            assert cluster.view("goes-on") == before, "no election, the same controller, all in sync"
            for node in lost:
                node.launch()
            for node in lost:
                node.wait_ready()
            load.wait_flowing()
            # What needs a commit is possible again, without anybody's help.
            cluster.create_topic("afterwards", [[1, 2, 3]])
            cluster.wait_in_sync("goes-on")
            victim = cluster.leader("goes-on")
            cluster.kill(victim)
            eventually(lambda: cluster.leader("goes-on") not in (victim, -1), 20, "an election again")
            cluster.restart(victim)
            cluster.wait_in_sync("goes-on")
        load.judge()


class Tenant(HeadraceCluster):
    """A cluster below a chroot of an ensemble that it shares."""

    def __init__(self, directory: Path, ensemble: ZooKeeper, chroot: str) -> None:
        super().__init__(directory, 2, {"zookeeper.connect": ensemble.connect + chroot})

    def prepare(self) -> None:
        """The ensemble is there."""

    def conclude(self) -> None:
        """And stays."""


@pytest.fixture
def tenants(tmp_path: Path) -> Iterator[tuple[Tenant, Tenant]]:
    with (
        ZooKeeper(tmp_path / "shared") as ensemble,
        Tenant(tmp_path / "one", ensemble, "/one") as one,
        Tenant(tmp_path / "two", ensemble, "/clusters/two") as two,
    ):
        yield one, two


def test_two_clusters_share_an_ensemble(tenants: tuple[Tenant, Tenant]) -> None:
    one, two = tenants
    one.create_topic("only-in-one", [[1, 2]])
    two.create_topic("both", [[1, 2]])
    one.create_topic("both", [[2, 1]])
    write(one.bootstrap, "both", 10)
    write(two.bootstrap, "both", 20)
    assert not two.view("only-in-one").partitions
    assert read_numbers(one.bootstrap, "both") == list(range(10))
    assert read_numbers(two.bootstrap, "both") == list(range(20))
    before = two.view("both")
    one.kill(1)
    eventually(lambda: one.leader("both") == 2 and 1 not in one.alive(), 20, "one notices")
    assert two.view("both") == before, "the other does not"


def test_fault_29_metadata_is_rebuilt_with_configurations_and_higher_epochs(tmp_path: Path) -> None:
    with HeadraceCluster(tmp_path) as cluster:
        cluster.create_topic("kept", [[1, 2, 3], [2, 3, 1]], {"retention.ms": "7200000"})
        write(cluster.bootstrap, "kept", 500)
        # Some history: leaders have moved, and a topic is gone.
        cluster.kill(1)
        eventually(lambda: cluster.leader("kept") not in (1, -1), 20, "another leads")
        cluster.restart(1)
        cluster.wait_whole()
        cluster.wait_in_sync("kept")
        before = cluster.view("kept").partitions
        for number in cluster.brokers:
            cluster.kill(number)
        (node,) = cluster.zookeeper.nodes
        node.kill()
        shutil.rmtree(node.directory / "data" / "version-2")
        node.launch()
        node.wait_ready()

        # A broker that finds an empty ensemble neither begins a new cluster nor touches what it holds.
        files = sorted(path.name for path in (cluster.brokers[1].log_dir / "kept-0").iterdir())
        cluster.brokers[1].launch()
        assert cluster.wait_ended(1, 60) != 0
        assert "recover-metadata" in cluster.brokers[1].tail()
        assert sorted(path.name for path in (cluster.brokers[1].log_dir / "kept-0").iterdir()) == files

        command = [str(HEADRACE), "cluster", "recover-metadata", "--zookeeper", node.address, "--yes"]
        for broker in cluster.brokers.values():
            command += ["--from", str(broker.log_dir)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        for number in cluster.brokers:
            cluster.restart(number, wait=False)
        cluster.wait_whole()
        cluster.wait_in_sync("kept")
        after = cluster.view("kept").partitions
        assert {key: row.replicas for key, row in after.items()} == {
            key: row.replicas for key, row in before.items()
        }
        assert all(after[key].leader_epoch > row.leader_epoch for key, row in before.items())
        assert read_numbers(cluster.bootstrap, "kept") == list(range(500))
        described = subprocess.run(
            [str(HEADRACE), "topic", "describe", "kept", "--json", "--bootstrap", cluster.bootstrap],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert "7200000" in described.stdout, described.stdout + described.stderr
        cluster.create_topic("new", [[3, 1, 2]])
        write(cluster.bootstrap, "kept", 10, partition=1)
