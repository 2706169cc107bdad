"""Proof that the simulation can see: without a safeguard it finds what the safeguard keeps.

`python -m tests.simulation.tier --guards` says how many seeds each takes. Here the rare ones begin a little
before the seed that finds them, so that the search is short.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Final

import pytest

from headrace.tier.safeguards import TierSafeguards
from tests.simulation.tier.forks import run_forks
from tests.simulation.tier.run import run_seed, switched_off

_MOST: Final = 150
BEGIN: Final = {
    "higher_epoch_stops": 55,
    "own_or_older_garbage": 80,
    "claim_before_sweep": 1000,
    "epochs_compared": 100,
    "fork_registered_first": 50,
}
OF_FORKS: Final = {"fork_registered_first", "forks_hold"}
RULES: Final = {
    "below_high_watermark": 2,
    "below_last_stable": 2,
    "conditional_writes": 3,
    "higher_epoch_stops": 4,
    "stored_before_named": 1,
    "own_reading": 5,
    "unknown_is_not_empty": 6,
    "each_offset_once": 7,
    "listed_in_pages": 8,
    "own_or_older_garbage": 8,
    "garbage_has_age": 8,
    "claim_before_sweep": 8,
    "new_attempt": 9,
    "settle_first": 9,
    "claim_before_begin": 14,
    "begin_at_tier_end": 14,
    "epochs_compared": 14,
    "manifest_before_objects": 16,
    "grace": 16,
    "fork_registered_first": 18,
    "forks_hold": 18,
}


def failure_of(seed: int, name: str, *, is_off: bool) -> Exception | None:
    without = name if is_off else None
    if name in OF_FORKS:
        return run_forks(seed, without=without)[0]
    return run_seed(seed, without=without).failure


@pytest.mark.parametrize(
    "name", [pytest.param(name, id=f"tier_invariant_{rule:02}-{name}") for name, rule in RULES.items()]
)
def test_without_it_harm_is_found(name: str) -> None:
    first = BEGIN.get(name, 0)
    for seed in range(first, first + _MOST):
        failure = failure_of(seed, name, is_off=True)
        if failure is not None:
            assert failure_of(seed, name, is_off=False) is None, f"seed {seed} fails with it as well"
            print(f"{name}: seed {seed}: {failure}")
            return
    pytest.fail(f"{name} is off, and nobody noticed in {_MOST} seeds")


def test_every_safeguard_is_tried() -> None:
    assert [each.name for each in fields(TierSafeguards)] == list(RULES)
    assert not switched_off("grace+own_reading").grace
    with pytest.raises(TypeError):
        switched_off("nothing")
