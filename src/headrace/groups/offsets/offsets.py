"""The committed offsets of all groups in one shard: what is asked of them, and how records change them."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.coordinators.decision import CoordinatorRecord, Decision
from headrace.coordinators.shard import Timers
from headrace.groups.group_config import GroupConfig
from headrace.groups.group_table import GroupTable
from headrace.groups.offsets.commits import OffsetCommits, SimpleGroups
from headrace.groups.offsets.expiry import OffsetExpiry
from headrace.groups.offsets.fetches import OffsetFetches
from headrace.groups.offsets.pending import OffsetKey
from headrace.groups.offsets.removals import OffsetRemovals, RemovedTopicName
from headrace.groups.offsets.room import OffsetRoom
from headrace.groups.offsets.stored_offset import StoredOffset
from headrace.groups.offsets.table import OffsetTable
from headrace.groups.topics_view import TopicsView
from headrace.protocol.message import Message
from headrace.protocol.messages.offset_commit_request import OffsetCommitRequest
from headrace.protocol.messages.offset_commit_response import OffsetCommitResponse
from headrace.protocol.messages.offset_delete_request import OffsetDeleteRequest
from headrace.protocol.messages.offset_delete_response import OffsetDeleteResponse
from headrace.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup
from headrace.protocol.messages.offset_fetch_response import OffsetFetchResponseGroup
from headrace.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from headrace.protocol.messages.txn_offset_commit_response import TxnOffsetCommitResponse
from headrace.protocol.stored.legacy_offset_commit_key import LegacyOffsetCommitKey
from headrace.protocol.stored.legacy_offset_commit_value import LegacyOffsetCommitValue
from headrace.protocol.stored.offset_commit_key import OffsetCommitKey
from headrace.protocol.stored.offset_commit_value import OffsetCommitValue


class GroupOffsets:
    __slots__ = ("_classic", "_commits", "_expiry", "_fetches", "_groups", "_removals", "_timers", "table")

    def __init__(
        self,
        groups: GroupTable,
        classic: SimpleGroups,
        timers: Timers,
        topics: TopicsView,
        config: GroupConfig,
        room: OffsetRoom | None = None,
    ) -> None:
        room = room or OffsetRoom()
        self._groups = groups
        self._classic = classic
        self._timers = timers
        self.table = OffsetTable(room.memory)
        self._commits = OffsetCommits(groups, classic, config.offset_metadata_max_bytes, self.table, room)
        self._fetches = OffsetFetches(groups, self.table, topics)
        self._removals = OffsetRemovals(groups, self.table)
        self._expiry = OffsetExpiry(groups, self.table, timers, config)

    # --- operations ---------------------------------------------------------------------------------------

    def commit(
        self, request: OffsetCommitRequest, version: int, now_ms: int
    ) -> Decision[OffsetCommitResponse]:
        return self._commits.commit(request, version, now_ms)

    def commit_in_transaction(
        self, request: TxnOffsetCommitRequest, version: int, now_ms: int
    ) -> Decision[TxnOffsetCommitResponse]:
        """Its records have to be written as a batch of the producer's transaction."""
        return self._commits.commit_in_transaction(request, version, now_ms)

    def fetch(
        self, request: OffsetFetchRequestGroup, *, require_stable: bool
    ) -> Decision[OffsetFetchResponseGroup]:
        return Decision((), self._fetches.fetch(request, require_stable=require_stable))

    def delete(self, request: OffsetDeleteRequest) -> Decision[OffsetDeleteResponse]:
        return self._removals.delete(request)

    def tombstones(self, group_id: str) -> list[CoordinatorRecord]:
        """Removes all offsets of a group, pending ones too: the group is being deleted."""
        return self._removals.of_group(group_id)

    def on_topics_removed(
        self, removed: Sequence[RemovedTopicName], last: Message | None = None
    ) -> Decision[None]:
        """The metadata says that these topics are gone, and their offsets go with them, in several turns if
        they are many. `last` is the first key that the turn before removed."""
        records = self._removals.of_topics(removed)
        if not records or records[0].key == last:  # found again: it could not be written
            return Decision((), None)
        first = records[0].key
        self._timers.set(tuple(removed), 0, lambda _now_ms: self.on_topics_removed(removed, first))
        return Decision(records, None)

    def on_loaded(self, now_ms: int) -> Decision[None]:  # noqa: ARG002 - the shape of every part of a shard
        self._expiry.begin()
        return Decision((), None)

    # --- replay -------------------------------------------------------------------------------------------

    def replay(self, record: CoordinatorRecord, offset: int, timestamp_ms: int) -> None:  # noqa: ARG002 - the value says when
        """Change the state by an offset commit, or by its tombstone."""
        group_id, topic, partition = key = _key_of(record)
        if record.value is None:
            self.table.remove(key)
        else:
            self._ensure_group(group_id)
            self.table.put(group_id, topic, partition, _stored(record.value, offset))

    def replay_transactional(
        self, record: CoordinatorRecord, offset: int, timestamp_ms: int, producer_id: int
    ) -> None:
        """Keep a commit that counts if its transaction does."""
        if record.value is None:
            self.replay(record, offset, timestamp_ms)
            return
        key = _key_of(record)
        self._ensure_group(key.group_id)
        self.table.pending.put(producer_id, key, _stored(record.value, offset))

    def replay_end(self, producer_id: int, producer_epoch: int, *, committed: bool) -> None:  # noqa: ARG002 - one transaction at a time
        """End what a producer left pending."""
        self.table.end_transaction(producer_id, committed=committed)

    def _ensure_group(self, group_id: str) -> None:
        """Who commits without being a member has a group as well: one of its own that only holds offsets."""
        if group_id not in self._groups:
            self._classic.create_simple_group(group_id)


def _key_of(record: CoordinatorRecord) -> OffsetKey:
    key = record.key
    assert isinstance(key, OffsetCommitKey | LegacyOffsetCommitKey), f"{key!r} is no key of an offset"
    return OffsetKey(key.group, key.topic, key.partition)


def _stored(value: Message, offset: int) -> StoredOffset:
    if isinstance(value, LegacyOffsetCommitValue):
        value = OffsetCommitValue(
            offset=value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp
        )
    assert isinstance(value, OffsetCommitValue), f"{value!r} is no committed offset"
    return StoredOffset(value, offset)
