"""Offsets over a log that is kept as bytes, so that every decision can be read again into a new table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from headrace.coordinators.codec import decode, encode
from headrace.coordinators.decision import CoordinatorRecord, Decision
from headrace.coordinators.kinds import GROUP_KINDS
from headrace.coordinators.shard import TimerOperation
from headrace.core.errors import HeadraceError
from headrace.groups.group import Group, GroupType, PartitionCheck
from headrace.groups.group_config import GroupConfig
from headrace.groups.group_table import GroupTable
from headrace.groups.offsets.offsets import GroupOffsets
from headrace.groups.offsets.room import OffsetRoom
from headrace.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from headrace.protocol.messages.offset_fetch_response import OffsetFetchResponsePartitions
from headrace.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from headrace.protocol.primitives import ZERO_UUID
from headrace.protocol.records import Record
from headrace.protocol.stored.group_metadata_key import GroupMetadataKey

NOW = 1_700_000_000_000


class StubGroup:
    """Implements groups.group.Group, and says what a test wants it to say."""

    def __init__(self, group_id: str, type: GroupType = GroupType.CLASSIC) -> None:
        self.group_id = group_id
        self.type = type
        self.state_name = "Empty"
        self.protocol_type = ""
        self.refusal: HeadraceError | None = None
        self.check: PartitionCheck | None = None
        self.subscribed: tuple[str, ...] = ()
        self.empty = True
        self.empty_since_ms: int | None = None
        self.commits: list[tuple[Any, ...]] = []

    def is_empty(self) -> bool:
        return self.empty

    def validate_offset_commit(
        self, member_id: str, instance_id: str | None, generation: int, version: int, *, transactional: bool
    ) -> PartitionCheck | None:
        self.commits.append((member_id, instance_id, generation, version, transactional))
        self._refuse()
        return self.check

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        self._refuse()

    def validate_offset_delete(self) -> None:
        self._refuse()

    def validate_deletion(self) -> None:
        self._refuse()

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed

    def offsets_expire_from(self, now_ms: int, committed_at_ms: int, topic: str) -> int | None:
        return committed_at_ms if self.empty_since_ms is None else self.empty_since_ms

    def tombstones(self) -> list[CoordinatorRecord]:
        return [CoordinatorRecord(GroupMetadataKey(group=self.group_id), None)]

    def _refuse(self) -> None:
        if self.refusal is not None:
            raise self.refusal


class StubClassicGroups:
    """Implements groups.offsets.commits.SimpleGroups."""

    def __init__(self, groups: GroupTable) -> None:
        self.groups = groups
        self.heard: list[tuple[str, str, int]] = []

    def create_simple_group(self, group_id: str) -> Group:
        group = StubGroup(group_id)
        self.groups.put(group)
        return group

    def on_offset_commit(self, group: Group, member_id: str, now_ms: int) -> None:
        self.heard.append((group.group_id, member_id, now_ms))


class ManualTimers:
    """Implements coordinators.shard.Timers over a time that the test moves."""

    def __init__(self) -> None:
        self.now_ms = float(NOW)
        self.armed: dict[object, tuple[float, TimerOperation]] = {}

    def set(self, name: object, delay_ms: float, operation: TimerOperation) -> None:
        self.armed[name] = (self.now_ms + delay_ms, operation)

    def cancel(self, name: object) -> None:
        self.armed.pop(name, None)

    def pop_due(self) -> TimerOperation | None:
        due = [name for name, (at, _) in self.armed.items() if at <= self.now_ms]
        return self.armed.pop(due[0])[1] if due else None


class StubTopics:
    """Implements groups.topics_view.TopicsView of topics that have only ids."""

    version = 0

    def __init__(self) -> None:
        self.ids: dict[str, UUID] = {}

    def names(self) -> Sequence[str]:
        return ()

    def id_of(self, name: str) -> UUID | None:
        return self.ids.get(name)

    def name_of(self, topic_id: UUID) -> str | None:
        return None

    def partition_count(self, name: str) -> int | None:
        return None

    def racks(self, name: str, partition: int) -> tuple[str, ...]:
        return ()


class LoggedOffsets:
    """`log` has one entry for each offset: a record as bytes with its producer (-1 for none), or a marker."""

    def __init__(self, config: GroupConfig | None = None, room: OffsetRoom | None = None) -> None:
        self.config = config or GroupConfig()
        self._room = room
        self.log: list[tuple[Record, int] | tuple[None, int, bool]] = []
        self.groups = GroupTable()
        self.classic = StubClassicGroups(self.groups)
        self.timers = ManualTimers()
        self.topics = StubTopics()
        self.offsets = self._make()

    def _make(self) -> GroupOffsets:
        return GroupOffsets(self.groups, self.classic, self.timers, self.topics, self.config, self._room)

    def reread(self) -> GroupOffsets:
        """What another broker would make of the log."""
        other = LoggedOffsets(self.config)
        for entry in self.log:
            other._replay(entry)
        return other.offsets

    def write(self, decision: Decision[Any], producer_id: int = -1, now_ms: int = NOW) -> Any:
        """Write and replay what was decided; its response."""
        for record in decision.records:
            value, key, timestamp, _ = encode(record, now_ms)
            self._append((Record(len(self.log), timestamp, key, value), producer_id))
        return decision.response

    def end(self, producer_id: int, *, committed: bool) -> None:
        self._append((None, producer_id, committed))

    def _append(self, entry: tuple[Record, int] | tuple[None, int, bool]) -> None:
        self.log.append(entry)
        self._replay(entry)

    def _replay(self, entry: tuple[Record, int] | tuple[None, int, bool]) -> None:
        if len(entry) == 3:
            self.offsets.replay_end(entry[1], 0, committed=entry[2])
            return
        record, producer_id = entry
        decoded = decode(record, GROUP_KINDS)
        assert decoded is not None
        if isinstance(decoded.key, GroupMetadataKey):
            self.groups.remove(decoded.key.group)
        elif producer_id >= 0:
            self.offsets.replay_transactional(decoded, record.offset, record.timestamp, producer_id)
        else:
            self.offsets.replay(decoded, record.offset, record.timestamp)

    def pass_time(self, ms: int) -> int:
        """Let timers fire until none is due; how many did."""
        self.timers.now_ms += ms
        fired = 0
        while (operation := self.timers.pop_due()) is not None:
            self.write(operation(int(self.timers.now_ms)))
            fired += 1
        return fired

    # --- short forms of requests --------------------------------------------------------------------------

    def commit(self, group_id: str, topic: str, partition: int, offset: int, now_ms: int = NOW) -> None:
        request = commit_request(group_id, [(topic, partition, offset, "")])
        self.write(self.offsets.commit(request, 9, now_ms), now_ms=now_ms)

    def commit_in_transaction(
        self, producer_id: int, group_id: str, topic: str, partition: int, offset: int
    ) -> None:
        request = transactional_request(group_id, [(topic, partition, offset)], producer_id)
        self.write(self.offsets.commit_in_transaction(request, 5, NOW), producer_id)

    def row(
        self, group_id: str, topic: str, partition: int, *, require_stable: bool = False
    ) -> OffsetFetchResponsePartitions:
        asked = OffsetFetchRequestGroup(
            group_id=group_id, topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])]
        )
        response = self.write(self.offsets.fetch(asked, require_stable=require_stable))
        [told] = response.topics
        [row] = told.partitions
        assert isinstance(row, OffsetFetchResponsePartitions)
        return row

    def offset(self, group_id: str, topic: str, partition: int) -> int:
        return self.row(group_id, topic, partition).committed_offset


def commit_request(
    group_id: str,
    rows: Sequence[tuple[str, int, int, str | None]],
    *,
    generation: int = -1,
    member_id: str = "",
    instance_id: str | None = None,
    retention_ms: int = -1,
    leader_epoch: int = -1,
    topic_id: UUID = ZERO_UUID,
) -> OffsetCommitRequest:
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for topic, partition, offset, metadata in rows:
        into = topics.setdefault(topic, OffsetCommitRequestTopic(name=topic, topic_id=topic_id))
        into.partitions.append(
            OffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=offset,
                committed_leader_epoch=leader_epoch,
                committed_metadata=metadata,
            )
        )
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        retention_time_ms=retention_ms,
        topics=list(topics.values()),
    )


def transactional_request(
    group_id: str, rows: Sequence[tuple[str, int, int]], producer_id: int, *, generation: int = -1
) -> TxnOffsetCommitRequest:
    return TxnOffsetCommitRequest(
        transactional_id="t",
        group_id=group_id,
        producer_id=producer_id,
        generation_id_or_member_epoch=generation,
        topics=[
            TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
                ],
            )
            for topic, partition, offset in rows
        ],
    )
