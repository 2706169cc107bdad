"""What is committed: the smallest end offset over the maximal ISR. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.replication.progress import FollowerProgress


def committed_bytes(uncommitted: int, moved: int, above: int) -> int:
    """About how many of `uncommitted` bytes the high watermark passes that moves by `moved` of the `above`
    offsets that they take."""
    return uncommitted if moved >= above else uncommitted * moved // above


def committed_end(own_end: int, counted: Iterable[FollowerProgress]) -> int:
    """Rule 3. A follower that has said nothing in this epoch has the end -1, which holds everything back."""
    for follower in counted:
        if follower.end_offset < own_end:
            own_end = follower.end_offset
    return own_end
