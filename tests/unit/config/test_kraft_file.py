"""Files of Kafka's KRaft mode: who names other brokers in them does not get a cluster of its own unasked."""

from __future__ import annotations

import pytest

from headrace.config.broker import BrokerConfig
from headrace.core.errors import ConfigError

FILE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "advertised.listeners": "PLAINTEXT://kafka1:9092,CONTROLLER://kafka1:9093",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "log.dirs": "/data",
}
VOTERS, BOOTSTRAP = "controller.quorum.voters", "controller.quorum.bootstrap.servers"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (VOTERS, "1@kafka1:9093,2@kafka2:9093,3@kafka3:9093"),
        (VOTERS, "7@kafka7:9093"),
        (BOOTSTRAP, "kafka1:9093,kafka2:9093"),
        (BOOTSTRAP, "kafka2:9093"),
        (BOOTSTRAP, "localhost:9193"),
    ],
)
def test_a_quorum_of_others_is_refused_without_a_zookeeper(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"{name}=.*set zookeeper.connect.*or remove {name}"):
        BrokerConfig.parse({**FILE, name: value})
    assert BrokerConfig.parse({**FILE, name: value, "zookeeper.connect": "zk:2181"}).zookeeper is not None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (VOTERS, "1@localhost:9093"),
        (VOTERS, " 1@kafka1:9093 , "),
        (BOOTSTRAP, "localhost:9093"),
        (BOOTSTRAP, "127.0.0.1:9093"),
        (BOOTSTRAP, "kafka1:9093"),
    ],
)
def test_a_quorum_of_this_broker_alone_is_that_and_said_so(name: str, value: str) -> None:
    warnings = BrokerConfig.parse({**FILE, name: value}).warnings
    assert any(warning.startswith(f"{name} names this broker alone") for warning in warnings)


def test_a_broker_whose_controller_is_another_process_is_refused() -> None:
    apart = {**FILE, "process.roles": "broker", "listeners": "PLAINTEXT://:9092"}
    del apart["advertised.listeners"]
    with pytest.raises(ConfigError, match="set zookeeper"):
        BrokerConfig.parse({**apart, BOOTSTRAP: "localhost:9093"})


def test_no_quorum_is_nothing_to_speak_of() -> None:
    assert not any("quorum" in warning for warning in BrokerConfig.parse({**FILE, VOTERS: ""}).warnings[1:])
