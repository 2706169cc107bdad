"""Brokers that come, go, come back and move their replicas, under load."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.cluster.equipped import RACKS, EquippedCluster
from tests.cluster.load import Load, read, read_numbers, write
from tests.cluster_process import eventually
from tests.host import Stopwatch

pytestmark = pytest.mark.timeout(180)

CLEAN_EXIT = 0
EVERYWHERE = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EquippedCluster]:
    properties = {
        "min.insync.replicas": "2",
        "leader.imbalance.check.interval.seconds": "1",
        "replica.selector.class": RACK_AWARE,
    }
    with EquippedCluster(tmp_path_factory.mktemp("cluster"), 3, properties) as running:
        yield running


def stop_and_start(cluster: EquippedCluster, number: int) -> None:
    cluster.terminate(number)
    assert cluster.wait_ended(number, 60) == CLEAN_EXIT
    cluster.restart(number)
    cluster.wait_whole()


def test_a_broker_that_is_asked_to_stop_costs_no_write(cluster: EquippedCluster) -> None:
    cluster.create_topic("stopped", EVERYWHERE)
    with Load(cluster.bootstrap, "stopped", 3) as load:
        watch = Stopwatch()
        cluster.terminate(1)
        assert cluster.wait_ended(1, 60) == CLEAN_EXIT
        load.wait_flowing()
        assert all(row.leader in (2, 3) for row in cluster.view("stopped").partitions.values())
        cluster.restart(1)
        cluster.wait_in_sync("stopped")
        load.wait_flowing()
    load.judge()
    assert load.longest_gap(watch.began) - watch.taken < 5


def test_fault_23_a_rolling_restart_costs_no_write(cluster: EquippedCluster) -> None:
    """As the guide tells an operator: one broker after the other, each only when all is in sync again."""
    cluster.create_topic("rolling", EVERYWHERE)
    with Load(cluster.bootstrap, "rolling", 3) as load:
        for number in (1, 2, 3):
            stop_and_start(cluster, number)
            cluster.wait_in_sync("rolling")
            load.wait_flowing()
    load.judge()


def test_preferred_leaders_come_back_by_themselves(cluster: EquippedCluster) -> None:
    cluster.create_topic("preferring", EVERYWHERE)
    stop_and_start(cluster, 2)
    eventually(
        lambda: [cluster.leader("preferring", index) for index in range(3)] == [1, 2, 3],
        20,
        "the first replica of each partition leads it",
    )


def test_a_broker_is_added_filled_drained_and_retired(cluster: EquippedCluster) -> None:
    cluster.create_topic("spread", EVERYWHERE * 2)
    with Load(cluster.bootstrap, "spread", 6) as load:
        cluster.add(4)
        cluster.headrace("topic", "reassign", "spread", "--brokers", "1,2,3,4")
        rows = cluster.view("spread").partitions.values()
        assert any(4 in row.replicas for row in rows)
        assert all(set(row.isr) == set(row.replicas) for row in rows)
        load.wait_flowing()

        cluster.headrace("cluster", "drain", "4")
        assert not any(4 in row.replicas for row in cluster.view("spread").partitions.values())
        cluster.terminate(4)
        assert cluster.wait_ended(4, 60) == CLEAN_EXIT
        eventually(lambda: 4 not in cluster.alive(), 20, "broker 4 has left")
        cluster.headrace("cluster", "unregister", "4")
        cluster.forget(4)
        known = json.loads(cluster.headrace("cluster", "status", "--json"))
        assert [broker["id"] for broker in known["brokers"]] == [1, 2, 3]
        load.wait_flowing()
    load.judge()


def test_replicas_go_to_different_racks(cluster: EquippedCluster) -> None:
    cluster.add(4)  # in the rack of broker 1
    try:
        cluster.headrace("topic", "create", "racked", "--partitions", "12", "--replication-factor", "3")
        rows = list(cluster.view("racked").partitions.values())
        assert len(rows) == 12
        for row in rows:
            assert {RACKS[replica] for replica in row.replicas} == {"a", "b", "c"}
        leaders = [row.leader for row in rows]
        assert max(map(leaders.count, (1, 2, 3, 4))) - min(map(leaders.count, (1, 2, 3, 4))) <= 1
        cluster.headrace("topic", "delete", "racked")
    finally:
        cluster.terminate(4)
        cluster.wait_ended(4, 60)
        eventually(lambda: 4 not in cluster.alive(), 20, "broker 4 has left")
        cluster.headrace("cluster", "unregister", "4")
        cluster.forget(4)


def test_a_consumer_reads_from_the_follower_in_its_rack(cluster: EquippedCluster) -> None:
    cluster.create_topic("near", [[1, 2, 3]])
    write(cluster.bootstrap, "near", 1000)

    def sent(number: int) -> float:
        return cluster.metric(number, "kafka_server_brokertopicmetrics_bytesout_total", topic="near")

    before = {number: sent(number) for number in (1, 2, 3)}
    found = read(cluster.bootstrap, "near", settings={"client.rack": "c", "fetch.message.max.bytes": 10_000})
    assert len(found) == 1000
    grown = {number: sent(number) - before[number] for number in (1, 2, 3)}
    assert grown[3] > 900_000, grown
    assert grown[1] < 100_000, grown
    assert grown[2] == 0, grown


def test_fault_21_a_topic_made_again_while_a_broker_is_down_has_no_old_data(
    cluster: EquippedCluster,
) -> None:
    cluster.create_topic("again", EVERYWHERE)
    for partition in range(3):
        write(cluster.bootstrap, "again", 100, partition=partition)
    cluster.kill(3)
    eventually(lambda: 3 not in cluster.alive(), 20, "broker 3 is fenced")
    cluster.headrace("topic", "delete", "again")
    cluster.headrace("topic", "create", "again", "--partitions", "3", "--replication-factor", "2")
    write(cluster.bootstrap, "again", 7)
    cluster.restart(3)
    cluster.wait_whole()
    cluster.headrace("topic", "reassign", "again", "--brokers", "1,2,3", "--replication-factor", "3")
    cluster.wait_in_sync("again")
    # Broker 3 leads what it can: what it serves must be of the new topic.
    cluster.kill(1)
    eventually(lambda: 1 not in cluster.alive(), 20, "broker 1 is fenced")
    assert [len(read_numbers(cluster.bootstrap, "again", index)) for index in range(3)] == [7, 0, 0]
    cluster.restart(1)
    cluster.wait_whole()


def test_unclean_elections_are_made_where_a_topic_allows_them(cluster: EquippedCluster) -> None:
    cluster.create_topic("dares", [[1, 2]], {"min.insync.replicas": "1"})
    cluster.create_topic("waits", [[1, 2]], {"min.insync.replicas": "1"})
    cluster.kill(2)
    eventually(lambda: cluster.partition("waits").isr == (1,), 20, "only 1 is in sync")
    eventually(lambda: cluster.partition("dares").isr == (1,), 20, "only 1 is in sync")
    for topic in ("dares", "waits"):
        write(cluster.bootstrap, topic, 10)
    cluster.kill(1)
    cluster.restart(2)
    eventually(lambda: cluster.leader("waits") == -1, 20, "nobody leads")
    cluster.headrace("config", "set", "--topic", "dares", "unclean.leader.election.enable=true")
    eventually(lambda: cluster.leader("dares") == 2, 20, "2 leads without what 1 has")
    assert cluster.leader("waits") == -1
    cluster.restart(1)
    cluster.wait_whole()
    cluster.wait_in_sync("waits")
    cluster.wait_in_sync("dares")
    assert len(read_numbers(cluster.bootstrap, "waits")) == 10
    assert read_numbers(cluster.bootstrap, "dares") == []


def test_synced_writes_are_synced_on_every_replica(cluster: EquippedCluster) -> None:
    cluster.create_topic("synced", [[1, 2, 3]], {"flush.messages": "1"})

    def syncs(number: int) -> float:
        return cluster.metric(number, "kafka_log_logflushstats_logflushrateandtimems_count")

    before = {number: syncs(number) for number in (1, 2, 3)}
    for _ in range(20):
        write(cluster.bootstrap, "synced", 1)
    grown = {number: syncs(number) - before[number] for number in (1, 2, 3)}
    assert all(count >= 20 for count in grown.values()), grown
    cluster.create_topic("all-killed", [[1, 2, 3]], {"flush.messages": "1"})
    with Load(cluster.bootstrap, "all-killed", rate=100) as load:
        for number in (1, 2, 3):
            cluster.kill(number)
        for number in (1, 2, 3):
            cluster.restart(number, wait=False)
        cluster.wait_whole()
        load.wait_flowing(60)
    load.judge()


def test_fault_8_a_dead_log_directory_takes_only_its_own_partitions_along(cluster: EquippedCluster) -> None:
    # A new segment every half second: whatever creates a file finds out that it may not.
    cluster.create_topic("halved", [[1, 2, 3]] * 6, {"segment.ms": "500"})
    second = cluster.log_dirs(1)[1]
    there = {int(path.name.rpartition("-")[2]) for path in second.glob("halved-*")}
    assert 0 < len(there) < 6, "replicas are spread over the directories"
    denied = [second, *second.glob("halved-*")]
    with Load(cluster.bootstrap, "halved", 6) as load:
        for path in denied:
            path.chmod(0o500)
        try:
            eventually(
                lambda: all(
                    (row.leader != 1) == (index in there)
                    for (_, index), row in cluster.view("halved").partitions.items()
                ),
                30,
                "broker 1 leads only what is in its first directory",
            )
            load.wait_flowing()
            assert cluster.brokers[1].running
        finally:
            for path in denied:
                path.chmod(0o700)
        stop_and_start(cluster, 1)
        cluster.wait_in_sync("halved")
    load.judge()
