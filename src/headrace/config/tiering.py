"""What tiered storage asks of the settings of a topic, together.

The rules are Kafka's: what is compacted cannot be tiered, the disk keeps no more than the whole history, and
nobody switches a topic's history off without saying that it is to be deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from headrace.core.errors import InvalidConfig

if TYPE_CHECKING:
    from headrace.config.topic import TopicConfig

ENABLE: Final = "remote.storage.enable"
SAME_AS_RETENTION: Final = -2
NO_LIMIT: Final = -1


def local_retention_ms(topic: TopicConfig) -> int:
    return topic.retention_ms if topic.local_retention_ms == SAME_AS_RETENTION else topic.local_retention_ms


def local_retention_bytes(topic: TopicConfig) -> int:
    if topic.local_retention_bytes == SAME_AS_RETENTION:
        return topic.retention_bytes
    return topic.local_retention_bytes


def check_tiered_topic(topic: TopicConfig, before: Mapping[str, str], *, is_possible: bool) -> None:
    """`before`: what the topic had set, empty for a new one. `is_possible`: brokers have a store."""
    if not topic.remote_storage_enable:
        if before.get(ENABLE, "").strip().lower() == "true" and not topic.remote_log_delete_on_disable:
            raise InvalidConfig(
                f"{ENABLE} cannot become false while the topic's history is in the object store: set "
                "remote.log.delete.on.disable=true with it to delete that history, or keep "
                f"{ENABLE} and set remote.log.copy.disable=true to copy nothing more"
            )
        return
    if not is_possible:
        raise InvalidConfig(
            f"{ENABLE} needs an object store: set remote.log.storage.system.enable and headrace.tier.url in"
            " the file of every broker"
        )
    if "compact" in topic.cleanup_policy:
        raise InvalidConfig(f"{ENABLE} is for topics that are not compacted: cleanup.policy has compact")
    for name, local, whole in (
        ("retention.ms", topic.local_retention_ms, topic.retention_ms),
        ("retention.bytes", topic.local_retention_bytes, topic.retention_bytes),
    ):
        if local == SAME_AS_RETENTION or whole == NO_LIMIT:
            continue
        if local == NO_LIMIT or local > whole:
            raise InvalidConfig(f"local.{name}={local} is more than {name}={whole}")
    if topic.remote_log_copy_disable and not (
        topic.local_retention_ms in (SAME_AS_RETENTION, topic.retention_ms)
        and topic.local_retention_bytes in (SAME_AS_RETENTION, topic.retention_bytes)
    ):
        raise InvalidConfig(
            "remote.log.copy.disable leaves new records on the brokers' disks alone: set local.retention.ms"
            " and local.retention.bytes to -2, or to what retention.ms and retention.bytes are"
        )
