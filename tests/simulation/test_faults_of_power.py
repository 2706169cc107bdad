"""Faults that no kernel can make without its machine: the power is lost, of one host or of all of them.

What a disk has of unsynced writes then is drawn: none of a sector, some, all, the file longer or shorter.
"""

from __future__ import annotations

from tests.simulation.generator import Plan
from tests.simulation.run import Outcome, run_seed


def suffering(fault: str, *, synced: bool) -> Plan:
    return Plan(
        brokers=3,
        partitions=2,
        replication=3,
        min_in_sync=2,
        synced=synced,
        producers=2,
        consumers=1,
        pause=0.1,
        seconds=15.0,
        faults=(fault,),
        gap=1.0,
    )


def run(seed: int, fault: str, *, synced: bool) -> Outcome:
    outcome = run_seed(seed, plan=suffering(fault, synced=synced))
    assert outcome.failure is None, f"seed {seed}: {outcome.failure}\n{outcome.state}"
    assert outcome.acknowledged > 10
    return outcome


def losses(outcomes: list[Outcome]) -> int:
    return sum("power" in line for outcome in outcomes for line in outcome.trace if "***" in line)


def test_fault_02_the_power_of_one_host() -> None:
    outcomes = [run(seed, "power", synced=False) for seed in range(10)]
    assert losses(outcomes) > 10


def test_fault_03_the_power_of_all_hosts_in_synced_mode() -> None:
    outcomes = [run(seed, "power everywhere", synced=True) for seed in range(10)]
    assert losses(outcomes) > 10
