"""Seeds with damaged files, and what they have found, each reduced to the few steps that it took.

HEADRACE_DAMAGE_SEEDS says how many; a failing one says how to replay it.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from headrace.testing.disk import SimulatedDisk
from tests.simulation.damage_seeds import FIRST_DAMAGED
from tests.simulation.run import run_seed
from tests.simulation.test_found_by_seeds import scene
from tests.simulation.test_seeds import all_hold

COUNT = int(os.environ.get("HEADRACE_DAMAGE_SEEDS", "40"))
FIRST = int(os.environ.get("HEADRACE_DAMAGE_FIRST_SEED", str(FIRST_DAMAGED)))
PER_TEST = 20
METADATA = "/data/__cluster_metadata-0/00000000000000000000.log"


@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, PER_TEST))
@pytest.mark.timeout(600)
def test_nothing_is_lost_while_a_whole_replica_is_there(first: int) -> None:
    all_hold(range(first, min(first + PER_TEST, FIRST + COUNT)))


@pytest.mark.timeout(600)
def test_seeds_damage_something() -> None:
    """A verdict over nothing proves nothing."""
    outcomes = [run_seed(seed) for seed in range(FIRST_DAMAGED + 900, FIRST_DAMAGED + 920)]
    assert sum(outcome.damages for outcome in outcomes) > 40
    assert sum(outcome.acknowledged for outcome in outcomes) > 500


@pytest.mark.parametrize(
    "damage",
    [
        lambda disk: disk.flip(METADATA, 8 * 200),
        lambda disk: disk.put(METADATA, b""),
        lambda disk: disk.put(METADATA, disk.content(METADATA)[:300]),
        lambda disk: disk.put(METADATA, disk.content("/data/t-0/00000000000000000000.log")),
        lambda disk: disk.lose(METADATA),
        lambda disk: disk.lose("/data/__cluster_metadata-0"),
    ],
    ids=["bit flipped", "emptied", "cut short", "another's", "missing", "folder missing"],
)
def test_a_damaged_copy_of_the_metadata_is_fetched_anew(damage: Callable[[SimulatedDisk], None]) -> None:
    """The broker once did not start again, and asked for a backup of what its peers have."""
    with scene() as it:
        host = next(each for each in it.cluster.hosts if each not in it.in_office())
        host.before_start = lambda: damage(host.disk)
        host.stop()
        it.cluster.run_until(lambda: host.before_start is None, 10, "it has stopped, and starts again")
        it.cluster.run_until(it.is_whole, 30, "it is back and in sync")
