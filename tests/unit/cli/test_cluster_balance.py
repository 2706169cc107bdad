"""`headrace cluster balance`, and what drain and unregister do about self-balancing."""

from __future__ import annotations

import json

import pytest

from headrace.client.balancing_exclusion import EXCLUDED
from headrace.config.broker import BROKER_PROPERTIES
from headrace.config.load_report import LOAD
from headrace.controller.self_balancing.reports import (
    DirectorySpace,
    LedPartition,
    TopicTraffic,
    directory_figure,
    topic_figure,
)
from tests.unit.cli.test_cluster_commands import Run
from tests.unit.cli.test_cluster_commands import run as run_fixture
from tests.unit.cli.test_cluster_commands import script as script_fixture
from tests.unit.client.scripted_cluster import ScriptedCluster

run, script = run_fixture, script_fixture
BALANCE = "headrace.balance."
GB = 10**9


def configure(script: ScriptedCluster, **given: str) -> None:
    """Three brokers, of which the third leads nothing and has nothing."""
    declared = {name: each for name, each in BROKER_PROPERTIES.items() if name.startswith(BALANCE)}
    values = {name: each.default_text() or "" for name, each in declared.items()}
    values |= {f"{BALANCE}{name.replace('_', '.')}": value for name, value in given.items()}
    script.partitions.clear()
    script.partitions.update({("t", each): [1, 2] for each in range(6)})
    script.isr.update({each: list(replicas) for each, replicas in script.partitions.items()})
    script.leaders.update(dict.fromkeys(script.partitions, 1))
    for broker in script.brokers:
        led = tuple(LedPartition(each, 10, GB) for each in range(6)) if broker == 1 else ()
        figures = dict(
            [
                directory_figure(DirectorySpace("/data", True, 1000 * GB, 900 * GB), 0),
                topic_figure("t", TopicTraffic(0, 0, led)),
            ]
        )
        script.told[str(broker)] = {**values, **{f"{LOAD}.{name}": each for name, each in figures.items()}}


def test_it_shows_how_even_the_brokers_are(run: Run, script: ScriptedCluster) -> None:
    configure(script)
    lines = run("cluster", "balance", "--look", "0").stdout.splitlines()
    assert lines[0] == "self-balancing is off"
    assert lines[1].split()[:4] == ["BROKER", "REPLICAS", "LEADERS", "BYTES"]
    assert lines[2].split()[:5] == ["1", "6", "(+50%)", "6", "(+200%)"]
    assert lines[4].split()[:5] == ["3", "0", "(-100%)", "0", "(-100%)"]
    assert "6,000.0 MB (+50%)" in lines[2]


def test_a_dry_run_shows_the_first_set_and_how_many_there_are(run: Run, script: ScriptedCluster) -> None:
    configure(script, max_moves="2")
    told = run("cluster", "balance", "--look", "0", "--dry-run").stdout
    assert "leaders of broker 1 200% above even; first of all would be moved:" in told
    assert "in all: 3 sets, 6 changes, of which 4 copies of 4,000.0 MB" in told
    document = json.loads(run("cluster", "balance", "--look", "0", "--dry-run", "--json").stdout)
    assert len(document["sets"]) == 3
    assert all(len(each) <= 2 for each in document["sets"])
    assert script.history == [], "it changes nothing"


def test_it_says_why_nothing_would_be_moved(run: Run, script: ScriptedCluster) -> None:
    configure(script)
    del script.told["2"]
    told = run("cluster", "balance", "--look", "0", "--dry-run").stdout
    assert told.splitlines()[-1].startswith("nothing would be moved: broker 2 does not tell its load:")
    configure(script)
    script.fail(2)
    document = json.loads(run("cluster", "balance", "--look", "0", "--dry-run", "--json").stdout)
    assert document["hindrance"] == "broker 2 is down or about to stop"
    assert document["sets"] == []


def test_what_was_decided_last_is_shown_there_and_by_status(run: Run, script: ScriptedCluster) -> None:
    configure(script)
    decided = [[1_700_000_000_000, "t-1 from broker 1 to 3", "bytes of broker 1 50% above even"]]
    script.told["1"]["headrace.health.balancing.decisions"] = json.dumps(decided)
    said = "t-1 from broker 1 to 3, because bytes of broker 1 50% above even (2023-11-14T22:13:20Z)"
    assert said in run("cluster", "balance", "--look", "0").stdout
    status = run("cluster", "status").stdout
    assert status.splitlines()[-1] == f"self-balancing: {said}"
    (told,) = json.loads(run("cluster", "status", "--json").stdout)["balancing_decisions"]
    assert told["what"] == "t-1 from broker 1 to 3"


@pytest.mark.parametrize(("enabled", "excluded"), [("true", "2,1"), ("false", None)])
def test_a_broker_that_is_drained_is_left_alone(
    run: Run, script: ScriptedCluster, enabled: str, excluded: str | None
) -> None:
    configure(script, enable=enabled, excluded_brokers="2")
    said = run("cluster", "drain", "1", "--leaders-only").stderr
    assert script.settings.get((4, ""), {}).get(EXCLUDED) == excluded
    assert ("self-balancing leaves broker 1 alone" in said) == (excluded is not None)


def test_a_broker_that_is_forgotten_is_not_left_out_any_more(run: Run, script: ScriptedCluster) -> None:
    configure(script, enable="true", excluded_brokers="2,3")
    script.down.add(3)
    run("cluster", "unregister", "3")
    assert script.settings[4, ""] == {EXCLUDED: "2"}
