"""Random walks keep every committed record, and see it where the rule that keeps it is switched off."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.replication.safeguards import ALL_ON, Safeguards
from tests.scenario.replication_walk import Walk
from tests.scenario.replication_world import Violation

STEPS = 150


@pytest.mark.parametrize("seed", range(40))
def test_a_walk_loses_nothing(seed: int) -> None:
    walk = Walk(seed)
    try:
        walk.go(STEPS)
    except Violation as violation:
        pytest.fail("\n".join((*walk.trace, f"seed {seed}: {violation}")))
    assert walk.world.committed


@pytest.mark.parametrize("safeguard", ["reconcile_before_append", "truncate_on_every_epoch"])
def test_walks_see_a_loss(safeguard: str) -> None:
    """Those that a walk meets soon. Each of them all has a scenario that goes straight to it."""
    with pytest.raises(Violation):
        walk_all(replace(ALL_ON, **{safeguard: False}))


def walk_all(safeguards: Safeguards) -> None:
    for seed in range(20):
        Walk(seed, safeguards).go(STEPS)
