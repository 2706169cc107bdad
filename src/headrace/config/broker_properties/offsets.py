"""The offsets that groups commit: how long they are kept, and how much may be noted with one."""

from __future__ import annotations

from headrace.config.declare import int32, int64


class OffsetProperties:
    offsets_retention_minutes = int32(
        "offsets.retention.minutes",
        10_080,
        "How long offsets are kept after the last member has left their group; of a group that never had "
        "members, after their commit.",
        at_least=1,
    )
    offsets_retention_check_interval_ms = int64(
        "offsets.retention.check.interval.ms",
        600_000,
        "How often the broker looks for offsets to drop.",
        at_least=1,
    )
    offset_metadata_max_bytes = int32(
        "offset.metadata.max.bytes",
        4_096,
        "The longest note that a client may store with an offset.",
    )
