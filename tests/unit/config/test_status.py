"""A property that is called active is read by somebody."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import headrace
from headrace.config.broker import BROKER_PROPERTIES
from headrace.config.property import Property, Status
from headrace.config.topic_properties import TOPIC_PROPERTIES

# Worked out inside the package itself: others read bound_listeners, advertised, inter_broker_listener,
# broker_listeners, zookeeper, zookeeper_security, data_directories and metrics, or the topic property that a
# broker property is the default of.
WORKED_OUT_HERE = {
    "advertised.host.name",
    "advertised.listeners",
    "advertised.port",
    "broker.id",
    "controller.listener.names",
    "group.consumer.max.assignment.interval.ms",
    "group.consumer.max.heartbeat.interval.ms",
    "group.consumer.max.session.timeout.ms",
    "group.consumer.min.assignment.interval.ms",
    "group.consumer.min.heartbeat.interval.ms",
    "group.consumer.min.session.timeout.ms",
    "headrace.inter.broker.accepted.listeners",
    "headrace.metrics.authentication",
    "headrace.metrics.listener",
    "headrace.metrics.token.file",
    "host.name",
    "inter.broker.listener.name",
    "internal.segment.bytes",
    "listener.security.protocol.map",
    "listeners",
    "log.dir",
    "log.dirs",
    "node.id",
    "port",
    "process.roles",
    "remote.log.delete.on.disable",
    "zookeeper.connect",
    *(name for name in BROKER_PROPERTIES if name.startswith(("zookeeper.ssl.", "headrace.zookeeper."))),
    "zookeeper.set.acl",
}
# Of a listener: others read `security_of(listener)`.
OF_A_LISTENER = {name for name in BROKER_PROPERTIES if name.startswith(("ssl.", "sasl.", "security."))} | {
    "connections.max.reauth.ms",
    "headrace.oauthbearer.allowed.directory",
}
# Read by a name that is put together.
BY_CODEC = {"compression.gzip.level", "compression.lz4.level", "compression.zstd.level"}

ACTIVE = [
    declared
    for declared in [*TOPIC_PROPERTIES.values(), *BROKER_PROPERTIES.values()]
    if declared.status is Status.ACTIVE
    and declared.topic_name is None
    and declared.name not in WORKED_OUT_HERE | OF_A_LISTENER | BY_CODEC
]


@pytest.fixture(scope="module")
def words() -> set[str]:
    """Attributes, and names in quotes: the controller reads settings by their names."""
    root = Path(headrace.__file__).parent
    skipped = ("config", "messages", "stored")
    texts = [path.read_text() for path in root.rglob("*.py") if not set(skipped) & set(path.parts[:-1])]
    return set(re.findall(r"(?<=\")[a-z.]+(?=\")|\w+", "\n".join(texts)))


@pytest.mark.parametrize("declared", ACTIVE, ids=lambda declared: declared.name)
def test_an_active_property_is_read(declared: Property[object], words: set[str]) -> None:
    assert {declared.attribute, declared.name} & words, f"nobody reads {declared.name}; mark it LATER"
