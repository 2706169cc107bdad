"""`headrace txn ...` against a real broker: slow transactions, and one that nobody will end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from headrace.protocol.error_codes import ErrorCode
from headrace.transactions.transaction import Producer as TransactionalProducer
from tests.integration.either_broker import either_broker
from tests.integration.raw_transactions import RawTransactions
from tests.integration.real_client import SECONDS, create, eventually, send_all
from tests.unit.cli.serving import Run, runner

PROPERTIES = {
    "transaction.state.log.num.partitions": "3",
    "offsets.topic.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    # As of a time when nobody asked the coordinator about a partition's first records: so they come to hang.
    "transaction.partition.verification.enable": "false",
    "transaction.two.phase.commit.enable": "true",
}


@pytest.fixture(scope="module")
def bootstrap(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with either_broker(request, tmp_path_factory, PROPERTIES) as address:
        yield address


@pytest.fixture
def run(bootstrap: str) -> Run:
    return runner(bootstrap)


@pytest.fixture
def topic(bootstrap: str, request: pytest.FixtureRequest) -> str:
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    create(bootstrap, name, 2)
    return name


@pytest.fixture
def raw(bootstrap: str) -> Iterator[RawTransactions]:
    with closing(RawTransactions(bootstrap)) as raw:
        yield raw


def begin(bootstrap: str, name: str, topic: str) -> Producer:
    """A transaction with one record that waits."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": name,
            "linger.ms": 0,
            "log_level": 0,
        }
    )
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    producer.produce(topic, b"waits", partition=0)
    producer.flush(SECONDS)
    return producer


def told(run: Run, *args: str) -> Any:
    return json.loads(run(*args, "--json").stdout)


def stable_offset(run: Run, group: str) -> tuple[int, int]:
    ((entry,),) = [document["partitions"] for document in told(run, "group", "lag", group)]
    return entry["last_stable"], entry["high_watermark"]


def test_an_open_transaction_is_seen_from_all_sides(bootstrap: str, run: Run, topic: str) -> None:
    producer = begin(bootstrap, "seen", topic)
    ((listed,),) = [told(run, "txn", "list", "--state", "Ongoing", "--pattern", "see.*")]
    assert (listed["id"], listed["state"], listed["partitions"]) == ("seen", "Ongoing", 1)
    assert 0 <= listed["age_ms"] < SECONDS * 1000
    (described,) = told(run, "txn", "describe", "seen")
    assert described["partitions"] == {topic: [0]}
    assert described["timeout_ms"] == 60_000
    assert told(run, "txn", "find-hanging", "-t", topic, "--silent-for", "0s") == []
    (seen,) = told(run, "txn", "find-hanging", "-t", topic, "--silent-for", "0s", "--all")
    assert (seen["id"], seen["hangs"], seen["start_offset"]) == ("seen", False, 0)
    assert told(run, "txn", "list", "--older-than", "1h") == []
    producer.commit_transaction(SECONDS)
    # A commit is answered once it is decided. Its markers come a moment later.
    eventually(lambda: told(run, "txn", "describe", "seen")[0]["state"] == "CompleteCommit")
    (described,) = told(run, "txn", "describe", "seen")
    assert (described["start_ms"], described["partitions"]) == (None, {})


def test_abort_by_id_frees_readers_and_fences_the_producer(bootstrap: str, run: Run, topic: str) -> None:
    producer = begin(bootstrap, "slow", topic)
    run("group", "reset", "held", "--to-earliest", "-t", f"{topic}:0", "--execute")
    assert stable_offset(run, "held") == (0, 1)
    assert f"{topic}-0: an open transaction holds" in run("group", "lag", "held").stdout
    refused = run("txn", "abort", "-t", topic, "-p", "0", "--start-offset", "0", "--yes", code=1).stderr
    assert "`headrace txn abort slow` ends it now" in refused
    assert run("txn", "abort", "slow", "--yes").stdout == "aborted slow, which was Ongoing: 1 partition\n"
    assert stable_offset(run, "held") == (2, 2)
    with pytest.raises(KafkaException):
        producer.commit_transaction(SECONDS)


def test_a_two_phase_transaction_that_its_owner_forgot(
    request: pytest.FixtureRequest, run: Run, raw: RawTransactions, topic: str
) -> None:
    if request.config.getoption("--target") == "kafka":
        pytest.skip("Apache Kafka 4.3.1 does not offer the version of InitProducerId that begins one")
    began = raw.initialise("sink", version=6, two_phase=True)
    owner = TransactionalProducer(began.producer_id, began.producer_epoch)
    raw.add("sink", owner, topic, 0)
    raw.produce("sink", owner, topic, b"prepared")
    # No timeout will end it, and nobody else: it is for the command to do.
    (described,) = told(run, "txn", "describe", "sink")
    assert described["state"] == "Ongoing"
    assert run("txn", "abort", "sink", "--yes").stdout == "aborted sink, which was Ongoing: 1 partition\n"
    assert told(run, "txn", "find-hanging", "--all", "-t", topic) == []
    assert run("consume", topic, "-p", "0", "--exit").stdout == ""
    assert raw.end("sink", owner, commit=True).error_code != ErrorCode.NONE


def test_what_hangs_is_found_and_ended(bootstrap: str, run: Run, raw: RawTransactions, topic: str) -> None:
    producer = raw.producer("zombie")
    # The coordinator was never told of this partition, so it will never write a marker there.
    raw.produce("zombie", producer, topic, b"hangs", partition=1)
    send_all(bootstrap, topic, [b"behind it"], partition=1)
    run("group", "reset", "stuck", "--to-earliest", "-t", f"{topic}:1", "--execute")
    assert stable_offset(run, "stuck") == (0, 2)
    (found,) = told(run, "txn", "find-hanging", "-t", topic)
    assert (found["partition"], found["start_offset"], found["hangs"]) == (1, 0, True)
    assert found["producer_id"] == producer.producer_id
    assert (
        "begins at offset 7"
        in run("txn", "abort", "-t", topic, "-p", "1", "--start-offset", "7", "--yes", code=1).stderr
    )
    ended = run("txn", "abort", "-t", topic, "-p", "1", "--start-offset", "0", "--yes").stdout
    assert ended == f"aborted {topic}-1 from offset 0 on, producer {producer.producer_id}\n"
    assert stable_offset(run, "stuck") == (3, 3)
    assert told(run, "txn", "find-hanging", "-t", topic) == []
    assert run("consume", topic, "-p", "1", "--exit").stdout == "behind it\n"


def test_an_offset_that_waits_for_its_transaction(bootstrap: str, run: Run, topic: str) -> None:
    run("group", "reset", "eos", "--to-offset", "0", "-t", f"{topic}:0", "--execute")
    producer = begin(bootstrap, "eos", topic)
    settings = {"bootstrap.servers": bootstrap, "group.id": "eos"}
    with closing(Consumer(settings)) as consumer:
        producer.send_offsets_to_transaction(
            [TopicPartition(topic, 0, 1)], consumer.consumer_group_metadata(), SECONDS
        )
    ((entry,),) = [document["partitions"] for document in told(run, "group", "lag", "eos")]
    assert (entry["committed"], entry["pending"]) == (0, True)
    producer.commit_transaction(SECONDS)

    def is_committed() -> bool:
        ((entry,),) = [document["partitions"] for document in told(run, "group", "lag", "eos")]
        return (entry["committed"], entry["pending"]) == (1, False)

    eventually(is_committed)
