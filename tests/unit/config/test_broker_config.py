from __future__ import annotations

import pytest

from headrace.config.broker import BrokerConfig
from headrace.config.listeners import Listener
from headrace.core.errors import ConfigError


def bound(**properties: str) -> list[str]:
    return [str(listener) for listener in parse(**properties).bound_listeners]


def parse(**properties: str) -> BrokerConfig:
    return BrokerConfig.parse({name.replace("_", "."): text for name, text in properties.items()})


def test_nothing_set_is_a_broker_on_the_loopback_address() -> None:
    config = BrokerConfig.parse({})
    assert config.bound_listeners == (Listener("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092),)
    assert config.advertised == config.bound_listeners
    assert config.broker_id == config.node_id == 0
    assert config.metrics is None


def test_an_empty_host_is_loopback_and_not_every_address() -> None:
    assert bound(listeners="PLAINTEXT://:9192") == ["PLAINTEXT://127.0.0.1:9192"]


def test_every_address_must_be_written_out_and_is_said_at_the_start() -> None:
    config = parse(listeners="PLAINTEXT://0.0.0.0:9092", advertised_listeners="PLAINTEXT://broker1:9092")
    assert config.bound_listeners[0].host == "0.0.0.0"
    assert any("reachable from outside" in warning for warning in config.warnings)
    quiet = parse(listeners="PLAINTEXT://localhost:9092", log_dirs="/data")
    assert quiet.warnings == ()


def test_every_address_without_an_advertised_one_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"advertised\.listeners"):
        parse(listeners="PLAINTEXT://0.0.0.0:9092")
    with pytest.raises(ConfigError, match="no client can dial"):
        parse(listeners="PLAINTEXT://0.0.0.0:9092", advertised_listeners="PLAINTEXT://0.0.0.0:9092")


def test_old_port_and_host_name_make_a_listener() -> None:
    assert bound(port="9193") == ["PLAINTEXT://127.0.0.1:9193"]
    assert bound(host_name="10.0.0.5") == ["PLAINTEXT://10.0.0.5:9092"]
    assert bound(host_name="10.0.0.5", port="9193") == ["PLAINTEXT://10.0.0.5:9193"]
    assert bound(port="9193", listeners="PLAINTEXT://:9194") == ["PLAINTEXT://127.0.0.1:9194"]


def test_old_advertised_names_make_an_advertised_listener() -> None:
    config = BrokerConfig.parse({"advertised.host.name": "broker1", "advertised.port": "9999"})
    assert [str(listener) for listener in config.advertised] == ["PLAINTEXT://broker1:9999"]


def test_addresses_of_the_sixth_version() -> None:
    config = parse(listeners="PLAINTEXT://[::1]:9092")
    assert config.bound_listeners[0] == Listener("PLAINTEXT", "PLAINTEXT", "::1", 9092)
    assert config.bound_listeners[0].is_loopback
    assert str(config.bound_listeners[0]) == "PLAINTEXT://[::1]:9092"


def test_named_listeners_take_their_protocol_from_the_map() -> None:
    config = BrokerConfig.parse(
        {
            "listeners": "INSIDE://127.0.0.1:1,OUTSIDE://127.0.0.2:2",
            "advertised.listeners": "OUTSIDE://example:2",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT, OUTSIDE:PLAINTEXT",
        }
    )
    assert [listener.name for listener in config.bound_listeners] == ["INSIDE", "OUTSIDE"]
    assert [str(listener) for listener in config.advertised] == ["OUTSIDE://example:2"]


def test_listeners_of_kafkas_controllers_are_not_opened() -> None:
    config = BrokerConfig.parse(
        {
            "process.roles": "broker,controller",
            "node.id": "3",
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        }
    )
    assert [listener.name for listener in config.bound_listeners] == ["PLAINTEXT"]
    assert config.broker_id == 3


@pytest.mark.parametrize(
    ("listeners", "complaint"),
    [
        ("PLAINTEXT://9092", "NAME://host:port"),
        ("127.0.0.1:9092", "NAME://host:port"),
        ("PLAINTEXT://:99999", "0 to 65535"),
        ("PLAINTEXT://:-1", "0 to 65535"),
        ("SSL://:9093", "has no certificate"),
        ("INSIDE://:9093", "INSIDE:SSL"),
        ("PLAINTEXT://:1,PLAINTEXT://:2", "name of its own"),
        ("", "at least one address"),
    ],
)
def test_wrong_listeners_are_refused_with_what_to_do(listeners: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        parse(listeners=listeners)


def test_two_listeners_on_one_port_are_refused_but_two_free_ports_are_not() -> None:
    protocols = {"listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT"}
    with pytest.raises(ConfigError, match="same port 5"):
        BrokerConfig.parse({"listeners": "A://:5,B://:5", **protocols})
    assert len(BrokerConfig.parse({"listeners": "A://:0,B://:0", **protocols}).bound_listeners) == 2


def test_an_advertised_listener_that_is_not_bound_is_refused() -> None:
    with pytest.raises(ConfigError, match="listeners has no OTHER"):
        BrokerConfig.parse(
            {
                "advertised.listeners": "OTHER://h:1",
                "listener.security.protocol.map": "OTHER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            }
        )


@pytest.mark.parametrize("text", ["PLAINTEXT", "A:TLS", ":"])
def test_wrong_protocol_maps_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"listener\.security\.protocol\.map"):
        BrokerConfig.parse({"listener.security.protocol.map": text})


def test_broker_id_and_node_id_are_one_property() -> None:
    for name in ("broker.id", "node.id"):
        config = BrokerConfig.parse({name: "5"})
        assert config.broker_id == config.node_id == 5
        assert config.given["broker.id"] == config.given["node.id"] == "5"
    with pytest.raises(ConfigError, match="differ"):
        BrokerConfig.parse({"broker.id": "5", "node.id": "6"})


def test_log_dirs_is_stronger_than_log_dir() -> None:
    assert BrokerConfig.parse({"log.dir": "/a"}).data_directories == ("/a",)
    assert BrokerConfig.parse({"log.dir": "/a", "log.dirs": "/b, /c"}).data_directories == ("/b", "/c")
    with pytest.raises(ConfigError, match="twice"):
        BrokerConfig.parse({"log.dirs": "/b,/b"})
    for empty in ("", "/a,,/b"):
        with pytest.raises(ConfigError, match="at least one directory"):
            BrokerConfig.parse({"log.dirs": empty})


def test_the_default_directory_is_warned_of() -> None:
    assert "may empty at boot" in BrokerConfig.parse({}).warnings[0]
    assert BrokerConfig.parse({"log.dir": "/data"}).warnings == ()


def test_segment_ms_at_the_broker_is_an_alias_of_roll_ms() -> None:
    config = BrokerConfig.parse({"log.segment.ms": "1234"})
    assert config.log_roll_ms == config["log.roll.ms"] == config["log.segment.ms"] == 1234
    both = BrokerConfig.parse({"log.segment.ms": "1234", "log.roll.ms": "99"})
    assert both.log_roll_ms == 99
    assert any("log.segment.ms is another name of log.roll.ms" in warning for warning in both.warnings)


def test_the_old_spelling_of_controlled_shutdown_is_taken() -> None:
    assert BrokerConfig.parse({"controlled.shutdown.enabled": "false"}).controlled_shutdown_enable is False


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("log.retention.hour", "log.retention.hours"),
        ("log.retension.hours", "log.retention.hours"),
        ("advertised.listener", "advertised.listeners"),
    ],
)
def test_an_unknown_property_is_ignored_with_the_nearest_name(wrong: str, meant: str) -> None:
    config = BrokerConfig.parse({wrong: "1", "log.dir": "/data"})
    assert config.warnings == (f"unknown property {wrong} is ignored; did you mean {meant}?",)
    assert BrokerConfig.parse({"zz": "1", "log.dir": "/d"}).warnings == ("unknown property zz is ignored",)


def test_metrics_listener() -> None:
    for text, address in ((":9404", "http://127.0.0.1:9404"), ("[::1]:0", "http://[::1]:0")):
        metrics = BrokerConfig.parse({"headrace.metrics.listener": text}).metrics
        assert metrics is not None
        assert metrics.address == address
    with pytest.raises(ConfigError, match=r"127\.0\.0\.1:9404"):
        BrokerConfig.parse({"headrace.metrics.listener": "9404"})


def test_rules_over_two_properties() -> None:
    with pytest.raises(ConfigError, match=r"socket\.request\.max\.bytes"):
        BrokerConfig.parse({"queued.max.request.bytes": "10"})
    BrokerConfig.parse({"queued.max.request.bytes": "10", "socket.request.max.bytes": "10"})
    with pytest.raises(ConfigError, match="compaction"):
        BrokerConfig.parse(
            {"log.cleaner.min.compaction.lag.ms": "2", "log.cleaner.max.compaction.lag.ms": "1"}
        )


@pytest.mark.parametrize("name", ["log.retention.ms", "log.retention.minutes", "log.retention.hours"])
def test_retention_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="no limit"):
        BrokerConfig.parse({name: "0"})
    assert BrokerConfig.parse({name: "-1"})[name] == -1


@pytest.mark.parametrize("name", ["socket.send.buffer.bytes", "socket.receive.buffer.bytes"])
def test_socket_buffers_are_sizes_or_minus_one(name: str) -> None:
    assert BrokerConfig.parse({name: "-1"})[name] == -1
    for wrong in ("0", "-2"):
        with pytest.raises(ConfigError, match="bytes"):
            BrokerConfig.parse({name: wrong})


def test_a_config_does_not_change() -> None:
    config = BrokerConfig.parse({})
    with pytest.raises(AttributeError):
        config.num_partitions = 5
    assert config.num_partitions == 1


def test_dynamic_settings_lie_above_the_file_and_leave_it_alone() -> None:
    config = BrokerConfig.parse({"log.segment.bytes": "3000000"})
    changed = config.with_dynamic(
        {"log.segment.bytes": "4000000", "message.max.bytes": "7"}, {"log.segment.bytes": "5000000"}
    )
    assert (changed.log_segment_bytes, changed.message_max_bytes) == (5_000_000, 7)
    assert (config.log_segment_bytes, config.message_max_bytes) == (3_000_000, 1_048_588)


def test_stored_settings_that_make_no_sense_are_passed_over() -> None:
    config = BrokerConfig.parse({}).with_dynamic(
        {"log.segment.bytes": "x", "num.partitions": "9", "nobody.knows": "1"}, {"message.max.bytes": "-3"}
    )
    assert (config.log_segment_bytes, config.num_partitions) == (1 << 30, 1)
    assert config.message_max_bytes == 1_048_588
