"""Kafka's own tools for groups and transactions, and its reader of the logs behind them."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.apache_kafka import KafkaTools, ToolResult
from tests.broker_process import BROKER_ID, BrokerProcess
from tests.compatibility.clients.client import NewRecord
from tests.compatibility.clients.confluent import ConfluentClient
from tests.compatibility.clients.transactional import ConfluentTransactions
from tests.compatibility.members.confluent import ConfluentMember
from tests.compatibility.members.member import Membership
from tests.compatibility.patience import eventually
from tests.compatibility.test_kafka_tools import demand, run

#: Not the tools that judge files at the end: what one of these leaves running must not speak into that.
NEWER = pytest.mark.parametrize("tools", ["4.3.1"], indirect=True)


def rows(printed: str, *first: str) -> list[dict[str, str]]:
    """The tables that a tool prints, by the words of their heads, which begin with `first`."""
    found: list[dict[str, str]] = []
    head: list[str] | None = None
    for line in printed.splitlines():
        words = re.split(r"\s+", line.strip())
        if tuple(words[: len(first)]) == first:
            head = words
        elif head is not None and len(words) == len(head):
            found.append(dict(zip(head, words, strict=True)))
    return found


def groups(tools: KafkaTools, broker: BrokerProcess, *arguments: str) -> ToolResult:
    # Its own patience of 5 s is too short for a busy machine.
    return run(tools, broker, "consumer-groups", "--timeout", "30000", *arguments)


def joined(broker: BrokerProcess, wanted: Membership, count: int) -> ConfluentMember:
    """A member that has read `count` records."""
    member = ConfluentMember(broker.bootstrap, wanted)
    found = 0
    deadline = time.monotonic() + 20
    while found < count:
        assert time.monotonic() < deadline, f"{found} of {count} records"
        found += len(member.poll(0.1))
    return member


def places(table: list[dict[str, str]]) -> Mapping[str, tuple[str, ...]]:
    return {row["PARTITION"]: (row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"]) for row in table}


def test_consumer_group_command(
    tools: KafkaTools, broker: BrokerProcess, librdkafka: ConfluentClient, topic: str
) -> None:
    group = f"g-{topic}"
    librdkafka.create_topic(topic, 2)
    librdkafka.produce(topic, [NewRecord(b"%d" % number) for number in range(5)])
    member = joined(broker, Membership(group, topic), 5)
    member.commit({0: 3, 1: 0}, "")

    assert group in demand(groups(tools, broker, "--list")).split()
    described = demand(groups(tools, broker, "--describe", "--group", group))
    table = rows(described, "GROUP", "TOPIC")
    assert places(table) == {"0": ("3", "5", "2"), "1": ("0", "0", "0")}
    assert {row["CLIENT-ID"] for row in table} == {"rdkafka"}
    (one,) = rows(demand(groups(tools, broker, "--describe", "--group", group, "--members")), "GROUP")
    assert (one["CLIENT-ID"], one["#PARTITIONS"]) == ("rdkafka", "2")
    state = demand(groups(tools, broker, "--describe", "--group", group, "--state"))
    assert re.search(rf"{group}\s+127\.0\.0\.1:{broker.port}\s+\({BROKER_ID}\)\s+range\s+Stable\s+.*1", state)

    refused = groups(tools, broker, "--delete", "--group", group)
    assert "GroupNotEmptyException" in refused.output + refused.errors
    reset = ("--reset-offsets", "--group", group, "--topic", topic)
    refused = groups(tools, broker, *reset, "--to-earliest", "--execute")
    assert "Stable" in refused.output + refused.errors
    member.close()

    moved = demand(groups(tools, broker, *reset, "--shift-by", "-2", "--execute"))
    # The older tool prints its table in one line.
    assert re.search(rf"{topic}\s+0\s+1\s", moved), moved
    assert re.search(rf"{topic}\s+1\s+0\s", moved), moved
    described = demand(groups(tools, broker, "--describe", "--group", group))
    assert places(rows(described, "GROUP", "TOPIC")) == {"0": ("1", "5", "4"), "1": ("0", "0", "0")}
    demand(groups(tools, broker, "--delete-offsets", "--group", group, "--topic", f"{topic}:1"))
    described = demand(groups(tools, broker, "--describe", "--group", group))
    assert places(rows(described, "GROUP", "TOPIC")) == {"0": ("1", "5", "4")}
    assert "was successful" in demand(groups(tools, broker, "--delete", "--group", group))
    assert group not in demand(groups(tools, broker, "--list")).split()


@NEWER
def test_consumer_group_command_on_the_server_side_protocol(
    tools: KafkaTools, broker: BrokerProcess, librdkafka: ConfluentClient, topic: str
) -> None:
    group = f"g-{topic}"
    librdkafka.create_topic(topic, 2)
    librdkafka.produce(topic, [NewRecord(b"x")])
    member = joined(broker, Membership(group, topic, protocol="consumer"), 1)
    member.commit({0: 1}, "")
    listed = demand(groups(tools, broker, "--list", "--type"))
    assert re.search(rf"{group}\s+Consumer", listed)
    described = demand(groups(tools, broker, "--describe", "--group", group, "--state"))
    assert re.search(rf"{group}\s+127\.0\.0\.1:{broker.port}\s+\({BROKER_ID}\)\s+uniform\s+Stable", described)
    found = rows(demand(groups(tools, broker, "--describe", "--group", group, "--members")), "GROUP")
    assert [row["#PARTITIONS"] for row in found] == ["2"]
    member.close()
    assert "was successful" in demand(groups(tools, broker, "--delete", "--group", group))


def test_consumer_performance(
    tools: KafkaTools, broker: BrokerProcess, librdkafka: ConfluentClient, topic: str
) -> None:
    librdkafka.create_topic(topic)
    librdkafka.produce(topic, [NewRecord(b"x" * 100) for _ in range(500)])
    count = "--num-records" if tools.version.startswith("4") else "--messages"
    printed = demand(
        run(tools, broker, "consumer-perf-test", "--topic", topic, count, "500", "--timeout", "20000")
    )
    assert re.search(r"^.*, 500, .*$", printed, re.MULTILINE), printed


@NEWER
def test_transactions_command(
    tools: KafkaTools, broker: BrokerProcess, librdkafka: ConfluentClient, topic: str
) -> None:
    name = f"id-{topic}"
    librdkafka.create_topic(topic)
    producer = ConfluentTransactions(broker.bootstrap, name, timeout_ms=60_000)
    producer.begin()
    producer.send(topic, [b"x"])

    def of(*arguments: str) -> str:
        return demand(run(tools, broker, "transactions", *arguments))

    (listed,) = (row for row in rows(of("list"), "TransactionalId") if row["TransactionalId"] == name)
    assert (listed["Coordinator"], listed["TransactionState"]) == (str(BROKER_ID), "Ongoing")
    (described,) = rows(of("describe", "--transactional-id", name), "CoordinatorId")
    assert described["TransactionState"] == "Ongoing"
    assert described["TransactionTimeoutMs"] == "60000"
    assert described["TopicPartitions"] == f"{topic}-0"
    (writer,) = rows(of("describe-producers", "--topic", topic, "--partition", "0"), "ProducerId")
    assert (writer["ProducerId"], writer["CurrentTransactionStartOffset"]) == (listed["ProducerId"], "0")

    of("abort", "--topic", topic, "--partition", "0", "--start-offset", "0")

    def ended() -> None:
        (writer,) = rows(of("describe-producers", "--topic", topic, "--partition", "0"), "ProducerId")
        assert writer["CurrentTransactionStartOffset"] == "None"

    eventually(ended)
    producer.close()


def dumped(tools: KafkaTools, broker: BrokerProcess, internal: str, decoder: str) -> str:
    files = [path for path in sorted(Path(broker.log_dir).glob(f"{internal}-*/*.log")) if path.stat().st_size]
    assert files, f"nothing is written to {internal}"
    result = tools.run("dump-log", decoder, "--files", ",".join(map(str, files)))
    assert result.status == 0, result.errors
    assert "Exception" not in result.output + result.errors
    return result.output


@NEWER
def test_the_internal_topics_are_kafkas(
    tools: KafkaTools, broker: BrokerProcess, librdkafka: ConfluentClient, topic: str
) -> None:
    librdkafka.create_topic(topic)
    librdkafka.produce(topic, [NewRecord(b"x")])
    wanted = Membership(f"classic-{topic}", topic)
    for one in (wanted, wanted._replace(group=f"consumer-{topic}", protocol="consumer")):
        member = joined(broker, one, 1)
        member.commit({0: 1}, "words")
        member.close()
    producer = ConfluentTransactions(broker.bootstrap, f"id-{topic}")
    producer.begin()
    producer.send(topic, [b"y"])
    producer.commit()

    offsets = dumped(tools, broker, "__consumer_offsets", "--offsets-decoder")
    lines = [line for line in offsets.splitlines() if topic in line]
    for group in ("classic", "consumer"):
        (commit,) = (
            line for line in lines if f'"group":"{group}-{topic}"' in line and '"partition":0' in line
        )
        assert '"offset":1' in commit
        assert '"metadata":"words' in commit
    assert any('"protocolType":"consumer"' in line and '"protocol":"range"' in line for line in lines)
    assert any('"subscribedTopicNames":["' + topic in line for line in lines)

    states = dumped(tools, broker, "__transaction_state", "--transaction-log-decoder")
    told = [line for line in states.splitlines() if f'"transactionalId":"id-{topic}"' in line]
    assert told
    assert "CompleteCommit" in told[-1] or '"transactionStatus":4' in told[-1], told[-1]
    producer.close()
