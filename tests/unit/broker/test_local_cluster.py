"""What each of several brokers is told, worked out from one description."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from headrace.broker.process.local_cluster import host_properties, local_ports, local_properties
from headrace.config.broker import BrokerConfig
from headrace.core.errors import ConfigError

BASE = {
    "broker.id": "100",
    "listeners": "PLAINTEXT://10.0.0.5:9092",
    "log.dirs": "/disk1,/disk2",
    "zookeeper.connect": "zk1:2181/c",
}


def test_brokers_of_a_host_count_up_from_the_first() -> None:
    first, second, third = map(BrokerConfig.parse, host_properties(BASE, 3, "host7"))
    assert [config.broker_id for config in (first, second, third)] == [100, 101, 102]
    assert [str(config.bound_listeners[0]) for config in (first, second)] == [
        "PLAINTEXT://10.0.0.5:9092",
        "PLAINTEXT://10.0.0.5:9093",
    ]
    assert second.data_directories == ("/disk1/broker-101", "/disk2/broker-101")
    assert {config.broker_rack for config in (first, second, third)} == {"host7"}
    assert str(third.zookeeper) == "zk1:2181/c"
    assert third.metrics is None


def test_what_clients_are_told_and_the_metrics_count_up_too() -> None:
    properties = {
        **BASE,
        "listeners": "PLAINTEXT://0.0.0.0:9092",
        "advertised.listeners": "PLAINTEXT://host7:19092",
        "headrace.metrics.listener": "127.0.0.1:9404",
        "broker.rack": "row-3",
    }
    _, second = map(BrokerConfig.parse, host_properties(properties, 2, "host7"))
    assert str(second.advertised[0]) == "PLAINTEXT://host7:19093"
    assert second.metrics is not None
    assert second.metrics.address == "http://127.0.0.1:9405"
    assert second.broker_rack == "row-3"


def test_old_names_are_derived_as_well() -> None:
    old = {"node.id": "5", "port": "9000", "log.dir": "/data", "zookeeper.connect": "zk"}
    _, second = map(BrokerConfig.parse, host_properties(old, 2, "h"))
    assert second.broker_id == 6
    assert second.bound_listeners[0].port == 9001
    assert second.data_directories == ("/data/broker-6",)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"zookeeper.connect": ""}, r"zookeeper\.connect is not set"),
        ({"listeners": "PLAINTEXT://:0"}, "port 0"),
        ({"listeners": "PLAINTEXT://:65534"}, "no room"),
        (
            {
                "listeners": "A://127.0.0.1:9092,B://127.0.0.1:9094",
                "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT",
            },
            "at least 3 apart",
        ),
    ],
)
def test_a_file_that_cannot_be_multiplied_is_refused(change: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        host_properties({**BASE, **change}, 3, "h")


def test_a_host_of_several_brokers_needs_an_id_to_count_from() -> None:
    without = {name: text for name, text in BASE.items() if name != "broker.id"}
    with pytest.raises(ConfigError, match=r"broker\.id is not set"):
        host_properties(without, 2, "h")
    (only,) = host_properties(without, 1, "h")
    assert only["broker.id"] == "0"


def test_a_local_cluster_keeps_three_copies_and_deals_racks() -> None:
    given = local_properties(Path("/d"), [1, 2, 3, 4], "zk:1", ["a", "b"])
    configs = [BrokerConfig.parse(properties) for properties in given]
    assert [config.broker_rack for config in configs] == ["a", "b", "a", "b"]
    assert {config.default_replication_factor for config in configs} == {3}
    assert {config.min_insync_replicas for config in configs} == {2}
    assert configs[1].data_directories == ("/d/broker-2",)
    two = BrokerConfig.parse(local_properties(Path("/d"), [1, 2], "zk:1")[0])
    assert (two.default_replication_factor, two.min_insync_replicas) == (2, 1)


def test_ports_count_up_or_are_free() -> None:
    assert local_ports(9092, 3) == [9092, 9093, 9094]
    with pytest.raises(ConfigError, match="no room"):
        local_ports(65535, 2)
    ports = local_ports(0, 3)
    assert len(set(ports)) == 3
    for port in ports:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
