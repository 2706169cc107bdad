"""Self-balancing on real brokers: a fourth one comes, under load, and takes its share. Nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.equipped import EquippedCluster, WithoutRacks
from tests.cluster.load import Load, read_numbers, write
from tests.cluster_process import eventually

PARTITIONS, LARGE = 16, 8
"""Of one topic that is written to meanwhile, and of one that holds more."""
RECORDS = 400
SETTINGS = {
    "headrace.balance.interval.ms": "300",
    "headrace.balance.max.moves": "3",
    "headrace.balance.bytes.per.second": "5000000",
    "headrace.balance.min.bytes": "0",
    # Of a few records a second there is no even rate: the model has that.
    "headrace.balance.min.bytes.per.second": "1000000000",
    # The disk of the machine that runs this may be as full as it likes.
    "headrace.balance.max.disk.percent": "100",
}

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EquippedCluster]:
    with WithoutRacks(tmp_path / "cluster", properties=SETTINGS) as running:
        yield running


def balance(cluster: EquippedCluster, *options: str) -> dict[str, Any]:
    told = cluster.headrace("cluster", "balance", "--look", "0", "--json", *options)
    found: dict[str, Any] = json.loads(told)
    return found


def turn(cluster: EquippedCluster, on: bool) -> None:
    value = f"headrace.balance.enable={str(on).lower()}"
    cluster.headrace("config", "set", "--broker-default", value)


def test_a_new_broker_gets_its_share_under_load(cluster: EquippedCluster) -> None:
    # Everything is led by broker 1, and broker 3 holds nothing.
    cluster.create_topic("skewed", [[1, 2]] * PARTITIONS)
    cluster.create_topic("large", [[1, 2]] * LARGE)
    for partition in range(LARGE):
        write(cluster.bootstrap, "large", RECORDS, partition=partition)
    cluster.add(4)

    before = balance(cluster, "--dry-run")
    assert not before["enabled"]
    assert before["hindrance"] is None
    assert len(before["sets"][0]) == 3
    assert {each["broker"] for each in before["uneven"]} >= {1, 3, 4}

    with Load(cluster.bootstrap, "skewed", PARTITIONS, rate=100) as load:
        load.wait_flowing()
        turn(cluster, True)
        eventually(lambda: balance(cluster)["uneven"] == [], 240, "the brokers are even")
        after = balance(cluster, "--dry-run")
        load.wait_flowing()
    replicas = {each["id"]: each["replicas"] for each in after["brokers"]}
    assert set(replicas) == {1, 2, 3, 4}
    assert all(11 <= count <= 13 for count in replicas.values()), replicas
    assert after["sets"] == [], "a plan for an even cluster is empty"
    assert any("from broker" in each["what"] for each in after["decisions"])
    load.judge()
    for partition in range(LARGE):
        assert read_numbers(cluster.bootstrap, "large", partition) == list(range(RECORDS))
    # What has arrived is not throttled any more, and no setting is left behind.
    eventually(
        lambda: "headrace.balance" not in cluster.headrace("config", "list", "--topic", "skewed"),
        30,
        "the topic's setting goes",
    )

    cluster.brokers[4].stop()
    eventually(
        lambda: "broker 4 is down" in balance(cluster)["decisions"][-1]["why"],
        60,
        "it says why it does nothing",
    )
    assert "self-balancing: nothing, because broker 4 is down" in cluster.headrace("cluster", "status")
