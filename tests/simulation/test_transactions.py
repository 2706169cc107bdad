"""Seeds with transactions: atomic, read only when they are committed, never left open, whatever fails.

HEADRACE_TRANSACTION_SEEDS says how many, HEADRACE_TRANSACTION_DAMAGE_SEEDS how many with damaged files. A
failing one says how to replay it.
"""

from __future__ import annotations

import os

import pytest

from tests.simulation.damage_seeds import FIRST_DAMAGED
from tests.simulation.guards import search
from tests.simulation.run import Outcome
from tests.simulation.transaction_run import run_transactions

DAMAGED = int(os.environ.get("HEADRACE_TRANSACTION_DAMAGE_SEEDS", "40"))
COUNT = int(os.environ.get("HEADRACE_TRANSACTION_SEEDS", "200"))
PER_TEST = 8
LEADERS_COME_AND_GO = ("kill", "bounce", "suspect", "prefer")
"""So a coordinator is lost at any step of a transaction, and so are the leaders that markers go to."""
LATE_MESSAGES = ("slow path", "stall", "reset", "weather")


def judged(outcome: Outcome) -> Outcome:
    assert outcome.failure is None, (
        f"{outcome.failure}\n{outcome.state}\n"
        f"replay: python -m tests.simulation.transaction_run {outcome.seed} {outcome.seed + 1}"
    )
    return outcome


@pytest.mark.parametrize("first", range(0, COUNT, PER_TEST))
def test_transactions_are_atomic_whatever_fails(first: int) -> None:
    for seed in range(first, min(first + PER_TEST, COUNT)):
        judged(run_transactions(seed))


@pytest.mark.parametrize("first", range(FIRST_DAMAGED, FIRST_DAMAGED + DAMAGED, PER_TEST))
def test_nothing_aborted_is_read_whatever_the_files_say(first: int) -> None:
    for seed in range(first, min(first + PER_TEST, FIRST_DAMAGED + DAMAGED)):
        judged(run_transactions(seed))


def test_the_absence_of_their_checksums_is_noticed() -> None:
    tried, found = search("side_files", iter(range(FIRST_DAMAGED, FIRST_DAMAGED + 200)))
    assert found is not None, f"not in {tried} seeds"


@pytest.mark.parametrize("faults", [LEADERS_COME_AND_GO, LATE_MESSAGES], ids=["leaders", "messages"])
def test_transactions_survive(faults: tuple[str, ...]) -> None:
    outcomes = [judged(run_transactions(seed, faults=faults)) for seed in range(500, 505)]
    assert sum(outcome.acknowledged for outcome in outcomes) > 30, "a verdict over nothing proves nothing"


def test_a_seed_is_one_run() -> None:
    first, second = run_transactions(3), run_transactions(3)
    assert first.trace == second.trace
    assert first.fingerprint == second.fingerprint
