"""Proof that the simulation can see: without a safeguard it finds a violation.

Those that show within a few seeds are tried always, the others with HEADRACE_SIMULATION_SAFEGUARDS=1. Two are
behind another safeguard in a whole broker, so no seed can miss them: the scenarios of replication show them.
"""

from __future__ import annotations

import os
from typing import Final

import pytest

from tests.simulation.run import run_seed
from tests.simulation.switched_off import safeguard_names

QUICK: Final = (
    "reconcile_before_append",
    "min_isr_for_high_watermark",
    "high_watermark_admission",
)
MOST_SEEDS: Final = 3000
BEHIND_ANOTHER: Final = {
    "stale_answer_dropped": "a fetcher asks anew after every change of role, and drops what it asked before",
    "truncate_on_every_epoch": "a broker applies every row, and one lies between two terms of one leader",
}

ALL: Final = os.environ.get("HEADRACE_SIMULATION_SAFEGUARDS") == "1"


@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    "name", [name for name in safeguard_names() if name in QUICK or (ALL and name not in BEHIND_ANOTHER)]
)
def test_without_it_a_violation_is_found(name: str) -> None:
    for seed in range(MOST_SEEDS if ALL else 60):
        outcome = run_seed(seed, without=name)
        if outcome.failure is not None:
            print(f"{name}: seed {seed}: {outcome.failure}")
            return
    pytest.fail(f"{name} is off, and nobody noticed")
