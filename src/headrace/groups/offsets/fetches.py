"""OffsetFetch: what a group has committed, of the partitions that are asked for or of all."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from headrace.core.errors import GroupNotFound
from headrace.groups.group_table import GroupTable
from headrace.groups.offsets.stored_offset import StoredOffset
from headrace.groups.offsets.table import OffsetTable
from headrace.groups.topics_view import TopicsView
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup
from headrace.protocol.messages.offset_fetch_response import (
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from headrace.protocol.primitives import ZERO_UUID

NO_OFFSET = -1
NO_EPOCH = -1


def missing(partition: int, error: ErrorCode = ErrorCode.NONE) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=NO_OFFSET,
        committed_leader_epoch=NO_EPOCH,
        metadata="",
        error_code=error,
    )


class OffsetFetches:
    def __init__(self, groups: GroupTable, table: OffsetTable, topics: TopicsView) -> None:
        self._groups = groups
        self._table = table
        self._topics = topics

    def fetch(self, request: OffsetFetchRequestGroup, *, require_stable: bool) -> OffsetFetchResponseGroup:
        """Every topic that is asked for has a name. Topics of an answer to "all" have no id."""
        group_id = request.group_id
        offsets = self._table.of_group(group_id) if self._exists(request) else {}
        watched = require_stable and self._table.pending.has_group(group_id)
        wanted: Iterable[tuple[str, UUID, Iterable[int]]]
        if request.topics is None:
            wanted = [(name, ZERO_UUID, partitions) for name, partitions in offsets.items()]
        else:
            wanted = [(topic.name, topic.topic_id, topic.partition_indexes) for topic in request.topics]
        topics = []
        for name, topic_id, partitions in wanted:
            stored = offsets.get(name, {})
            # Whoever asks by name means the topic that has it now. A coordinator that was moving when the
            # last one was deleted may still hold that one's offsets.
            meant = topic_id if topic_id != ZERO_UUID else self._topics.id_of(name) or ZERO_UUID
            rows = []
            for partition in partitions:
                if watched and self._table.pending.has(group_id, name, partition):
                    rows.append(missing(partition, ErrorCode.UNSTABLE_OFFSET_COMMIT))
                else:
                    rows.append(_row(partition, stored.get(partition), meant))
            topics.append(OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=rows))
        return OffsetFetchResponseGroup(group_id=group_id, topics=topics)

    def _exists(self, request: OffsetFetchRequestGroup) -> bool:
        """A group that does not exist has no offsets, which is an answer and no error."""
        group = self._groups.get(request.group_id)
        if group is None:
            return False
        try:
            group.validate_offset_fetch(request.member_id, request.member_epoch)
        except GroupNotFound:
            return False
        return True


def _row(partition: int, stored: StoredOffset | None, topic_id: UUID) -> OffsetFetchResponsePartitions:
    if stored is None or not stored.is_of(topic_id):
        return missing(partition)
    return OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=stored.offset,
        committed_leader_epoch=stored.leader_epoch,
        metadata=stored.metadata,
        error_code=ErrorCode.NONE,
    )
