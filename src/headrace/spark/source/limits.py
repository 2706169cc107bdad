"""How far a batch goes, by limits on records and on bytes. Pure."""

from __future__ import annotations

from collections.abc import Mapping

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


def records_for(
    begin: Offsets, end: Offsets, most_bytes: int, sizes: Mapping[Partition, float]
) -> int | None:
    """How many records of this backlog are about `most_bytes`; None where all are. At least one.

    `sizes` are bytes for each offset. A partition without is taken as the average of the others.
    """
    backlog = {each: end[each] - begin[each] for each in end if end[each] > begin[each]}
    known = {each: sizes[each] for each in backlog if each in sizes}
    if not known:
        return None
    average = sum(known.values()) / len(known)
    total = sum(many * known.get(each, average) for each, many in backlog.items())
    if total <= most_bytes:
        return None
    return max(1, int(sum(backlog.values()) * most_bytes / total))


def estimate(begin: Offsets, end: Offsets, sizes: Mapping[Partition, float]) -> float:
    """Bytes of a batch, as far as sizes are known."""
    known = [size for each, size in sizes.items() if each in end]
    average = sum(known) / len(known) if known else 0.0
    return sum(
        (end[each] - begin[each]) * sizes.get(each, average) for each in end if end[each] > begin[each]
    )
