"""Seeds of whole clusters. HEADRACE_SIMULATION_SEEDS says how many; a failing one says how to replay it.

HEADRACE_SIMULATION_THEMED_SEEDS says how many of those that have a theme.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from random import Random

import pytest

from tests.simulation.run import run_seed
from tests.simulation.themes import FIRST_THEMED, THEMES, draw_themed

COUNT = int(os.environ.get("HEADRACE_SIMULATION_SEEDS", "200"))
FIRST = int(os.environ.get("HEADRACE_SIMULATION_FIRST_SEED", "0"))
THEMED = int(os.environ.get("HEADRACE_SIMULATION_THEMED_SEEDS", "30"))
PER_TEST = 10
"""Enough that a worker is not idle for long, few enough that a failure is found soon."""


@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, PER_TEST))
def test_nothing_is_lost_and_everything_heals(first: int) -> None:
    all_hold(range(first, min(first + PER_TEST, FIRST + COUNT)))


@pytest.mark.parametrize("first", range(FIRST_THEMED, FIRST_THEMED + THEMED, PER_TEST))
def test_nothing_is_lost_where_faults_meet(first: int) -> None:
    all_hold(range(first, min(first + PER_TEST, FIRST_THEMED + THEMED)))


def all_hold(seeds: range) -> None:
    for seed in seeds:
        outcome = run_seed(seed)
        assert outcome.failure is None, (
            f"{outcome.failure}\n{outcome.state}\nreplay: python -m tests.simulation --seed {seed} --trace"
        )
    gc.collect()  # a run switches it off, and a process that runs thousands would keep most of them


def test_every_theme_comes_up() -> None:
    drawn = {draw_themed(Random(seed)).theme for seed in range(FIRST_THEMED, FIRST_THEMED + 30)}
    assert drawn == {theme.name for theme in THEMES}


def test_seeds_do_something() -> None:
    """A verdict over nothing proves nothing."""
    outcomes = [run_seed(seed) for seed in range(900, 920)]
    assert sum(outcome.acknowledged for outcome in outcomes) > 500
    assert sum(outcome.leaderships for outcome in outcomes) > 60
    assert len({outcome.fingerprint for outcome in outcomes}) == 20


def test_a_seed_is_one_run_in_every_process() -> None:
    """Also in another process, whose sets of strings have another order."""
    seed = 5
    here = [run_seed(seed), run_seed(seed)]
    assert here[0].trace == here[1].trace
    script = f"from tests.simulation.run import run_seed; print(run_seed({seed}).fingerprint)"
    for order in ("0", "1"):
        ran = subprocess.run(
            [sys.executable, "-c", script],
            env=os.environ | {"PYTHONHASHSEED": order},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        assert int(ran.stdout) == here[0].fingerprint == here[1].fingerprint
