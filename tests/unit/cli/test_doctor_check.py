"""`headrace doctor`: what it prints, its exit codes, and commands that go to the same cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from headrace.cli import doctor_check
from headrace.cli.main import cli
from headrace.client.cluster import Cluster
from headrace.doctor.checks.registry import CHECKS
from headrace.doctor.facts import Facts, Setting
from headrace.doctor.model import Unknown
from tests.unit.doctor.made_up import BROKER_SETTINGS, TOPIC_SETTINGS, facts, partition, topic


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Facts]:
    """What the next look collects."""
    prepared = [facts()]

    async def gather(_cluster: Cluster, _seconds: float) -> Facts:
        return prepared[-1]

    monkeypatch.setattr(doctor_check, "gather", gather)
    return prepared


def doctor(*arguments: str, code: int, **options: Any) -> Result:
    result = CliRunner().invoke(cli, ["doctor", *arguments], prog_name="headrace", **options)
    assert result.exit_code == code, (result.output, result.exception)
    return result


def test_nothing_is_found(seen: list[Facts]) -> None:
    assert doctor(code=0).stdout == f"nothing was found; {len(CHECKS)} checks\n"
    assert doctor("check", "disks", code=0).stdout == "nothing was found; 2 checks\n"
    assert len(seen) == 1


def test_the_worst_comes_first_with_its_reason_and_its_command(seen: list[Facts], tmp_path: Path) -> None:
    strict = {**TOPIC_SETTINGS, "min.insync.replicas": Setting("3", True)}
    left = [topic("orders", partition(0, [1, 2, 3], [1]))]
    seen.append(facts(left, topic_settings={"orders": strict}))
    file = tmp_path / "my client.properties"
    file.write_text("client.id=x\n")
    told = doctor("-b", "kafka1:9092", "--command-config", str(file), code=3).stdout.splitlines()
    assert told[0].startswith("serious  1 below min.insync.replicas")
    assert told[0].endswith(": orders-0  [partitions-under-min-isr]")
    assert told[1] == "         why: producers with acks=all are refused"
    suffix = f"-b kafka1:9092 --command-config '{file}'"
    assert f"         $ headrace topic describe orders {suffix}" in told
    assert f"         $ headrace config set --topic orders min.insync.replicas=2 {suffix}" in told
    levels = [line.split()[0] for line in told[:-1] if not line.startswith(" ")]
    assert levels == sorted(levels, key=("serious", "warning", "notice").index)


def test_what_the_environment_says_is_not_repeated(seen: list[Facts]) -> None:
    seen.append(
        facts(topic_settings={"orders": {**TOPIC_SETTINGS, "min.insync.replicas": Setting("3", True)}})
    )
    told = doctor("min-isr-without-reserve", code=4, env={"HEADRACE_BOOTSTRAP": "kafka1:9092"})
    assert "$ headrace config set --topic orders min.insync.replicas=2\n" in told.stdout


def test_exit_codes(seen: list[Facts]) -> None:
    creating = {**BROKER_SETTINGS, "auto.create.topics.enable": Setting("true", False)}
    seen.append(facts(settings={1: creating}))
    assert doctor("auto-create", code=0).stdout.startswith("notice ")
    seen.append(facts(hanging=Unknown("DescribeProducers denied")))
    told = doctor(code=5).stdout
    assert "not known: transactions-hanging: DescribeProducers denied\n" in told
    assert told.endswith("1 could not know\n")
    document = json.loads(doctor("--json", code=5).stdout)
    assert document["not_known"] == [{"check": "transactions-hanging", "why": "DescribeProducers denied"}]


def test_names_that_are_no_check_and_the_list_of_all(seen: list[Facts]) -> None:
    assert "there is no check nonsense" in doctor("nonsense", code=1).stderr
    listed = doctor("--list", code=0).stdout.splitlines()
    assert [line.split()[0] for line in listed[1:]] == [check.name for check in CHECKS]
    named = json.loads(doctor("--list", "--json", code=0).stdout)
    assert {"name", "group", "finds", "why", "mend"} == set(named[0])
    assert "check" in doctor("--help", code=0).stdout
    assert len(seen) == 1
