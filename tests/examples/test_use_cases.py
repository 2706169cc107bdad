"""The use cases run by their one command, small and without Spark; and their checks see what is wrong.

What needs Spark is in tests/spark/test_use_cases.py. `poe examples` runs all of them at their full size.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.testing import Cluster

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str, *command: str, expected: int = 0) -> str:
    """What it prints."""
    ran = subprocess.run(
        command,
        cwd=EXAMPLES / name,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=280,
        check=False,
    )
    assert ran.returncode == expected, ran.stdout
    return ran.stdout


def test_jobs_are_shared_retried_and_done_once() -> None:
    told = example("messaging", "./run.sh", "--jobs", "400")
    assert "every job was done once or is a dead letter" in told
    assert "ben was killed" in told
    assert "dead letters              8" in told


def test_lines_of_many_hosts_are_added_up_once() -> None:
    told = example("metrics", "./run.sh", "--lines", "40", "--seconds", "0.3")
    assert "all agree, by host and minute" in told
    assert "lines in the log         4,800" in told


def test_log_and_lookup_agree_while_writer_and_lookup_are_killed() -> None:
    told = example("event-sourcing", "./run.sh", "--no-spark", "--tellers", "4", "--commands", "40")
    assert "log and lookup service agree on every account" in told
    assert "the writer was killed" in told


LOST_JOB = """
import sys, pathlib, demo
from check import check
from jobs import Job, create_topics
from outbox import Outbox
outbox = Outbox(pathlib.Path(sys.argv[2]))
create_topics(sys.argv[1])
demo.send(sys.argv[1], [Job("done", 0), Job("lost", 0)])
outbox.send(Job("done", 0), 1, "ann")
print(check(sys.argv[1], outbox))
raise SystemExit(check(sys.argv[1], outbox).holds)
"""
DOUBLED_LINE = """
import sys, json
from dataclasses import asdict
from check import check
from confluent_kafka import Producer
from hosts import Shipped
from logs import LINES, MINUTES, Line, create_topics
from rollups import Rollup
create_topics(sys.argv[1])
producer = Producer({"bootstrap.servers": sys.argv[1]})
line = Line(0, "INFO", 5, "GET /")
producer.produce(LINES, line.encode(), "host", timestamp=60_000)
doubled = Rollup("host", 1)
doubled.add(line)
doubled.add(line)
producer.produce(MINUTES, json.dumps(asdict(doubled)), "host 1")
assert producer.flush(30) == 0
verdict = check(sys.argv[1], [Shipped("host", 1, 0)])
print(verdict.differences)
raise SystemExit(verdict.holds)
"""
EVENT_TWICE = """
import sys
from accounts import Account, Answer, Event
from check import check
from confluent_kafka import Producer
from tellers import Done
from topics import ANSWERS, EVENTS, create_topics
create_topics(sys.argv[1])
producer = Producer({"bootstrap.servers": sys.argv[1]})
for version in (1, 2):
    event = Event("one command", "account-0", version, "deposited", 5, 5 * version)
    producer.produce(EVENTS, event.encode(), "account-0")
producer.produce(ANSWERS, Answer("one command", True, "", 1, 5).encode(), "account-0")
assert producer.flush(30) == 0
verdict = check(sys.argv[1], Done(1, 0, 0, {"account-0": 5}))
verdict.compare("a view", {"account-0": Account(1, 5)})
print(verdict.differences)
raise SystemExit(verdict.holds)
"""


@pytest.mark.parametrize(
    ("name", "program", "told"),
    [
        ("messaging", LOST_JOB, ["lost={'lost'}"]),
        ("metrics", DOUBLED_LINE, ["host 1: the log has", "'lines=2"]),
        ("event-sourcing", EVENT_TWICE, ["carried out twice", "the tellers counted", "a view has"]),
    ],
)
def test_a_check_sees_what_is_wrong(
    name: str, program: str, told: list[str], headrace_cluster: Cluster, tmp_path: Path
) -> None:
    found = example(
        name, sys.executable, "-c", program, headrace_cluster.bootstrap, str(tmp_path / "outbox.db")
    )
    assert all(words.strip("'") in found for words in told), found
