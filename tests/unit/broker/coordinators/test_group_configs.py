"""The settings of groups follow the metadata, and what is set for all groups."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from headrace.broker.coordinators.group_configs import GroupConfigs
from headrace.config.broker import BrokerConfig
from headrace.controller.delta import MetadataDelta
from headrace.controller.image import ConfigResource, MetadataImage, ResourceType
from headrace.groups.group_config import GroupConfig

GROUP = ConfigResource(ResourceType.GROUP, "g")
HEARTBEAT, INTERVAL = "consumer.heartbeat.interval.ms", "consumer.assignment.interval.ms"


class Broker:
    def __init__(self, *stored: tuple[ConfigResource, str, str]) -> None:
        self.image = MetadataImage()
        runtime: Any = SimpleNamespace(config=BrokerConfig.parse({}))
        self.runtime = runtime
        metadata: Any = SimpleNamespace(image=self.image)
        for resource, name, value in stored:
            self.image.set_config(resource, name, value)
        self.configs = GroupConfigs(runtime, metadata)

    def set(self, name: str, value: str | None, resource: ConfigResource = GROUP) -> None:
        self.image.set_config(resource, name, value)
        delta = MetadataDelta()
        delta.configs.add(resource)
        self.configs.on_delta(delta)


def test_what_is_stored_at_the_start_holds() -> None:
    topic = ConfigResource(ResourceType.TOPIC, "t")
    broker = Broker((GROUP, HEARTBEAT, "7000"), (topic, "retention.ms", "1"))
    assert list(broker.configs.own) == ["g"]
    assert broker.configs.own["g"] == GroupConfig(group_consumer_heartbeat_interval_ms=7_000)


def test_a_change_is_followed_until_nothing_is_left() -> None:
    broker = Broker()
    own = broker.configs.own
    broker.set(HEARTBEAT, "7000")
    broker.set(INTERVAL, "9")
    assert own["g"].group_consumer_heartbeat_interval_ms == 7_000
    assert own["g"].group_consumer_assignment_interval_ms == 9
    broker.set(HEARTBEAT, None)
    assert own["g"] == GroupConfig(group_consumer_assignment_interval_ms=9)
    broker.set(INTERVAL, None)
    assert own == {}
    assert broker.configs.own is own, "shards keep this very table"


def test_others_are_none_of_its_business() -> None:
    broker = Broker()
    broker.set("log.retention.ms", "1", ConfigResource(ResourceType.BROKER, ""))
    assert broker.configs.own == {}


def test_what_a_group_has_not_set_follows_the_broker() -> None:
    broker = Broker((GROUP, HEARTBEAT, "7000"))
    broker.runtime.config = broker.runtime.config.with_dynamic(
        {"group.consumer.assignment.interval.ms": "3"}, {}
    )
    broker.configs.on_config_changed()
    assert broker.configs.own["g"] == GroupConfig(
        group_consumer_heartbeat_interval_ms=7_000, group_consumer_assignment_interval_ms=3
    )
