"""A minute of chaos on real processes: librdkafka and Java, every kind of fault, and no anomaly.

HEADRACE_CHAOS_SEED repeats the plan of a run. `python -m tests.chaos --minutes 60` is the long form.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path

import pytest

from tests.chaos.network import unavailable
from tests.chaos.run import Plan, run
from tests.chaos.testbed import Equipment
from tests.checker.check import check
from tests.checker.forgery import FORGERIES
from tests.checker.history import History, Outcome

SECONDS = 60.0


def a_minute(request: pytest.FixtureRequest) -> Plan:
    seed = int(os.environ.get("HEADRACE_CHAOS_SEED", str(random.SystemRandom().randrange(10**6))))
    root = unavailable() is None
    equipment = Equipment(
        hosts=root, relays=True, faults=True, disk_megabytes=128 if root else 0, zookeepers=3
    )
    target = str(request.config.getoption("--target"))
    return Plan(seed, SECONDS, target=target, equipment=equipment, hold=(2.0, 6.0), rest=(1.0, 3.0))


@pytest.mark.timeout(400)
def test_a_minute_of_chaos(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    report = run(a_minute(request), tmp_path)
    print(report)
    assert report.good, str(report)
    assert report.verdict.acknowledged > 500, "there was hardly any load"
    assert report.faults, "nothing was done to the cluster"


@pytest.mark.timeout(400)
def test_a_minute_of_chaos_with_transactions(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    plan = replace(a_minute(request), java=False, producers=1, transactional=3)
    report = run(plan, tmp_path)
    print(report)
    assert report.good, str(report)
    transactions = report.verdict.transactions
    assert transactions[Outcome.OK] > 50, "there were hardly any transactions"
    assert transactions[Outcome.FAIL] > 5, "hardly anything was aborted"
    assert report.faults, "nothing was done to the cluster"
    # The verdict is worth something only if the same history with one lie in it is called bad.
    history = History.read(report.history)
    for kind, forge in FORGERIES.items():
        assert check(forge(history)).count(kind) > 0, f"a forged {kind.value} was not seen"
