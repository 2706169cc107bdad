"""Seeds of a partition whose history goes to a faulty store. HEADRACE_TIER_SEEDS says how many."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.simulation.tier.run import run_seed

COUNT = int(os.environ.get("HEADRACE_TIER_SEEDS", "200"))
FIRST = int(os.environ.get("HEADRACE_TIER_FIRST_SEED", "0"))
PER_TEST = 20


@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, PER_TEST))
def test_the_history_stays_true_and_everything_heals(first: int) -> None:
    for seed in range(first, min(first + PER_TEST, FIRST + COUNT)):
        outcome = run_seed(seed)
        assert outcome.failure is None, (
            f"{outcome.where}\nreplay: python -m tests.simulation.tier --seed {seed} --trace"
        )


def test_seeds_do_something() -> None:
    """A verdict over nothing proves nothing."""
    counts: Counter[str] = Counter()
    for seed in range(100):
        counts.update(run_seed(seed).counts)
    for name in (
        "segments",
        "deleted locally",
        "elections",
        "begun uncleanly",
        "begun at the tier's end",
        "begun at the leader's",
        "records deleted",
        "topics deleted",
        "starts moved",
        "with pages",
        "garbage",
        "SettleJob",
        "SweepJob",
        "CollectJob",
        "PurgeJob",
    ):
        assert counts[name] > 2, f"{name}: {counts}"


def test_a_seed_is_one_run() -> None:
    assert run_seed(13).counts == run_seed(13).counts
