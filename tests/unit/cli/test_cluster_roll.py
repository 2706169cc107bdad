"""`headrace cluster roll` between brokers: where it stands when it is interrupted, and what it fills in."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from uuid import UUID

import pytest
from click.testing import CliRunner, Result

from headrace.cli import cluster_roll
from headrace.cli.main import cli
from headrace.client import health
from headrace.client.broker_health import BrokerHealth
from headrace.client.health import BrokerView, ClusterView, Observation
from headrace.client.topics import PartitionState, TopicState
from headrace.config.health import STARTED_MS

Execute = Callable[[int], int]


class Fleet:
    """Three brokers of which the first is the controller, and what a command does to them."""

    def __init__(self) -> None:
        self.started = {1: 1000, 2: 1000, 3: 1000}
        self.commands: list[str] = []
        self.execute: Execute = self.restart

    def restart(self, broker_id: int) -> int:
        self.started[broker_id] += 1
        return 0

    def run(self, words: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        command = words[-1].partition("\n")[2]
        self.commands.append(command)
        return subprocess.CompletedProcess(words, self.execute(int(command.split()[1])))

    def look(self, *_: object, **__: object) -> cluster_roll._Look:
        brokers = {
            number: BrokerHealth(True, {"zookeeper.answers": "true", STARTED_MS: str(at)})
            for number, at in self.started.items()
        }
        views = [BrokerView(number, f"kafka{number}", 9092, None, True) for number in brokers]
        topic = TopicState("t", UUID(int=1), False, [PartitionState(0, 1, 0, (1, 2, 3), (1, 2, 3), [])])
        seen = Observation(ClusterView("id", 1, views), [topic], {"t": 2}, {}, {}, brokers)
        return cluster_roll._Look(seen, health.judge(seen))


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> Fleet:
    made = Fleet()
    monkeypatch.setattr(cluster_roll, "with_cluster", made.look)
    monkeypatch.setattr(subprocess, "run", made.run)
    return made


def roll(*arguments: str, code: int) -> Result:
    result = CliRunner().invoke(cli, ["cluster", "roll", *arguments], prog_name="headrace")
    assert result.exit_code == code, (result.output, result.exception)
    return result


def test_the_controller_is_restarted_last(fleet: Fleet) -> None:
    done = roll("--exec", "restart {broker} at {host}:{port} in {rack} ${HOME}", code=0)
    assert done.stdout == "restarted 3 brokers\n"
    assert fleet.commands == [f"restart {n} at kafka{n}:9092 in '' ${{HOME}}" for n in (2, 3, 1)]


def test_some_are_named_and_some_are_skipped(fleet: Fleet) -> None:
    fleet.started[3] = 5000
    told = json.loads(roll("--exec", "restart {broker}", "--since", "4000", "--json", code=0).stdout)
    assert (told["restarted"], told["skipped"], told["left"]) == ([2, 1], [3], [])
    told = json.loads(roll("--exec", "r {broker}", "--broker", "3", "--broker", "3", "--json", code=0).stdout)
    assert told["restarted"] == [3]
    assert "there is no broker 9" in roll("--exec", "r {broker}", "--broker", "9", code=1).stderr


def test_ctrl_c_says_where_it_stood_and_how_to_go_on(fleet: Fleet) -> None:
    def interrupted(broker_id: int) -> int:
        if broker_id == 3:
            raise KeyboardInterrupt
        return fleet.restart(broker_id)

    fleet.execute = interrupted
    said = roll("--exec", "restart {broker}", code=130).stderr.splitlines()[-1]
    assert said.startswith(
        "interrupted; restarted: 2; left: 1, 3 (broker 3 has begun to restart); with --since 20"
    )


def test_no_further_broker_is_touched_after_a_doubt(fleet: Fleet) -> None:
    fleet.execute = lambda broker_id: 4 if broker_id == 3 else fleet.restart(broker_id)
    told = json.loads(roll("--exec", "restart {broker}", "--json", code=3).stdout)
    assert (told["restarted"], told["left"]) == ([2], [1, 3])
    assert told["stopped"] == "the command for broker 3 failed with 4: restart 3"


def test_what_to_run_has_to_be_said(fleet: Fleet) -> None:
    assert "give --exec COMMAND, or --check" in roll(code=2).stderr
    assert fleet.commands == []
