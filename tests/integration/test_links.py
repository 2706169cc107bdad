"""Linked topics between two real brokers: the same bytes, no producers, promoted, resumed, stopped with a
word."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.broker_process import HeadraceProcess
from tests.certificates import Authority
from tests.integration.real_client import SECONDS, create, eventually
from tests.linked_logs import digest, without_epochs
from tests.ports import own_port
from tests.secured_broker import secured_properties
from tests.unit.cli.serving import Run, runner

PASSWORD = "a-password-that-nobody-shows"
PROPERTIES = {
    "transaction.state.log.num.partitions": "3",
    "offsets.topic.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def source(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadraceProcess]:
    """By plaintext anybody may do everything; by SASL_SSL users may do what they may."""
    properties = {**PROPERTIES, **secured_properties(authority, {"alice": PASSWORD})}
    process = HeadraceProcess(tmp_path_factory.mktemp("source"), properties)
    process.secured_ports.update(SSL=own_port(), SASL_SSL=own_port())
    with process as broker:
        yield broker


@pytest.fixture(scope="module")
def client_config(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """How to log in at the source, as a file of the target's broker."""
    path = tmp_path_factory.mktemp("link") / "there.properties"
    path.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={authority.trust_store}\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required"
        f' username="alice" password="{PASSWORD}";\n'
    )
    return path


@pytest.fixture(scope="module")
def target(client_config: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadraceProcess]:
    properties = {**PROPERTIES, "headrace.link.client.config.dir": str(client_config.parent)}
    with HeadraceProcess(tmp_path_factory.mktemp("target"), properties) as broker:
        yield broker


@pytest.fixture
def run(target: HeadraceProcess) -> Run:
    return runner(target.bootstrap)


@pytest.fixture
def topic(source: HeadraceProcess, request: pytest.FixtureRequest) -> str:
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    create(source.bootstrap, name, 2)
    return name


def producer_of(broker: HeadraceProcess, **more: Any) -> Producer:
    return Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0, "log_level": 0, **more})


def send(producer: Producer, topic: str, count: int, *, partition: int = 0, text: str = "record") -> None:
    refused: list[KafkaError] = []
    for i in range(count):
        producer.produce(
            topic,
            f"{text} {i}".encode(),
            key=str(i).encode(),
            partition=partition,
            on_delivery=lambda error, _: refused.append(error) if error is not None else None,
        )
    assert producer.flush(SECONDS) == 0
    assert not refused, refused


def described(run: Run, topic: str) -> Any:
    return json.loads(run("link", "describe", topic, "--json").stdout)


def copied(run: Run, topic: str, ends: list[int]) -> bool:
    return [each["end"] for each in described(run, topic)["partitions"]] == ends


def same_bytes(source: HeadraceProcess, target: HeadraceProcess, topic: str, partition: int = 0) -> bool:
    name = f"{topic}-{partition}"
    return digest(source.log_dir / name) == digest(target.log_dir / name)


def values_of(broker: HeadraceProcess, topic: str, count: int, isolation: str) -> list[bytes]:
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": "reader",
        "isolation.level": isolation,
        "auto.offset.reset": "earliest",
    }
    with closing(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        values: list[bytes] = []
        deadline = time.monotonic() + SECONDS
        while len(values) < count and time.monotonic() < deadline:
            for message in consumer.consume(500, 0.2):
                assert message.error() is None
                value = message.value()
                assert value is not None
                values.append(value)
        return values


def commit(broker: HeadraceProcess, group: str, topic: str, offset: int) -> None:
    with closing(Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)


def committed(broker: HeadraceProcess, group: str, topic: str) -> int:
    with closing(Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})) as consumer:
        return consumer.committed([TopicPartition(topic, 0)], SECONDS)[0].offset


def test_copies_every_byte_and_transactions_with_their_ends(
    source: HeadraceProcess, target: HeadraceProcess, run: Run, topic: str
) -> None:
    send(producer_of(source, **{"compression.type": "lz4"}), topic, 500)
    run("link", "create", topic, "--source", source.bootstrap)
    transactional = producer_of(source, **{"transactional.id": topic})
    transactional.init_transactions(SECONDS)
    for text, ends in (("kept", transactional.commit_transaction), ("gone", transactional.abort_transaction)):
        transactional.begin_transaction()
        send(transactional, topic, 20, text=text)
        ends(SECONDS)
    send(producer_of(source, **{"enable.idempotence": True}), topic, 300, partition=1)
    eventually(lambda: copied(run, topic, [542, 300]))
    assert same_bytes(source, target, topic, 0)
    assert same_bytes(source, target, topic, 1)
    assert len(values_of(target, topic, 520, "read_committed")) == 520
    assert described(run, topic)["lag"] == 0


def test_a_cluster_does_not_copy_itself(target: HeadraceProcess, run: Run, topic: str) -> None:
    create(target.bootstrap, topic, 1)
    refused = run("link", "create", topic, "--source", target.bootstrap, "--as", f"{topic}-copy", code=1)
    assert f"{target.bootstrap} is this cluster itself" in refused.output
    assert f"{topic}-copy" not in run("link", "list").output


def test_refuses_producers_in_words_that_clients_understand(
    source: HeadraceProcess, target: HeadraceProcess, run: Run, topic: str
) -> None:
    run("link", "create", topic, "--source", source.bootstrap)
    refused: list[KafkaError | None] = []
    producer = producer_of(target)
    producer.produce(topic, b"mine", partition=0, on_delivery=lambda error, _: refused.append(error))
    producer.flush(SECONDS)
    assert [error.code() for error in refused if error] == [KafkaError.POLICY_VIOLATION]
    transactional = producer_of(target, **{"transactional.id": topic})
    transactional.init_transactions(SECONDS)
    transactional.begin_transaction()
    transactional.produce(topic, b"mine", partition=0)
    with pytest.raises(KafkaException) as raised:
        transactional.commit_transaction(SECONDS)
    assert raised.value.args[0].txn_requires_abort()
    assert "policy" in run("topic", "trim", topic, "-p", "0", "--to", "0", code=1).output
    assert copied(run, topic, [0, 0])


def test_promotion_aborts_what_is_open_and_takes_records_of_producers_here(
    source: HeadraceProcess, target: HeadraceProcess, run: Run, topic: str
) -> None:
    """The first producers of both clusters have the same ids, and the same first sequence."""
    send(producer_of(source, **{"enable.idempotence": True}), topic, 1, text="there")
    run("link", "create", topic, "--source", source.bootstrap)
    open_one = producer_of(source, **{"transactional.id": topic})
    open_one.init_transactions(SECONDS)
    open_one.begin_transaction()
    send(open_one, topic, 5, text="open")
    own = [producer_of(target, **{"enable.idempotence": True}) for _ in range(3)]
    create(target.bootstrap, f"{topic}-own", 1)
    for producer in own:
        send(producer, f"{topic}-own", 1)  # each has its id now, as low as those that are copied
    eventually(lambda: copied(run, topic, [6, 0]))
    assert "promoted" in run("link", "promote", topic, "--yes").output
    assert "already" in run("link", "promote", topic, "--yes").output
    assert [each["opened"] for each in described(run, topic)["partitions"]] == [7, 0]
    for producer in own:
        send(producer, topic, 1, text="here")
    assert values_of(target, topic, 4, "read_committed") == [b"there 0", *[b"here 0"] * 3]
    open_one.commit_transaction(SECONDS)
    transactional = producer_of(target, **{"transactional.id": topic})
    transactional.init_transactions(SECONDS)
    transactional.begin_transaction()
    send(transactional, topic, 2, text="later")
    transactional.commit_transaction(SECONDS)
    assert values_of(target, topic, 6, "read_committed")[-1] == b"later 1"


def test_goes_on_after_either_side_was_killed(
    source: HeadraceProcess, target: HeadraceProcess, run: Run, topic: str
) -> None:
    run("link", "create", topic, "--source", source.bootstrap)
    total = 0
    for victim in (source, target):
        send(producer_of(source), topic, 200)
        total += 200
        eventually(lambda: copied(run, topic, [total, 0]))  # noqa: B023 - called in this round
        victim.kill()
        victim.start()
    send(producer_of(source), topic, 100)
    eventually(lambda: copied(run, topic, [total + 100, 0]))
    assert same_bytes(source, target, topic)


def test_what_a_group_has_read_on_here_is_not_taken_back_by_a_new_leader(
    source: HeadraceProcess, target: HeadraceProcess, run: Run, topic: str
) -> None:
    send(producer_of(source), topic, 100)
    moved, signal = f"{topic}-moved", f"{topic}-signal"
    commit(source, moved, topic, 10)
    run("link", "create", topic, "--source", source.bootstrap, "--groups", f"{topic}-*")
    eventually(lambda: committed(target, moved, topic) == 10)
    commit(target, moved, topic, 60)
    target.kill()
    target.start()
    for offset in (20, 30):  # with the second one, groups were looked at since the start
        commit(source, signal, topic, offset)
        eventually(lambda: committed(target, signal, topic) == offset)  # noqa: B023 - called in this round
    assert committed(target, moved, topic) == 60
    commit(source, moved, topic, 5)
    eventually(lambda: committed(target, moved, topic) == 5)


def test_stops_with_a_word_where_the_topic_is_made_anew(
    source: HeadraceProcess, target: HeadraceProcess, run: Run, topic: str
) -> None:
    send(producer_of(source), topic, 10)
    run("link", "create", topic, "--source", source.bootstrap)
    eventually(lambda: copied(run, topic, [10, 0]))
    before = without_epochs(target.log_dir / f"{topic}-0")
    runner(source.bootstrap)("topic", "delete", topic)
    create(source.bootstrap, topic, 2)
    send(producer_of(source), topic, 50, text="another")
    eventually(lambda: described(run, topic)["state"] == "STOPPED")
    assert "made anew" in run("link", "describe", topic).output
    assert f"the link of {topic} has stopped" in run("doctor", "links", code=3).output
    assert without_epochs(target.log_dir / f"{topic}-0") == before
    run("link", "promote", topic, "--yes")
    send(producer_of(target), topic, 1)


def test_follows_partitions_deletions_and_groups(
    source: HeadraceProcess, target: HeadraceProcess, run: Run, topic: str
) -> None:
    there = runner(source.bootstrap)
    for _ in range(10):
        send(producer_of(source), topic, 10)
    there("topic", "trim", topic, "-p", "0", "--to", "15")
    group = f"group-{topic}"
    with closing(Consumer({"bootstrap.servers": source.bootstrap, "group.id": group})) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, 42)], asynchronous=False)
    run("link", "create", topic, "--source", source.bootstrap, "--as", f"{topic}-copy", "--groups", "group-*")
    copy = f"{topic}-copy"
    eventually(lambda: copied(run, copy, [100, 0]))
    with closing(Consumer({"bootstrap.servers": target.bootstrap, "group.id": group})) as consumer:
        assert consumer.get_watermark_offsets(TopicPartition(copy, 0), SECONDS) == (15, 100)
        eventually(lambda: consumer.committed([TopicPartition(copy, 0)], SECONDS)[0].offset == 42)
    there("topic", "alter", topic, "--partitions", "3")
    eventually(lambda: len(described(run, copy)["partitions"]) == 3)
    send(producer_of(source), topic, 7, partition=2)
    eventually(lambda: copied(run, copy, [100, 0, 7]))
    run("link", "pause", copy)
    assert "paused" in run("link", "describe", copy).output
    send(producer_of(source), topic, 7, partition=2)
    there("topic", "trim", topic, "-p", "0", "--to", "100")
    assert described(run, copy)["state"] == "PAUSED"
    run("link", "resume", copy)
    eventually(lambda: copied(run, copy, [100, 0, 14]))
    there("topic", "delete", topic)
    eventually(lambda: "does not have it" in run("link", "describe", copy).output)
    assert described(run, copy)["lag"] is None, "nobody says how far a deleted topic would be"
    run("link", "delete", copy, "--yes")
    assert json.loads(run("link", "list", "--json").stdout) is not None
    assert copy not in run("link", "list").output


def test_logs_in_at_a_source_that_wants_it(
    source: HeadraceProcess, target: HeadraceProcess, run: Run, topic: str, client_config: Path
) -> None:
    send(producer_of(source), topic, 10)
    secured = f"127.0.0.1:{source.secured_ports['SASL_SSL']}"
    create_it = ("link", "create", topic, "--source", secured, "--source-config", str(client_config))
    run(*create_it, "--client-config", "absent.properties")
    eventually(lambda: "absent.properties" in str(described(run, topic)["errors"]))
    run("link", "alter", topic, "--client-config", client_config.name)
    eventually(lambda: copied(run, topic, [10, 0]))
    assert same_bytes(source, target, topic)
    assert described(run, topic)["errors"] == []
    assert PASSWORD not in run("link", "describe", topic, "--json").output
    metadata = target.log_dir / "__cluster_metadata-0"
    assert all(PASSWORD.encode() not in path.read_bytes() for path in metadata.glob("*.log"))
    assert PASSWORD not in target.output.read_text()
