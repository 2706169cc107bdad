"""Which small files are rewritten together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Packing(NamedTuple):
    small_bytes: int
    target_bytes: int
    least_files: int


def pack(sizes: Mapping[str, int], packing: Packing) -> list[list[str]]:
    """Groups of neighbours by name, each up to the target. Batches in a name grow, so neighbours are of one
    time.

    A group of fewer than `least_files` is left for later, unless it fills the target.
    """
    groups: list[list[str]] = []
    group: list[str] = []
    total = 0

    def close() -> None:
        if len(group) > 1 and (len(group) >= packing.least_files or total >= packing.target_bytes / 2):
            groups.append(list(group))
        group.clear()

    for name, size in sorted(sizes.items()):
        if size >= packing.small_bytes:
            continue
        if group and total + size > packing.target_bytes:
            close()
            total = 0
        group.append(name)
        total += size
    close()
    return groups
