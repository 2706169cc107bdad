"""Offsets that are deleted: by OffsetDelete, with their group, and with their topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from headrace.coordinators.decision import CoordinatorRecord, Decision
from headrace.groups.group_table import GroupTable
from headrace.groups.offsets.stored_offset import tombstone
from headrace.groups.offsets.table import OffsetTable
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.offset_delete_request import OffsetDeleteRequest
from headrace.protocol.messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from headrace.protocol.primitives import ZERO_UUID

BYTES_AT_ONCE: Final = 256 * 1024
"""A decision is one batch, which must not be too large. This is a quarter of what is allowed by default."""

_RECORD_BYTES: Final = 64
_CHARACTER_BYTES: Final = 3


def weight_of(group_id: str, topic: str) -> int:
    """At most so many bytes are written to remove one offset."""
    return _RECORD_BYTES + _CHARACTER_BYTES * (len(group_id) + len(topic))


class RemovedTopicName(NamedTuple):
    name: str
    topic_id: UUID


class OffsetRemovals:
    def __init__(self, groups: GroupTable, table: OffsetTable) -> None:
        self._groups = groups
        self._table = table

    def delete(self, request: OffsetDeleteRequest) -> Decision[OffsetDeleteResponse]:
        """Raises GroupNotFound, and NonEmptyGroup for members whose subscriptions nobody here can read."""
        group = self._groups.require(request.group_id)
        group.validate_offset_delete()
        records: list[CoordinatorRecord] = []
        topics = []
        for topic in request.topics:
            name = topic.name
            error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if group.is_subscribed_to(name) else ErrorCode.NONE
            rows = []
            for asked in topic.partitions:
                partition = asked.partition_index
                rows.append(OffsetDeleteResponsePartition(partition_index=partition, error_code=error))
                if not error and self._table.holds(request.group_id, name, partition):
                    records.append(tombstone(request.group_id, name, partition))
            topics.append(OffsetDeleteResponseTopic(name=name, partitions=rows))
        return Decision(records, OffsetDeleteResponse(topics=topics))

    def of_group(self, group_id: str) -> list[CoordinatorRecord]:
        """Everything that the group has, what is pending too."""
        records = [
            tombstone(group_id, topic, partition)
            for topic, partitions in self._table.of_group(group_id).items()
            for partition in partitions
        ]
        records += [
            tombstone(group_id, topic, partition)
            for topic, partition in self._table.pending.of_group(group_id)
            if self._table.get(group_id, topic, partition) is None
        ]
        return records

    def of_topics(self, removed: Sequence[RemovedTopicName]) -> list[CoordinatorRecord]:
        """As many as fit into a batch: ask again until there are none. Offsets that belong to a new topic of
        the same name stay."""
        found: dict[tuple[str, str, int], None] = {}
        ids = {topic.name: (topic.topic_id, ZERO_UUID) for topic in removed}
        for group_id, name, partitions in self._table.with_topics(ids.keys()):
            for partition, stored in partitions.items():
                if stored.topic_id in ids[name]:
                    found[group_id, name, partition] = None
        for offsets in self._table.pending.by_producer.values():
            for key, stored in offsets.items():
                if key.topic in ids and stored.topic_id in ids[key.topic]:
                    found[key] = None
        records: list[CoordinatorRecord] = []
        size = 0
        for group_id, name, partition in found:
            size += weight_of(group_id, name)
            if records and size > BYTES_AT_ONCE:
                break
            records.append(tombstone(group_id, name, partition))
        return records
