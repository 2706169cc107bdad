"""Kafka's tools for configs of groups, features, and the directories of replicas."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.apache_kafka import KafkaTools, ToolResult
from tests.broker_process import BROKER_ID, BrokerProcess
from tests.compatibility.clients.confluent import ConfluentClient
from tests.compatibility.patience import eventually
from tests.compatibility.test_kafka_tools import demand, run

NEWER = pytest.mark.parametrize("tools", ["4.3.1"], indirect=True)


def words(result: ToolResult) -> str:
    return result.output + result.errors


@NEWER
def test_configs_of_groups(tools: KafkaTools, broker: BrokerProcess, topic: str) -> None:
    group = f"configured-{topic}"
    of_group = ("--entity-type", "groups", "--entity-name", group)
    added = "consumer.session.timeout.ms=50000,consumer.heartbeat.interval.ms=6000"
    demand(run(tools, broker, "configs", "--alter", *of_group, "--add-config", added))

    def altered() -> None:
        described = demand(run(tools, broker, "configs", "--describe", *of_group))
        assert "consumer.session.timeout.ms=50000" in described
        assert "DYNAMIC_GROUP_CONFIG:consumer.heartbeat.interval.ms=6000" in described
        assert group in demand(run(tools, broker, "configs", "--describe", "--entity-type", "groups"))

    eventually(altered)
    everything = demand(run(tools, broker, "configs", "--describe", *of_group, "--all"))
    assert re.search(r"consumer.assignment.interval.ms=\d+ ", everything)

    refused = run(
        tools, broker, "configs", "--alter", *of_group, "--add-config", "consumer.session.timeout.ms=1"
    )
    assert refused.status != 0
    assert "InvalidConfigurationException" in words(refused)

    deleted = "consumer.session.timeout.ms,consumer.heartbeat.interval.ms"
    demand(run(tools, broker, "configs", "--alter", *of_group, "--delete-config", deleted))

    def reset() -> None:
        described = demand(run(tools, broker, "configs", "--describe", *of_group))
        assert "consumer.session.timeout.ms=50000" not in described

    eventually(reset)


@NEWER
def test_features(tools: KafkaTools, broker: BrokerProcess) -> None:
    described = demand(run(tools, broker, "features", "describe"))
    for feature in ("metadata.version", "transaction.version"):
        assert re.search(rf"Feature: {feature}\s+SupportedMinVersion: \S+\s+SupportedMaxVersion: ", described)
    assert re.search(r"Feature: transaction.version\s.*FinalizedVersionLevel: 2\s", described)

    same = demand(run(tools, broker, "features", "upgrade", "--feature", "transaction.version=2"))
    assert "transaction.version was upgraded to 2" in same
    for arguments, complaint in (
        (("upgrade", "--feature", "transaction.version=9"), "transaction.version"),
        (("upgrade", "--dry-run", "--feature", "transaction.version=9"), "transaction.version"),
        (("downgrade", "--feature", "metadata.version=7"), "metadata.version"),
    ):
        refused = run(tools, broker, "features", *arguments)
        assert refused.status != 0
        assert complaint in words(refused)
    assert demand(run(tools, broker, "features", "describe")).split("Epoch")[0] == described.split("Epoch")[0]


@NEWER
def test_a_replica_is_assigned_to_a_directory(
    tools: KafkaTools, broker: BrokerProcess, librdkafka: ConfluentClient, topic: str, tmp_path: Path
) -> None:
    """On a broker with one directory: the plan names the one where the replica is."""
    librdkafka.create_topic(topic, 1)

    def plan(directory: str) -> ToolResult:
        row = {"topic": topic, "partition": 0, "replicas": [BROKER_ID], "log_dirs": [directory]}
        file = tmp_path / "plan.json"
        file.write_text(json.dumps({"version": 1, "partitions": [row]}))
        execute = ("--reassignment-json-file", str(file), "--execute", "--timeout", "30000")
        return run(tools, broker, "reassign-partitions", *execute)

    done = plan(str(broker.log_dir))
    assert "started moving log directory to" in demand(done)
    refused = plan("/nowhere")
    assert "LogDirNotFoundException" in words(refused)
