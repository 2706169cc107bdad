"""A minute of chaos on real processes: librdkafka and Java, every kind of fault, and no anomaly.

HEADRACE_CHAOS_SEED repeats the plan of a run. `python -m tests.chaos --minutes 60` is the long form.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.chaos.network import unavailable
from tests.chaos.run import Plan, run
from tests.chaos.testbed import Equipment

SECONDS = 60.0


@pytest.mark.timeout(400)
def test_a_minute_of_chaos(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    seed = int(os.environ.get("HEADRACE_CHAOS_SEED", str(random.SystemRandom().randrange(10**6))))
    root = unavailable() is None
    equipment = Equipment(
        hosts=root, relays=True, faults=True, disk_megabytes=128 if root else 0, zookeepers=3
    )
    target = str(request.config.getoption("--target"))
    plan = Plan(seed, SECONDS, target=target, equipment=equipment, hold=(2.0, 6.0), rest=(1.0, 3.0))
    report = run(plan, tmp_path)
    print(report)
    assert report.good, str(report)
    assert report.verdict.acknowledged > 500, "there was hardly any load"
    assert report.faults, "nothing was done to the cluster"
