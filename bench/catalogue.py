"""Every case of the bench, in the order in which it runs."""

from __future__ import annotations

from collections.abc import Sequence

from bench.case import Case
from bench.cases import (
    cold_read,
    compaction,
    consume,
    group_memory,
    groups,
    partitions,
    produce,
    rebalances,
    replicated,
    resting,
    transactions,
)

CASES: list[Case] = [
    *resting.CASES,
    *produce.CASES,
    *consume.CASES,
    *partitions.CASES,
    *cold_read.CASES,
    *compaction.CASES,
    *groups.CASES,
    *rebalances.CASES,
    *group_memory.CASES,
    *transactions.CASES,
    *replicated.CASES,
]
# Enough to show that every part of the bench works, in under a minute.
QUICK = (
    "start",
    "small",
    "produce-16k",
    "produce-1k-6p",
    "consume-100",
    "latency",
    "commits-10",
    "rebalance-server",
    "transactions-v2",
    "replicated-100-6p",
)


def select(names: Sequence[str]) -> list[Case]:
    """The cases with these names, or of the groups with these names; all of them without a name."""
    known = {case.name for case in CASES} | {case.group for case in CASES}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"no such case: {', '.join(unknown)} (known: {', '.join(sorted(known))})")
    return [case for case in CASES if not names or case.name in names or case.group in names]
