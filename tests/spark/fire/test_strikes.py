from __future__ import annotations

import os
from pathlib import Path

from tests.spark.fire import batches
from tests.spark.fire.strikes import Target, planned


def test_a_seed_is_a_plan() -> None:
    assert planned(7, 5) == planned(7, 5)
    assert len({tuple(planned(seed, 5)) for seed in range(20)}) == 20


def test_each_target_is_hit_before_any_is_hit_again() -> None:
    for seed in range(20):
        assert {strike.target for strike in planned(seed, 3)} == {*Target} - {Target.STORE}
        assert {strike.target for strike in planned(seed, 4, store=True)} == set(Target)
    alone = planned(1, 4, brokers=False)
    assert {strike.target for strike in alone} == {Target.DRIVER, Target.EXECUTOR}


def test_a_batch_is_in_flight_from_its_planning_to_its_end(tmp_path: Path) -> None:
    checkpoint = tmp_path / "somewhere" / "checkpoint"
    for log in ("offsets", "commits"):
        (checkpoint / log).mkdir(parents=True)
    # Without it this is a directory of a table that happens to have the name.
    assert batches.look(tmp_path) == batches.Batches()
    (checkpoint / "metadata").touch()

    def entry(log: str, batch: str, second: int) -> None:
        (checkpoint / log / batch).touch()
        os.utime(checkpoint / log / batch, (second, second))

    entry("offsets", "0", 10)
    assert batches.look(tmp_path).in_flight
    entry("commits", "0", 14)
    entry("offsets", ".1.tmp", 15)
    entry("offsets", ".0.crc", 15)
    seen = batches.look(tmp_path)
    assert (seen.planned, seen.over, seen.seconds, seen.in_flight) == (1, 1, 4.0, False)
    entry("offsets", "1", 15)
    assert batches.look(tmp_path).in_flight
