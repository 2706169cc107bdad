"""The effective configuration of one topic, and how it comes about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headrace.config.broker import BROKER_PROPERTIES, BrokerConfig
from headrace.config.property import Property, UpdateMode
from headrace.config.topic_properties import TOPIC_PROPERTIES


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """One attribute for each topic property; the declarations are in `topic_properties`."""

    cleanup_policy: frozenset[str]
    compression_gzip_level: int
    compression_lz4_level: int
    compression_type: str
    compression_zstd_level: int
    delete_retention_ms: int
    file_delete_delay_ms: int
    flush_messages: int
    flush_ms: int
    follower_replication_throttled_replicas: tuple[str, ...]
    headrace_balance_moved_replicas: tuple[str, ...]
    headrace_tier_fork: str
    index_interval_bytes: int
    leader_replication_throttled_replicas: tuple[str, ...]
    local_retention_bytes: int
    local_retention_ms: int
    max_compaction_lag_ms: int
    max_message_bytes: int
    message_timestamp_after_max_ms: int
    message_timestamp_before_max_ms: int
    message_timestamp_type: str
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    min_insync_replicas: int
    preallocate: bool
    remote_log_copy_disable: bool
    remote_log_delete_on_disable: bool
    remote_storage_enable: bool
    retention_bytes: int
    retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    segment_jitter_ms: int
    segment_ms: int
    unclean_leader_election_enable: bool


_WRITTEN_BY_US: Final[Mapping[str, object]] = {
    "headrace.balance.moved.replicas": (),
    "headrace.tier.fork": "",
}
"""Internal properties that brokers read, and what they are where nothing is written."""


def resolve_topic(
    broker: BrokerConfig,
    dynamic_default_broker: Mapping[str, str],
    dynamic_broker: Mapping[str, str],
    overrides: Mapping[str, str],
) -> TopicConfig:
    """The strongest of: the topic's own, this broker's and the cluster's at run time, the file's, ours.

    Within one source the synonyms count in their order (log.retention.ms before .minutes before .hours).
    Stored text that cannot be read is passed over; it is refused where it is set, in `validation`.
    """
    values = {
        declared.attribute: effective_value(
            declared, broker, dynamic_default_broker, dynamic_broker, overrides
        )
        for declared in TOPIC_PROPERTIES.values()
        if not declared.internal
    }
    for name, nothing in _WRITTEN_BY_US.items():
        declared = TOPIC_PROPERTIES[name]
        values[declared.attribute] = _readable(declared, overrides) or nothing
    values["cleanup_policy"] = frozenset(values["cleanup_policy"])
    tiny = _readable(TOPIC_PROPERTIES["internal.segment.bytes"], overrides)
    if tiny is not None:
        values["segment_bytes"] = tiny
    return TopicConfig(**values)


def effective_value(
    declared: Property[Any],
    broker: BrokerConfig,
    dynamic_default_broker: Mapping[str, str],
    dynamic_broker: Mapping[str, str],
    overrides: Mapping[str, str],
) -> Any:
    own = _readable(declared, overrides)
    if own is not None:
        return own
    for layer in (dynamic_broker, dynamic_default_broker):
        for name, factor in declared.synonyms:
            synonym = BROKER_PROPERTIES[name]
            value = None if synonym.update is UpdateMode.READ_ONLY else _readable(synonym, layer)
            if value is not None:
                return _in_topic_units(declared, value, factor)
    for name, factor in declared.synonyms:
        # A file that sets a weak synonym outweighs the default of a strong one, so defaults come last.
        if name in broker.given:
            return _in_topic_units(declared, broker[name], factor)
    for name, factor in declared.synonyms:
        value = broker[name]
        if value is not None:
            return _in_topic_units(declared, value, factor)
    return declared.default


def _readable(declared: Property[Any], layer: Mapping[str, str]) -> Any:
    text = layer.get(declared.name)
    if text is None:
        return None
    try:
        return declared.parse(text)
    except ValueError:
        return None


def _in_topic_units(declared: Property[Any], value: Any, factor: int) -> Any:
    if declared.name == "retention.ms":
        # At the broker any negative number means no limit.
        return -1 if value < 0 else value * factor
    return value if factor == 1 else value * factor
