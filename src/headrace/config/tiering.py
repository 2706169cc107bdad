"""What tiered storage asks of the settings of a topic, together.

The rules are Kafka's: what is compacted cannot be tiered, the disk keeps no more than the whole history, and
nobody switches a topic's history off without saying that it is to be deleted.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from headrace.core.errors import InvalidConfig

if TYPE_CHECKING:
    from headrace.config.topic import TopicConfig

ENABLE: Final = "remote.storage.enable"
FORK: Final = "headrace.tier.fork"
SAME_AS_RETENTION: Final = -2
NO_LIMIT: Final = -1


def local_retention_ms(topic: TopicConfig) -> int:
    return topic.retention_ms if topic.local_retention_ms == SAME_AS_RETENTION else topic.local_retention_ms


def local_retention_bytes(topic: TopicConfig) -> int:
    if topic.local_retention_bytes == SAME_AS_RETENTION:
        return topic.retention_bytes
    return topic.local_retention_bytes


class ForkPoint(NamedTuple):
    """What a topic is a fork of."""

    origin: UUID
    offsets: tuple[int, ...]
    """Of each partition: where the fork goes on by itself."""


def fork_point(text: str) -> ForkPoint | None:
    """Of headrace.tier.fork; None if the topic is no fork."""
    if not text:
        return None
    origin, _, offsets = text.partition(":")
    return ForkPoint(UUID(bytes=urlsafe_b64decode(f"{origin}==")), tuple(map(int, offsets.split(","))))


def fork_text(point: ForkPoint) -> str:
    origin = urlsafe_b64encode(point.origin.bytes).decode().rstrip("=")
    return f"{origin}:{','.join(map(str, point.offsets))}"


def check_tiered_topic(topic: TopicConfig, before: Mapping[str, str], *, is_possible: bool) -> None:
    """`before`: what the topic had set, empty for a new one. `is_possible`: brokers have a store."""
    if not topic.remote_storage_enable and topic.headrace_tier_fork:
        raise InvalidConfig(
            f"a fork reads its history in the object store: {ENABLE} stays true while the topic is there"
        )
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
