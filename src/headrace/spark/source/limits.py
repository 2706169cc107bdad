"""How far a batch goes that may have so many records. Pure."""

from __future__ import annotations

from headrace.spark.lake.checkpoint import Offsets

Partition = tuple[str, int]


def within(begin: Offsets, end: Offsets, most: int) -> Offsets:
    """At most `most` records, shared as the partitions' backlogs are, so that all catch up together.

    Each partition that has some gets at least one, if there are enough for that: none waits for ever.
    """
    backlog = {each: end[each] - begin[each] for each in end if end[each] > begin[each]}
    total = sum(backlog.values())
    if total <= most:
        return dict(end)
    least = 1 if most >= len(backlog) else 0
    room = most - least * len(backlog)
    rest = total - least * len(backlog)
    shares = {each: divmod((many - least) * room, rest) for each, many in backlog.items()}
    taken = {each: least + share[0] for each, share in shares.items()}
    # What rounding left over goes to those that it took most from.
    for each in sorted(shares, key=lambda one: (-shares[one][1], one))[: most - sum(taken.values())]:
        taken[each] += 1
    return {each: begin[each] + taken[each] if each in taken else end[each] for each in end}
