"""The whole state of a table as plain values, to be compared."""

from __future__ import annotations

from typing import Any

from headrace.groups.offsets.offsets import GroupOffsets
from headrace.groups.offsets.stored_offset import StoredOffset


def state_of(offsets: GroupOffsets) -> dict[str, Any]:
    table = offsets.table
    return {
        "committed": {
            group_id: {
                topic: {partition: _fields(stored) for partition, stored in partitions.items()}
                for topic, partitions in table.of_group(group_id).items()
            }
            for group_id in sorted(table.group_ids())
        },
        "pending": {
            producer_id: {key: _fields(stored) for key, stored in kept.items()}
            for producer_id, kept in sorted(table.pending.by_producer.items())
        },
    }


def _fields(stored: StoredOffset) -> tuple[object, ...]:
    return (
        stored.offset,
        stored.leader_epoch,
        stored.metadata,
        stored.committed_at_ms,
        stored.expires_at_ms,
        stored.topic_id,
        stored.record_offset,
    )
