"""Kafka's own command-line tools, of two releases, each with the clients of its release."""

from __future__ import annotations

import json
import re
import time

import pytest

from tests.apache_kafka import KafkaTools, ToolResult
from tests.broker_process import BROKER_ID, BrokerProcess
from tests.compatibility.clients.client import NewRecord
from tests.compatibility.clients.confluent import ConfluentClient
from tests.compatibility.patience import eventually


def run(tools: KafkaTools, broker: BrokerProcess, tool: str, *arguments: str) -> ToolResult:
    return tools.run(tool, "--bootstrap-server", broker.bootstrap, *arguments)


def demand(result: ToolResult) -> str:
    assert result.status == 0, result.output + result.errors
    return result.output


def produce(tools: KafkaTools, broker: BrokerProcess, topic: str, count: int, *properties: str) -> str:
    return demand(
        tools.run(
            "producer-perf-test",
            "--topic",
            topic,
            "--num-records",
            str(count),
            "--record-size",
            "100",
            "--throughput",
            "-1",
            "--producer-props",
            f"bootstrap.servers={broker.bootstrap}",
            *properties,
        )
    )


def test_topic_command(tools: KafkaTools, broker: BrokerProcess, topic: str) -> None:
    created = run(
        tools,
        broker,
        "topics",
        "--create",
        "--topic",
        topic,
        "--partitions",
        "3",
        "--config",
        "retention.ms=5000000",
    )
    assert f"Created topic {topic}." in demand(created)
    assert topic in demand(run(tools, broker, "topics", "--list")).split()

    described = demand(run(tools, broker, "topics", "--describe", "--topic", topic))
    assert "PartitionCount: 3\tReplicationFactor: 1" in described
    assert "retention.ms=5000000" in described
    for partition in range(3):
        line = f"Partition: {partition}\tLeader: {BROKER_ID}\tReplicas: {BROKER_ID}\tIsr: {BROKER_ID}"
        assert line in described

    demand(run(tools, broker, "topics", "--alter", "--topic", topic, "--partitions", "5"))
    assert "PartitionCount: 5" in demand(run(tools, broker, "topics", "--describe", "--topic", topic))

    for arguments, words in (
        (("--create", "--topic", topic), "TopicExistsException"),
        (("--create", "--topic", "has space"), "InvalidTopicException"),
        (("--alter", "--topic", topic, "--partitions", "2"), "5"),
    ):
        refused = run(tools, broker, "topics", *arguments)
        assert refused.status != 0
        assert words in refused.output + refused.errors

    demand(run(tools, broker, "topics", "--delete", "--topic", topic))


def test_config_command(tools: KafkaTools, broker: BrokerProcess, topic: str) -> None:
    demand(run(tools, broker, "topics", "--create", "--topic", topic))
    alter = ("configs", "--alter", "--entity-type", "topics", "--entity-name", topic)
    describe = ("configs", "--describe", "--entity-type", "topics", "--entity-name", topic)
    demand(run(tools, broker, *alter, "--add-config", "retention.ms=1234567,cleanup.policy=[compact,delete]"))

    def altered() -> None:
        text = demand(run(tools, broker, *describe))
        assert "retention.ms=1234567" in text
        assert "cleanup.policy=compact,delete" in text
        assert "DYNAMIC_TOPIC_CONFIG:retention.ms=1234567" in text

    eventually(altered)

    everything = demand(run(tools, broker, *describe, "--all"))
    assert re.search(r"segment.bytes=1073741824 .*DEFAULT_CONFIG:log.segment.bytes=1073741824", everything)

    demand(run(tools, broker, *alter, "--delete-config", "retention.ms"))

    def reset() -> None:
        assert "retention.ms" not in demand(run(tools, broker, *describe))

    eventually(reset)
    refused = run(tools, broker, *alter, "--add-config", "retention.ms=soon")
    assert refused.status != 0

    brokers = ("--entity-type", "brokers", "--entity-name", str(BROKER_ID))
    everything = demand(run(tools, broker, "configs", "--describe", *brokers, "--all"))
    for name in ("log.dirs", "message.max.bytes=1048588", "num.partitions=1", "log.retention.hours=168"):
        assert name in everything


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_producer_performance_and_offsets(
    tools: KafkaTools, broker: BrokerProcess, librdkafka: ConfluentClient, topic: str, compression: str
) -> None:
    demand(run(tools, broker, "topics", "--create", "--topic", topic))
    printed = produce(tools, broker, topic, 500, f"compression.type={compression}")
    assert "500 records sent" in printed
    assert f"{topic}:0:500" in demand(run(tools, broker, "get-offsets", "--topic", topic))
    assert f"{topic}:0:0" in demand(run(tools, broker, "get-offsets", "--topic", topic, "--time", "earliest"))
    found = librdkafka.consume(topic, 500)
    assert [record.offset for record in found] == list(range(500))
    assert {len(record.value or b"") for record in found} == {100}


@pytest.mark.parametrize("acks", ["0", "1"])
def test_producer_performance_with_fewer_acks(
    tools: KafkaTools, broker: BrokerProcess, librdkafka: ConfluentClient, topic: str, acks: str
) -> None:
    demand(run(tools, broker, "topics", "--create", "--topic", topic))
    produce(tools, broker, topic, 200, f"acks={acks}", "enable.idempotence=false")
    assert len(librdkafka.consume(topic, 200)) == 200


def test_get_offsets_by_moment(
    tools: KafkaTools, broker: BrokerProcess, librdkafka: ConfluentClient, topic: str
) -> None:
    base_ms = int(time.time() * 1000) - 3_600_000
    librdkafka.create_topic(topic, partitions=2)
    librdkafka.produce(topic, [NewRecord(b"x", timestamp=base_ms + i) for i in (0, 50, 20)])

    def offsets(moment: str) -> set[str]:
        return set(demand(run(tools, broker, "get-offsets", "--topic", topic, "--time", moment)).split())

    assert offsets("latest") == {f"{topic}:0:3", f"{topic}:1:0"}
    assert offsets("max-timestamp") >= {f"{topic}:0:1"}
    assert f"{topic}:0:1" in offsets(str(base_ms + 1))


def test_delete_records_command(
    tools: KafkaTools, broker: BrokerProcess, topic: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    demand(run(tools, broker, "topics", "--create", "--topic", topic))
    produce(tools, broker, topic, 100)
    plan = tmp_path_factory.mktemp("plan") / "offsets.json"
    plan.write_text(
        json.dumps({"partitions": [{"topic": topic, "partition": 0, "offset": 40}], "version": 1})
    )
    printed = demand(run(tools, broker, "delete-records", "--offset-json-file", str(plan)))
    assert re.search(rf"partition: {topic}-0\s+low_watermark: 40", printed)
    assert f"{topic}:0:40" in demand(
        run(tools, broker, "get-offsets", "--topic", topic, "--time", "earliest")
    )


def test_log_dirs_command(tools: KafkaTools, broker: BrokerProcess, topic: str) -> None:
    demand(run(tools, broker, "topics", "--create", "--topic", topic, "--partitions", "2"))
    produce(tools, broker, topic, 100)
    printed = demand(run(tools, broker, "log-dirs", "--describe", "--topic-list", topic))
    found = json.loads(next(line for line in printed.splitlines() if line.startswith("{")))
    (described,) = found["brokers"]
    assert described["broker"] == BROKER_ID
    (directory,) = described["logDirs"]
    assert directory["logDir"] == str(broker.log_dir)
    assert directory["error"] is None
    sizes = {one["partition"]: one["size"] for one in directory["partitions"]}
    assert sizes.keys() == {f"{topic}-0", f"{topic}-1"}
    assert sum(sizes.values()) > 100 * 100
