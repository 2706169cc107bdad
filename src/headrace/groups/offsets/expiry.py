"""Offsets that nobody has used for offsets.retention.minutes, and groups that have nothing left.

A round looks at every group, in turns: a shard may hold more offsets than one turn of the loop should see.
"""

from __future__ import annotations

from typing import Final

from headrace.coordinators.decision import CoordinatorRecord, Decision
from headrace.coordinators.shard import Timers
from headrace.groups.group import Group
from headrace.groups.group_config import GroupConfig
from headrace.groups.group_table import GroupTable
from headrace.groups.offsets.removals import BYTES_AT_ONCE, weight_of
from headrace.groups.offsets.stored_offset import NOT_SAID, StoredOffset, tombstone
from headrace.groups.offsets.table import OffsetTable
from headrace.protocol.message import Message

TIMER: Final = "offset expiry"
LOOKED_AT_ONCE: Final = 5_000
"""Groups and offsets in one turn: a few milliseconds."""

_MS_PER_MINUTE: Final = 60_000


class _Turn:
    """What one turn decides: one batch."""

    __slots__ = ("_size", "records")

    def __init__(self) -> None:
        self.records: list[CoordinatorRecord] = []
        self._size = 0

    def has_room(self, weight: int) -> bool:
        """For the first one always: it can be no smaller."""
        self._size += weight
        return self._size <= BYTES_AT_ONCE or not self.records


class OffsetExpiry:
    def __init__(self, groups: GroupTable, table: OffsetTable, timers: Timers, config: GroupConfig) -> None:
        self._groups = groups
        self._table = table
        self._timers = timers
        self._interval_ms = config.offsets_retention_check_interval_ms
        self._retention_ms = config.offsets_retention_minutes * _MS_PER_MINUTE
        self._round: list[str] = []
        """Groups that this round has still to look at, last first."""
        self._last: Message | None = None
        """The first key that the last turn of this round removed."""

    def begin(self) -> None:
        """The first round is one interval away: a new coordinator has more urgent work."""
        self._timers.set(TIMER, self._interval_ms, self._begin_round)

    def _begin_round(self, now_ms: int) -> Decision[None]:
        self._round = [group.group_id for group in self._groups]
        self._round.reverse()
        self._last = None
        return self._go_on(now_ms)

    def _go_on(self, now_ms: int) -> Decision[None]:
        # Before anything else: a turn that fails must not be the last one.
        self.begin()
        turn = _Turn()
        looked = 0
        while self._round and looked < LOOKED_AT_ONCE:
            group = self._groups.get(self._round[-1])
            if group is not None:
                if not self._expire(group, now_ms, turn):
                    break
                looked += sum(map(len, self._table.of_group(group.group_id).values()))
            looked += 1
            self._round.pop()
        first = turn.records[0].key if turn.records else None
        if first is not None and first == self._last:
            # What the last turn decided was not written, or it would not be found again. Next time, then.
            self._round.clear()
            turn.records.clear()
        self._last = first
        if self._round:
            self._timers.set(TIMER, 0, lambda _now_ms: self._go_on(now_ms))
        return Decision(turn.records, None)

    def _expire(self, group: Group, now_ms: int, turn: _Turn) -> bool:
        """False if the batch was full before all of the group was looked at: it is looked at again."""
        group_id = group.group_id
        is_used_up = not self._table.pending.has_group(group_id)
        for topic, partitions in self._table.of_group(group_id).items():
            if group.is_subscribed_to(topic):
                is_used_up = False
                continue
            weight = weight_of(group_id, topic)
            for partition, stored in partitions.items():
                if not self._is_expired(group, topic, partition, stored, now_ms):
                    is_used_up = False
                elif not turn.has_room(weight):
                    return False
                else:
                    turn.records.append(tombstone(group_id, topic, partition))
        if is_used_up and group.is_empty():
            tombstones = group.tombstones()
            if not turn.has_room(len(tombstones) * weight_of(group_id, "")):
                return False
            turn.records += tombstones
        return True

    def _is_expired(
        self, group: Group, topic: str, partition: int, stored: StoredOffset, now_ms: int
    ) -> bool:
        began_ms = group.offsets_expire_from(now_ms, stored.committed_at_ms, topic)
        if began_ms is None or self._table.pending.has(group.group_id, topic, partition):
            return False
        if stored.expires_at_ms != NOT_SAID:
            return now_ms >= stored.expires_at_ms
        return now_ms - began_ms >= self._retention_ms
