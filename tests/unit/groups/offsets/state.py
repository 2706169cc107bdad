"""The whole state of a table as plain values, to be compared."""

from __future__ import annotations

from typing import Any

from headrace.groups.offsets.offsets import GroupOffsets


def state_of(offsets: GroupOffsets) -> dict[str, Any]:
    table = offsets.table
    groups = table.group_ids()
    return {
        "committed": {
            group_id: {topic: dict(partitions) for topic, partitions in table.of_group(group_id).items()}
            for group_id in sorted(groups)
        },
        "pending": {pid: dict(kept) for pid, kept in sorted(table.pending.by_producer.items())},
    }
