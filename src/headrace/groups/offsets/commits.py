"""OffsetCommit and TxnOffsetCommit: who may commit, and the records of it."""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

from headrace.coordinators.decision import CoordinatorRecord, Decision
from headrace.core.errors import GroupNotFound, IllegalGeneration, StaleMemberEpoch
from headrace.groups.group import Group, GroupType, PartitionCheck
from headrace.groups.group_table import GroupTable
from headrace.groups.offsets.room import OffsetRoom
from headrace.groups.offsets.stored_offset import NOT_SAID, commit_record
from headrace.groups.offsets.table import OffsetTable
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.offset_commit_request import OffsetCommitRequest, OffsetCommitRequestPartition
from headrace.protocol.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from headrace.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
)
from headrace.protocol.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from headrace.protocol.primitives import ZERO_UUID
from headrace.protocol.stored.offset_commit_key import OffsetCommitKey
from headrace.protocol.stored.offset_commit_value import OffsetCommitValue

_OK = int(ErrorCode.NONE)
_TOO_LARGE = int(ErrorCode.OFFSET_METADATA_TOO_LARGE)
_NO_ROOM = int(ErrorCode.COORDINATOR_NOT_AVAILABLE)
"""Clients look for the coordinator anew, and try again."""
_FIRST_WITH_GROUP_NOT_FOUND = 9


class SimpleGroups(Protocol):
    """What offsets ask of the classic groups."""

    def create_simple_group(self, group_id: str) -> Group:
        """Put an empty group without protocol type into the table. It only holds offsets, so no record of
        its own stands for it, and a record of another group of this id replaces it."""
        ...

    def on_offset_commit(self, group: Group, member_id: str, now_ms: int) -> None:
        """A member of a classic group lives: its session begins again, unless the group is completing a
        rebalance or has no such member."""
        ...


class OffsetCommits:
    def __init__(
        self,
        groups: GroupTable,
        classic: SimpleGroups,
        metadata_max_bytes: int,
        table: OffsetTable,
        room: OffsetRoom,
    ) -> None:
        self._groups = groups
        self._classic = classic
        self._metadata_max = metadata_max_bytes
        self._table = table
        self._room = room

    def commit(
        self, request: OffsetCommitRequest, version: int, now_ms: int
    ) -> Decision[OffsetCommitResponse]:
        """Every topic of the request has a name, and an id if one is known."""
        check = self._check(request, version, now_ms)
        retention_ms = request.retention_time_ms
        expires_at_ms = NOT_SAID if retention_ms == NOT_SAID else now_ms + retention_ms
        group_id = request.group_id
        is_full = self._room.is_full()
        records: list[CoordinatorRecord] = []
        answered: list[OffsetCommitResponseTopic] = []
        for topic in request.topics:
            rows: list[OffsetCommitResponsePartition] = []
            for asked in topic.partitions:
                index = asked.partition_index
                if self._is_too_large(asked.committed_metadata):
                    rows.append(OffsetCommitResponsePartition(partition_index=index, error_code=_TOO_LARGE))
                    continue
                if is_full and self._grows(group_id, topic.name, index, asked.committed_metadata):
                    rows.append(OffsetCommitResponsePartition(partition_index=index, error_code=_NO_ROOM))
                    continue
                if check is not None:
                    check(topic.name, topic.topic_id, index)
                records.append(_record(group_id, topic.name, asked, topic.topic_id, now_ms, expires_at_ms))
                rows.append(OffsetCommitResponsePartition(partition_index=index, error_code=_OK))
            answered.append(
                OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=rows)
            )
        return Decision(records, OffsetCommitResponse(topics=answered))

    def _check(self, request: OffsetCommitRequest, version: int, now_ms: int) -> PartitionCheck | None:
        generation = request.generation_id_or_member_epoch
        group = self._groups.get(request.group_id)
        if group is None:
            # A client without generation does not use the membership: the commit makes a simple group.
            if generation < 0:
                return None
            if version >= _FIRST_WITH_GROUP_NOT_FOUND:
                raise GroupNotFound(f"Group {request.group_id} not found.")
            raise IllegalGeneration(f"group {request.group_id} has no generation {generation}")
        check = group.validate_offset_commit(
            request.member_id, request.group_instance_id, generation, version, transactional=False
        )
        if group.type is GroupType.CLASSIC:
            self._classic.on_offset_commit(group, request.member_id, now_ms)
        return check

    def commit_in_transaction(
        self, request: TxnOffsetCommitRequest, version: int, now_ms: int
    ) -> Decision[TxnOffsetCommitResponse]:
        check = self._check_in_transaction(request, version)
        is_full = self._room.is_full()
        records: list[CoordinatorRecord] = []
        answered: list[TxnOffsetCommitResponseTopic] = []
        for topic in request.topics:
            rows: list[TxnOffsetCommitResponsePartition] = []
            for asked in topic.partitions:
                index = asked.partition_index
                if self._is_too_large(asked.committed_metadata):
                    rows.append(
                        TxnOffsetCommitResponsePartition(partition_index=index, error_code=_TOO_LARGE)
                    )
                    continue
                if is_full:
                    self._room.refused()
                    rows.append(TxnOffsetCommitResponsePartition(partition_index=index, error_code=_NO_ROOM))
                    continue
                if check is not None:
                    _checked_in_transaction(check, topic.name, index)
                records.append(_record(request.group_id, topic.name, asked, ZERO_UUID, now_ms, NOT_SAID))
                rows.append(TxnOffsetCommitResponsePartition(partition_index=index, error_code=_OK))
            answered.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=rows))
        return Decision(records, TxnOffsetCommitResponse(topics=answered))

    def _check_in_transaction(self, request: TxnOffsetCommitRequest, version: int) -> PartitionCheck | None:
        generation = request.generation_id_or_member_epoch
        group = self._groups.get(request.group_id)
        if group is None:
            if generation < 0:
                return None
            raise IllegalGeneration(f"group {request.group_id} has no generation {generation}")
        try:
            return group.validate_offset_commit(
                request.member_id, request.group_instance_id, generation, version, transactional=True
            )
        except StaleMemberEpoch as error:
            raise IllegalGeneration(str(error)) from None

    def _grows(self, group_id: str, topic: str, partition: int, metadata: str | None) -> bool:
        """Whether it needs more memory. What is there moves on: a flood harms nobody who came before it."""
        known = self._table.get(group_id, topic, partition)
        if known is not None and len(metadata or "") <= len(known.metadata):
            return False
        self._room.refused()
        return True

    def _is_too_large(self, metadata: str | None) -> bool:
        """Kafka counts UTF-16 units, whatever the name of the property says."""
        if not metadata:
            return False
        units = (
            len(metadata) if metadata.isascii() else len(metadata.encode("utf-16-le", "surrogatepass")) // 2
        )
        return units > self._metadata_max


def _checked_in_transaction(check: PartitionCheck, topic: str, partition: int) -> None:
    """Producers know no member epochs: to them it is a generation."""
    try:
        check(topic, ZERO_UUID, partition)
    except StaleMemberEpoch as error:
        raise IllegalGeneration(str(error)) from None


def _record(
    group_id: str,
    topic: str,
    asked: OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition,
    topic_id: UUID,
    now_ms: int,
    expires_at_ms: int,
) -> CoordinatorRecord:
    return commit_record(
        OffsetCommitKey(group=group_id, topic=topic, partition=asked.partition_index),
        OffsetCommitValue(
            offset=asked.committed_offset,
            leader_epoch=asked.committed_leader_epoch,
            metadata=asked.committed_metadata or "",
            commit_timestamp=now_ms,
            expire_timestamp=expires_at_ms,
            topic_id=topic_id,
        ),
    )
