"""Settings that only a cluster needs: ZooKeeper, the listener between brokers, replication."""

from __future__ import annotations

import pytest

from headrace.config.broker import BrokerConfig
from headrace.config.broker_properties.cluster import LEADER_SELECTOR, RACK_AWARE_SELECTOR
from headrace.config.validation import validate_broker_dynamic
from headrace.config.zookeeper_address import parse_zookeeper_connect
from headrace.core.errors import ConfigError, InvalidRequest

TWO_LISTENERS = {
    "listeners": "OUTSIDE://127.0.0.1:1,INSIDE://127.0.0.1:2",
    "advertised.listeners": "OUTSIDE://broker1:1,INSIDE://10.0.0.1:2",
    "listener.security.protocol.map": "OUTSIDE:PLAINTEXT,INSIDE:PLAINTEXT",
}


def test_a_file_without_zookeeper_is_a_cluster_of_its_own() -> None:
    assert BrokerConfig.parse({}).zookeeper is None
    assert BrokerConfig.parse({"zookeeper.connect": ""}).zookeeper is None
    assert BrokerConfig.parse({}).zookeeper_session_timeout_ms == 6_000


def test_zookeeper_connect_has_servers_and_a_chroot() -> None:
    address = BrokerConfig.parse({"zookeeper.connect": "zk1:2181, zk2:2182/kafka/Cluster1"}).zookeeper
    assert address is not None
    assert address.servers == (("zk1", 2181), ("zk2", 2182))
    assert address.chroot == "/kafka/Cluster1"
    assert address.hosts == "zk1:2181,zk2:2182"
    assert str(address) == "zk1:2181,zk2:2182/kafka/Cluster1"


@pytest.mark.parametrize(
    ("text", "meant"),
    [("zk1", "zk1:2181"), ("zk1:1/", "zk1:1"), ("[::1]:5/a", "[::1]:5/a"), ("zk/a/b/", "zk:2181/a/b")],
)
def test_short_forms_of_zookeeper_connect(text: str, meant: str) -> None:
    assert str(parse_zookeeper_connect(text)) == meant


@pytest.mark.parametrize(
    "text",
    ["zk1:0", "zk1:99999", "zk1:", "zk1:x", "zk1,,zk2", ":2181", "/only", "zk1:1//a", "zk1/..", "a b:1"],
)
def test_wrong_zookeeper_addresses_are_refused_by_name(text: str) -> None:
    with pytest.raises(ConfigError, match=r"zookeeper\.connect"):
        BrokerConfig.parse({"zookeeper.connect": text})


def test_brokers_use_the_first_listener_unless_another_is_named() -> None:
    assert str(BrokerConfig.parse(TWO_LISTENERS).inter_broker_listener) == "OUTSIDE://broker1:1"
    config = BrokerConfig.parse({**TWO_LISTENERS, "inter.broker.listener.name": "inside"})
    assert str(config.inter_broker_listener) == "INSIDE://10.0.0.1:2"


def test_a_listener_between_brokers_that_nobody_is_told_of_is_refused() -> None:
    with pytest.raises(ConfigError, match="use one of OUTSIDE, INSIDE"):
        BrokerConfig.parse({**TWO_LISTENERS, "inter.broker.listener.name": "PLAINTEXT"})


def test_a_fetch_that_waits_longer_than_the_lag_allows_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"replica\.lag\.time\.max\.ms=400"):
        BrokerConfig.parse({"replica.lag.time.max.ms": "400"})
    with pytest.raises(ConfigError, match=r"replica\.socket\.timeout\.ms=400"):
        BrokerConfig.parse({"replica.socket.timeout.ms": "400"})
    BrokerConfig.parse({"replica.lag.time.max.ms": "400", "replica.fetch.wait.max.ms": "100"})


@pytest.mark.parametrize("name", [LEADER_SELECTOR, RACK_AWARE_SELECTOR])
def test_kafkas_selectors_are_known_by_their_class_names(name: str) -> None:
    assert BrokerConfig.parse({"replica.selector.class": name}).replica_selector_class == name
    with pytest.raises(ConfigError, match=r"replica\.selector\.class"):
        BrokerConfig.parse({"replica.selector.class": "com.example.MySelector"})


def test_the_rates_of_replication_change_while_brokers_run() -> None:
    name = "follower.replication.throttled.rate"
    for for_one_broker in (True, False):
        validate_broker_dynamic({name: "1000000"}, for_one_broker=for_one_broker)
    with pytest.raises(InvalidRequest, match="the least is 0"):
        validate_broker_dynamic({name: "-1"}, for_one_broker=True)
    config = BrokerConfig.parse({})
    assert config.with_dynamic({}, {name: "5"}).follower_replication_throttled_rate == 5
    assert config.with_dynamic({name: "6"}, {}).follower_replication_throttled_rate == 6


def test_the_old_name_of_controlled_shutdown_still_counts() -> None:
    config = BrokerConfig.parse({"controlled.shutdown.enabled": "false", "log.dirs": "/data"})
    assert not config.controlled_shutdown_enable
    assert config.warnings == ()


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"group.consumer.session.timeout.ms": "44999"}, "session.timeout.ms=44999 is not between"),
        ({"group.consumer.heartbeat.interval.ms": "15001"}, "heartbeat.interval.ms=15001 is not between"),
        ({"group.consumer.assignment.interval.ms": "15001"}, "assignment.interval.ms=15001 is not between"),
        (
            {"group.consumer.session.timeout.ms": "5000", "group.consumer.min.session.timeout.ms": "1"},
            "every member would be taken for dead",
        ),
    ],
)
def test_times_of_consumer_groups_must_fit_together(given: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        BrokerConfig.parse(given)
