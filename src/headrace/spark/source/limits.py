"""How far a batch goes that may have so many records. Pure."""

from __future__ import annotations

from headrace.spark.lake.checkpoint import Offsets

Partition = tuple[str, int]


def within(begin: Offsets, end: Offsets, most: int) -> Offsets:
    """At most `most` records, shared as the partitions' backlogs are, so that all catch up together.

    Each partition that has some gets at least one, if there are enough for that, and else one in its turn:
    none waits for ever.
    """
    backlog = {each: end[each] - begin[each] for each in end if end[each] > begin[each]}
    total = sum(backlog.values())
    if total <= most:
        return dict(end)
    if most < len(backlog):
        return {**end, **{each: begin[each] for each in backlog}, **_in_turn(begin, backlog, most)}
    room = most - len(backlog)
    rest = total - len(backlog)
    shares = {each: divmod((many - 1) * room, rest) for each, many in backlog.items()}
    taken = {each: 1 + share[0] for each, share in shares.items()}
    # What rounding left over goes to those that it took most from.
    for each in sorted(shares, key=lambda one: (-shares[one][1], one))[: most - sum(taken.values())]:
        taken[each] += 1
    return {each: begin[each] + taken[each] if each in taken else end[each] for each in end}


def _in_turn(begin: Offsets, backlog: Offsets, most: int) -> Offsets:
    """One record of each of the next `most` partitions that have some.

    What was read so far tells whose turn it is: each batch begins no further on than the one before it ended.
    All partitions are counted, also those without backlog, so that this holds whichever have some.
    """
    order = sorted(begin)
    turn = sum(begin.values()) % len(order)
    waiting = [each for each in order[turn:] + order[:turn] if each in backlog]
    return {each: begin[each] + 1 for each in waiting[:most]}
