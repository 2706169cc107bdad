"""Which offset of a group is committed at the target, given what is committed on both sides. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from headrace.client.group_offsets import Committed
from headrace.core.ids import TopicPartition

Offsets = Mapping[TopicPartition, Committed]


def is_wanted(group_id: str, patterns: list[str]) -> bool:
    return any(fnmatchcase(group_id, pattern) for pattern in patterns)


def to_commit(
    there: Offsets, here: Offsets, ends: Mapping[TopicPartition, int], *, only_forward: bool = False
) -> dict[TopicPartition, int]:
    """Offsets are the same on both sides. One beyond the end here becomes the end: to begin there repeats
    nothing and misses nothing. Once clients may have read on here, nothing goes back."""
    wanted = {}
    for partition, committed in there.items():
        end = ends.get(partition)
        if end is None:
            continue
        offset, known = min(committed.offset, end), here.get(partition)
        if known is None or (offset > known.offset if only_forward else offset != known.offset):
            wanted[partition] = offset
    return wanted
