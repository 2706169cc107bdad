"""Headrace's own commands for people: what they do to a Headrace broker, they do to Apache Kafka."""

from __future__ import annotations

import json
from pathlib import Path

from tests.broker_process import BrokerProcess
from tests.compatibility.conftest import Run

ONLY_HEADRACE_TELLS = {
    "clocks-differ",
    "descriptors-few",
    "files-damaged",
    "records-unreadable",
    "scrub-overdue",
    "told-by-brokers",
    "versions-mixed",
    "zookeeper-cut-off",
    "zookeeper-silent",
}


def listed(run: Run) -> dict[str, int]:
    return {topic["name"]: topic["partitions"] for topic in json.loads(run("topic", "list", "--json"))}


def test_topics_and_records(run: Run) -> None:
    run("topic", "create", "own-shop", "--partitions", "1", "--config", "retention.ms=86400000")
    run("produce", "own-shop", stdin="tea\nrice\n")
    assert run("consume", "own-shop", "--exit").split() == ["tea", "rice"]
    run("topic", "alter", "own-shop", "--partitions", "2")
    assert listed(run)["own-shop"] == 2
    assert "retention.ms=86400000" in run("topic", "describe", "own-shop")
    run("topic", "trim", "own-shop", "--to", "1", "--partition", "0")
    first, _ = json.loads(run("topic", "offsets", "own-shop", "--json"))
    assert (first["earliest"], first["latest"]) == (1, 2)
    run("topic", "delete", "own-shop")
    assert "own-shop" not in listed(run)


def test_groups(run: Run) -> None:
    run("topic", "create", "own-read", "--partitions", "1")
    run("produce", "own-read", stdin="tea\nrice\n")
    assert run("consume", "own-read", "--group", "own-readers", "--exit").split() == ["tea", "rice"]
    (group,) = json.loads(run("group", "lag", "own-readers", "--json"))
    assert group["total_lag"] == 0
    run("group", "reset", "own-readers", "--to-earliest", "--topic", "own-read", "--execute")
    (group,) = json.loads(run("group", "lag", "own-readers", "--json"))
    assert group["total_lag"] == 2
    run("group", "delete", "own-readers")


def test_a_file_for_a_cluster(run: Run, tmp_path: Path) -> None:
    run("topic", "create", "own-filed", "--partitions", "1", "--config", "cleanup.policy=compact")
    run("quota", "set", "--user", "own-ann", "producer_byte_rate=10MB")
    file = tmp_path / "cluster.yaml"
    file.write_text(run("export"))
    run("apply", "-f", str(file), "--check")
    run("config", "set", "--topic", "own-filed", "cleanup.policy=delete")
    run("apply", "-f", str(file), "--check", code=2)


def test_health(run: Run, broker: BrokerProcess, target: str) -> None:
    status = json.loads(run("cluster", "status", "--json"))
    assert [each["alive"] for each in status["brokers"]] == [True]
    # What it finds, and so its exit code, depends on how busy the machine is.
    found = json.loads(run("doctor", "check", "--json", code=None))
    unknown = {each["check"] for each in found["not_known"]}
    assert unknown & ONLY_HEADRACE_TELLS == (ONLY_HEADRACE_TELLS if target == "kafka" else set())
    run("cluster", "roll", "--check", code=3)
