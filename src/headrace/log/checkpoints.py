"""The small text files beside the logs: checkpoints, partition metadata, clean shutdown, meta.properties.

A checkpoint is a version line, a line with the number of entries, and one line per entry. Anything else is
CorruptCheckpoint: the reader falls back to what the logs themselves say.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple
from uuid import UUID

from headrace.core.errors import ServerError
from headrace.core.ids import NO_TOPIC_ID, TopicPartition
from headrace.core.ports import Disk
from headrace.log import files

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
CLEAN_OFFSETS: Final = "cleaner-offset-checkpoint"
META_PROPERTIES: Final = "meta.properties"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
LOCK: Final = ".lock"


class CorruptCheckpoint(ServerError):
    """A checkpoint file that cannot be what was written."""


def format_lines(lines: Iterable[str]) -> bytes:
    entries = list(lines)
    return "".join(f"{line}\n" for line in ("0", str(len(entries)), *entries)).encode()


def parse_lines(content: bytes) -> list[list[str]]:
    """The entries, each split at spaces."""
    try:
        lines = content.decode("ascii").split("\n")
        version, count = int(lines[0]), int(lines[1])
    except (ValueError, IndexError):
        raise CorruptCheckpoint("no version and number of entries at its beginning") from None
    if version != 0:
        raise CorruptCheckpoint(f"version {version}, only 0 is known")
    if len(lines) != count + 3 or lines[-1]:
        raise CorruptCheckpoint(f"{count} entries announced, {len(lines) - 3} found")
    return [line.split(" ") for line in lines[2:-1]]


def format_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    return format_lines(
        f"{partition.topic} {partition.partition} {offset}" for partition, offset in sorted(offsets.items())
    )


def parse_offsets(content: bytes) -> dict[TopicPartition, int]:
    try:
        return {TopicPartition(topic, int(index)): int(at) for topic, index, at in parse_lines(content)}
    except ValueError:
        raise CorruptCheckpoint("an entry is not 'topic partition offset'") from None


def load_offsets(disk: Disk, path: str) -> dict[TopicPartition, int]:
    """The offsets in a checkpoint; a missing or broken file holds none. OSError means a broken disk."""
    try:
        return parse_offsets(files.read_all(disk, path))
    except (FileNotFoundError, CorruptCheckpoint):
        return {}


def encode_uuid(value: UUID) -> str:
    """Kafka's way to write a UUID: base64url without padding, 22 characters."""
    return urlsafe_b64encode(value.bytes).decode().rstrip("=")


def decode_uuid(text: str) -> UUID:
    if len(text) != 22:
        raise CorruptCheckpoint(f"{text!r} is not an id of 22 characters")
    try:
        return UUID(bytes=urlsafe_b64decode(text + "=="))
    except ValueError:
        raise CorruptCheckpoint(f"{text!r} is not an id in base64url") from None


def format_partition_metadata(topic_id: UUID) -> bytes:
    return f"version: 0\ntopic_id: {encode_uuid(topic_id)}\n".encode()


def parse_partition_metadata(content: bytes) -> UUID:
    fields = dict(
        line.split(": ", 1) for line in content.decode("ascii", "replace").splitlines() if ": " in line
    )
    if fields.get("version") != "0" or "topic_id" not in fields:
        raise CorruptCheckpoint("partition.metadata has no version 0 and topic_id")
    return decode_uuid(fields["topic_id"])


def load_topic_id(disk: Disk, folder: str) -> UUID:
    """Of the topic that a partition's folder belongs to; NO_TOPIC_ID if that is not known."""
    try:
        return parse_partition_metadata(files.read_all(disk, f"{folder}/{files.PARTITION_METADATA}"))
    except (FileNotFoundError, CorruptCheckpoint):
        return NO_TOPIC_ID


class CleanStop(NamedTuple):
    broker_epoch: int = -1
    """Of the broker that stopped cleanly; -1 where the file does not say."""
    quarantined: frozenset[TopicPartition] = frozenset()
    """Damaged logs, which were not closed: a clean start would not look for their damage again. And logs that
    may have files of others, which is found out again too."""


def format_clean_shutdown(broker_epoch: int, quarantined: Iterable[TopicPartition] = ()) -> bytes:
    """As Kafka does, with a field of our own only if it says something."""
    said: dict[str, object] = {"version": 0, "brokerEpoch": broker_epoch}
    names = sorted(quarantined)
    if names:
        said["headraceQuarantined"] = names
    return json.dumps(said, separators=(",", ":")).encode()


def parse_clean_shutdown(content: bytes) -> CleanStop:
    try:
        found = json.loads(content)
        damaged = found.get("headraceQuarantined", ())
        names = frozenset(TopicPartition(str(topic), int(index)) for topic, index in damaged)
        return CleanStop(int(found["brokerEpoch"]), names)
    except (ValueError, KeyError, TypeError, AttributeError):
        return CleanStop()


def format_properties(properties: Mapping[str, str]) -> bytes:
    return "".join(f"{name}={value}\n" for name, value in properties.items()).encode()


def parse_properties(content: bytes) -> dict[str, str]:
    found = {}
    for line in content.decode("utf-8", "replace").splitlines():
        text = line.strip()
        if text and text[0] not in "#!" and "=" in text:
            name, _, value = text.partition("=")
            found[name.strip()] = value.strip()
    return found
