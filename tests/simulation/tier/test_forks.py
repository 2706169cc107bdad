"""Seeds of an origin and its forks on a faulty store. `run_forks(SEED)` is one of them again."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.simulation.tier.forks import run_forks

COUNT = int(os.environ.get("HEADRACE_TIER_FORK_SEEDS", "100"))
PER_TEST = 20


@pytest.mark.parametrize("first", range(0, COUNT, PER_TEST))
def test_tier_invariant_18_what_origin_and_forks_name_is_there(first: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(first, min(first + PER_TEST, COUNT)):
        failure, each = run_forks(seed)
        assert failure is None, f"seed {seed}: {failure!r}"
        counts += each
    for name in ("forks", "ForkJob", "CollectJob", "PurgeJob", "StartJob", "gc"):
        assert counts[name] > 2, f"{name}: {counts}"  # a verdict over nothing proves nothing
