"""Nodes in ZooKeeper that no broker has made: an operator's mistake, another program's, a tool's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from tests.cluster_process import HeadraceCluster, eventually

pytestmark = pytest.mark.timeout(300)


@contextmanager
def zookeeper_client(cluster: HeadraceCluster) -> Iterator[Any]:
    client = KazooClient(cluster.zookeeper.connect)
    client.start(timeout=60)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def said(cluster: HeadraceCluster, words: str) -> list[str]:
    lines = [line for each in cluster.brokers.values() for line in each.output.read_text().splitlines()]
    return [line for line in lines if words in line]


def test_fault_38_strange_nodes_end_no_fencing(tmp_path: Path) -> None:
    with HeadraceCluster(tmp_path, properties={"auto.leader.rebalance.enable": "false"}) as cluster:
        cluster.create_topic("orders", [[1, 2, 3], [2, 3, 1], [3, 1, 2]])
        with zookeeper_client(cluster) as client:
            client.create("/brokers/ids/not-a-number", b"{}")
            client.create("/brokers/ids/1_0", b"{}")
            client.create("/brokers/ids/77", b"\xff garbage")
            client.create("/metadata/log/not-a-number", b"")
            eventually(lambda: said(cluster, "registration refused"), 60, "the garbage is refused")
            for victim in (next(each for each in cluster.brokers if each != cluster.view().controller), None):
                lost = cluster.view().controller if victim is None else victim
                cluster.kill(lost)
                others = set(cluster.brokers) - {lost}
                eventually(
                    lambda others=others: cluster.alive() == others,  # type: ignore[misc]  # default binds
                    60,
                    f"broker {lost} is fenced",
                )
                eventually(
                    lambda lost=lost: all(  # type: ignore[misc]  # default binds
                        row.leader not in (lost, -1) for row in cluster.view("orders").partitions.values()
                    ),
                    60,
                    f"what broker {lost} led has another leader",
                )
                cluster.restart(lost)
                cluster.wait_whole(60)
                cluster.wait_in_sync("orders")
        assert said(cluster, "not-a-number"), "a line names the strange node"
