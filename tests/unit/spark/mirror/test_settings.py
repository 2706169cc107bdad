"""Which settings go along."""

from __future__ import annotations

from headrace.client.configs import ConfigEntry, ConfigSource
from headrace.spark.mirror.settings import changes, initial


def _set(name: str, value: str, source: int = ConfigSource.TOPIC) -> ConfigEntry:
    return ConfigEntry(name, value, source, False, False, None, None)


def test_what_is_set_on_the_topic_goes_along_and_what_is_of_a_cluster_does_not() -> None:
    source = [
        _set("cleanup.policy", "compact"),
        _set("retention.ms", "5", ConfigSource.BROKER_DEFAULT),
        _set("min.insync.replicas", "2"),
        _set("message.timestamp.type", "LogAppendTime"),
        _set("max.message.bytes", "2000"),
    ]
    assert initial(source) == {"cleanup.policy": "compact"}
    assert initial([_set("max.message.bytes", "5000000")]) == {"max.message.bytes": "5000000"}


def test_changes_are_what_differs() -> None:
    source = [_set("cleanup.policy", "compact"), _set("retention.ms", "7")]
    target = [_set("retention.ms", "8"), _set("segment.ms", "9"), _set("min.insync.replicas", "2")]
    assert changes(source, target) == {"cleanup.policy": "compact", "retention.ms": "7", "segment.ms": None}
    assert changes(source, source) == {}
