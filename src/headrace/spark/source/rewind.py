"""A group that is ahead of its query, which sets it back: what to tell. Pure.

A query never leaves its group ahead. So this is a new checkpoint that begins before the group, an old one
that came back from a copy, or a group that somebody else commits to. The checkpoint counts in any case. But
whoever lost one may have wanted to go on where the group was, and cannot see any more where that is.
"""

from __future__ import annotations

from headrace.spark.lake.checkpoint import Offsets


def warning(group: str, committed: Offsets, position: Offsets) -> str | None:
    """None where the group is not ahead. With all offsets: they are nowhere else from now on."""
    start: dict[str, dict[int, int]] = {}
    moves = []
    for (topic, partition), at in sorted(position.items()):
        before = committed.get((topic, partition), 0)
        start.setdefault(topic, {})[partition] = max(before, at)
        if before > at:
            moves.append(f"{topic}, partition {partition}: from {before} to {at}")
    if not moves:
        return None
    return (
        f"group {group} was ahead of this query and is set back ({'; '.join(moves)}): the query reads those "
        "records once more. If it was to go on where the group was, stop it and start it with a new "
        f'checkpoint and start={start}; with start="group" it would have begun there. If something else '
        "commits to the group, give the query a group of its own"
    )
