"""Consume, transform, produce while brokers and clients are killed: the output is the input, in its order."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.chaos.exactly_once import Task, differences, run


@pytest.mark.timeout(300)
def test_some_thousand_records_exactly_once(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    seed = int(os.environ.get("HEADRACE_CHAOS_SEED", str(random.SystemRandom().randrange(10**6))))
    target = str(request.config.getoption("--target"))
    task = Task(seed, 6000, rate=200, target=target, life=(3.0, 8.0), between_kills=(2.0, 4.0), within=180)
    result = run(task, tmp_path)
    print(result)
    assert result.good, str(result)
    assert result.copied == task.records
    assert result.events["brokers killed"] >= 3, "hardly any broker was killed"
    assert result.events["lives of copiers"] > 2 * task.copiers, "hardly any copier was killed"


WANTED = [b"a", b"b", b"c", b"d"]


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ([b"a", b"b", b"d"], "1 missing"),
        ([b"a", b"b", b"c"], "1 missing"),
        ([b"a", b"b", b"b", b"c", b"d"], "1 more than once"),
        ([b"a", b"b", b"c", b"d", b"e"], "1 not asked for"),
        ([b"a", b"c", b"b", b"d"], "out of order from place 1 on"),
    ],
    ids=["lost", "last one lost", "twice", "invented", "another order"],
)
def test_every_difference_is_seen(found: list[bytes], told: str) -> None:
    assert told in "".join(differences(WANTED, found, "p"))


def test_what_is_the_same_has_no_difference() -> None:
    assert differences(WANTED, list(WANTED), "p") == []
