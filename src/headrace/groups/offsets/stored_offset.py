"""One committed offset, in memory and as a record of the log."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from headrace.coordinators.decision import CoordinatorRecord
from headrace.protocol.primitives import ZERO_UUID
from headrace.protocol.stored.offset_commit_key import OffsetCommitKey
from headrace.protocol.stored.offset_commit_value import OffsetCommitValue

NOT_SAID: Final = -1
"""A leader epoch or a time of expiry that the client did not give."""

VALUE_VERSION: Final = 4
VALUE_VERSION_WITH_EXPIRY: Final = 1
"""The only version that has a place for an expiry. It has none for leader epoch and topic id."""


class StoredOffset:
    """Never changed once it is made: another commit makes another one."""

    __slots__ = (
        "committed_at_ms",
        "expires_at_ms",
        "leader_epoch",
        "metadata",
        "offset",
        "record_offset",
        "topic_id",
    )

    def __init__(self, value: OffsetCommitValue, record_offset: int) -> None:
        self.offset = value.offset
        self.leader_epoch = value.leader_epoch
        self.metadata = value.metadata
        self.committed_at_ms = value.commit_timestamp
        self.expires_at_ms = value.expire_timestamp
        self.topic_id = value.topic_id
        """Zero if it was not known."""
        self.record_offset = record_offset
        """Where its record lies in the log: the later of two commits is the one that lies behind."""

    def __repr__(self) -> str:
        return f"StoredOffset({self.offset}, {self.metadata!r}, record {self.record_offset})"

    def is_of(self, topic_id: UUID) -> bool:
        """False only if both ids are known and differ: the topic was deleted and made again."""
        return self.topic_id == topic_id or self.topic_id == ZERO_UUID or topic_id == ZERO_UUID


def commit_record(key: OffsetCommitKey, value: OffsetCommitValue) -> CoordinatorRecord:
    has_expiry = value.expire_timestamp != NOT_SAID
    return CoordinatorRecord(key, value, VALUE_VERSION_WITH_EXPIRY if has_expiry else VALUE_VERSION)


def tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    return CoordinatorRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)
