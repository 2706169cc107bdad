"""Transactions against a real broker: by librdkafka, by kafka-python, and request by request."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.api_versions_request import ApiVersionsRequest
from headrace.protocol.messages.api_versions_response import ApiVersionsResponse
from headrace.protocol.messages.list_transactions_request import ListTransactionsRequest
from headrace.testing.cluster import Cluster
from headrace.transactions import transaction
from tests.integration.raw_transactions import RawTransactions
from tests.integration.real_client import SECONDS, create, eventually, send_all

with warnings.catch_warnings():
    # The library reads its schemas by a function that Python has deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaProducer

PROPERTIES = {
    "transaction.state.log.num.partitions": "3",
    "offsets.topic.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "transaction.two.phase.commit.enable": "true",
}
TOPIC = "orders"
END = b"the end"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(PROPERTIES) as cluster:
        create(cluster.bootstrap, TOPIC, 2)
        yield cluster


@pytest.fixture
def raw(cluster: Cluster) -> Iterator[RawTransactions]:
    with closing(RawTransactions(cluster.bootstrap)) as raw:
        yield raw


def transactional(cluster: Cluster, *, timeout_ms: int = 60_000) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "transactional.id": "shop",
            "transaction.timeout.ms": timeout_ms,
            "linger.ms": 0,
            "log_level": 0,
        }
    )
    producer.init_transactions(SECONDS)
    return producer


def committed(cluster: Cluster, partition: int = 0) -> list[bytes]:
    """What a reader of committed records sees, up to one that is written now, outside of transactions."""
    send_all(cluster.bootstrap, TOPIC, [END], partition=partition)
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
        }
    )
    values: list[bytes] = []
    with closing(consumer):
        consumer.assign([TopicPartition(TOPIC, partition, 0)])
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            for message in consumer.consume(100, 0.2):
                assert message.error() is None
                values.append(message.value() or b"")
            if values and values[-1] == END:
                return [value for value in values if value != END]
    raise AssertionError(f"the reader is held up after {values}")


# --- librdkafka ---------------------------------------------------------------------------------------------


def test_what_is_committed_is_read_and_what_is_aborted_is_not(cluster: Cluster) -> None:
    producer = transactional(cluster)
    for number in range(6):
        producer.begin_transaction()
        producer.produce(TOPIC, b"%d" % number, partition=0)
        producer.produce(TOPIC, b"%d" % number, partition=1)
        if number % 3:
            producer.commit_transaction(SECONDS)
        else:
            producer.flush(SECONDS)
            producer.abort_transaction(SECONDS)
    expected = [b"1", b"2", b"4", b"5"]
    assert committed(cluster, 0) == expected
    assert committed(cluster, 1) == expected


def test_a_zombie_is_fenced(cluster: Cluster) -> None:
    zombie = transactional(cluster)
    zombie.begin_transaction()
    zombie.produce(TOPIC, b"of a zombie", partition=0)
    zombie.flush(SECONDS)
    owner = transactional(cluster)  # aborts what the zombie had begun
    with pytest.raises(KafkaException) as refused:
        zombie.commit_transaction(SECONDS)
    assert refused.value.args[0].fatal()
    owner.begin_transaction()
    owner.produce(TOPIC, b"of the owner", partition=0)
    owner.commit_transaction(SECONDS)
    assert committed(cluster) == [b"of the owner"]


def test_who_takes_too_long_is_aborted(cluster: Cluster) -> None:
    producer = transactional(cluster, timeout_ms=1000)
    producer.begin_transaction()
    producer.produce(TOPIC, b"too late", partition=0)
    producer.flush(SECONDS)
    assert committed(cluster) == []  # held up for a second, not for ever
    with pytest.raises(KafkaException):
        producer.commit_transaction(SECONDS)
    assert committed(cluster) == []


def test_offsets_are_committed_with_the_records(cluster: Cluster) -> None:
    send_all(cluster.bootstrap, TOPIC, [b"one", b"two"], partition=1)
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "worker",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    with closing(consumer):
        consumer.subscribe([TOPIC])
        found = consumer.consume(2, SECONDS)
        assert [message.value() for message in found] == [b"one", b"two"]
        producer = transactional(cluster)
        for commit, offset in ((False, 1), (True, 2)):
            producer.begin_transaction()
            producer.produce(TOPIC, b"done %d" % offset, partition=0)
            producer.send_offsets_to_transaction(
                [TopicPartition(TOPIC, 1, offset)], consumer.consumer_group_metadata(), SECONDS
            )
            if commit:
                producer.commit_transaction(SECONDS)
            else:
                producer.abort_transaction(SECONDS)
            (stored,) = consumer.committed([TopicPartition(TOPIC, 1)], SECONDS)
            assert (stored.offset == offset) == commit
    assert committed(cluster) == [b"done 2"]


# --- kafka-python -------------------------------------------------------------------------------------------


def test_kafka_python_commits_and_aborts(cluster: Cluster) -> None:
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id="snake")
    with closing(producer):
        producer.init_transactions()
        for number in range(4):
            producer.begin_transaction()
            producer.send(TOPIC, b"%d" % number, partition=0).get(SECONDS)
            if number % 2:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    assert committed(cluster) == [b"1", b"3"]


# --- request by request -------------------------------------------------------------------------------------


def test_any_process_that_knows_it_may_end_a_transaction(cluster: Cluster) -> None:
    with closing(RawTransactions(cluster.bootstrap)) as first:
        producer = first.producer("left open")
        assert first.add("left open", producer, TOPIC, 0) == [ErrorCode.NONE]
        assert first.produce("left open", producer, TOPIC, b"orphan") is ErrorCode.NONE
    with closing(RawTransactions(cluster.bootstrap)) as second:
        assert second.end("left open", producer, commit=True).error_code == ErrorCode.NONE
    assert committed(cluster) == [b"orphan"]


def test_a_transaction_survives_a_restart(tmp_path: Path) -> None:
    with Cluster(PROPERTIES, directory=tmp_path) as cluster:
        create(cluster.bootstrap, TOPIC, 2)
        with closing(RawTransactions(cluster.bootstrap)) as raw:
            producer = raw.producer("shop")
            raw.add("shop", producer, TOPIC, 0)
            raw.produce("shop", producer, TOPIC, b"before")
    with Cluster(PROPERTIES, directory=tmp_path) as cluster:
        with closing(RawTransactions(cluster.bootstrap)) as raw:
            eventually(lambda: raw.describe("shop").error_code == ErrorCode.NONE)
            state = raw.describe("shop")
            assert state.transaction_state == "Ongoing"
            assert [(topic.topic, topic.partitions) for topic in state.topics] == [(TOPIC, [0])]
            assert raw.end("shop", producer, commit=True).error_code == ErrorCode.NONE
        assert committed(cluster) == [b"before"]


def test_an_end_is_answered_again(raw: RawTransactions) -> None:
    producer = raw.producer("shop")
    raw.add("shop", producer, TOPIC, 0)
    raw.produce("shop", producer, TOPIC, b"once")
    assert raw.end("shop", producer, commit=True).error_code == ErrorCode.NONE
    eventually(lambda: raw.end("shop", producer, commit=True).error_code == ErrorCode.NONE)
    assert raw.end("shop", producer, commit=False).error_code == ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize(
    ("version", "code"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (4, ErrorCode.PRODUCER_FENCED)]
)
def test_older_clients_hear_of_fencing_in_their_words(
    raw: RawTransactions, version: int, code: ErrorCode
) -> None:
    zombie = raw.producer("shop")
    raw.producer("shop")
    assert raw.add("shop", zombie, TOPIC, 0, version=min(version, 3)) == [code]
    assert raw.end("shop", zombie, commit=True, version=version).error_code == code
    assert raw.initialise("shop", has=zombie, version=3).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert raw.initialise("shop", has=zombie, version=4).error_code == ErrorCode.PRODUCER_FENCED


def test_partitions_that_do_not_exist_keep_the_others_out(raw: RawTransactions) -> None:
    producer = raw.producer("shop")
    assert raw.add("shop", producer, TOPIC, 0, 7) == [
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert raw.describe("shop").transaction_state == "Empty"


def test_a_timeout_has_bounds(raw: RawTransactions) -> None:
    for timeout_ms in (0, 900_001):
        answer = raw.initialise("shop", timeout_ms=timeout_ms)
        assert answer.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
        assert answer.producer_id == -1


def test_an_empty_name_is_refused(raw: RawTransactions) -> None:
    assert raw.initialise("").error_code == ErrorCode.INVALID_REQUEST
    assert raw.end("", transaction.Producer(1, 0), commit=True).error_code == ErrorCode.INVALID_REQUEST
    assert raw.add("", transaction.Producer(1, 0), TOPIC, 0) == [ErrorCode.INVALID_REQUEST]
    assert raw.describe("").error_code == ErrorCode.INVALID_REQUEST


def test_tools_see_transactions(raw: RawTransactions) -> None:
    assert raw.describe("nobody").error_code in (
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
        ErrorCode.NOT_COORDINATOR,  # the topic does not exist either
    )
    producer = raw.producer("shop")
    raw.producer("idle")
    raw.add("shop", producer, TOPIC, 1, 0)
    state = raw.describe("shop")
    assert (state.transaction_state, state.producer_id, state.producer_epoch) == ("Ongoing", *producer)
    assert state.transaction_timeout_ms == 60_000
    assert abs(time.time() * 1000 - state.transaction_start_time_ms) < 60_000
    assert [(topic.topic, topic.partitions) for topic in state.topics] == [(TOPIC, [0, 1])]
    assert raw.describe("nobody").error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND

    everything = raw.list(ListTransactionsRequest())
    assert sorted(each.transactional_id for each in everything.transaction_states) == ["idle", "shop"]
    some = raw.list(ListTransactionsRequest(state_filters=["Ongoing", "Lost"]))
    assert [each.transactional_id for each in some.transaction_states] == ["shop"]
    assert some.unknown_state_filters == ["Lost"]
    fitting = raw.list(ListTransactionsRequest(transactional_id_pattern="i.*"))
    assert [each.transactional_id for each in fitting.transaction_states] == ["idle"]
    broken = raw.list(ListTransactionsRequest(transactional_id_pattern="("))
    assert broken.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_an_administrator_ends_what_hangs(cluster: Cluster, raw: RawTransactions) -> None:
    producer = raw.producer("shop")
    raw.add("shop", producer, TOPIC, 0)
    raw.produce("shop", producer, TOPIC, b"hanging")
    older = transaction.Producer(producer.producer_id, producer.epoch - 1)
    assert raw.write_marker(older, TOPIC, commit=False, coordinator_epoch=0) is (
        ErrorCode.INVALID_PRODUCER_EPOCH
    )
    assert raw.write_marker(producer, TOPIC, commit=False, coordinator_epoch=5) is ErrorCode.NONE
    assert committed(cluster) == []
    assert raw.write_marker(producer, TOPIC, commit=True, coordinator_epoch=4) is (
        ErrorCode.TRANSACTION_COORDINATOR_FENCED
    )
    assert raw.write_marker(producer, "nowhere", commit=True, coordinator_epoch=4) is (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )


def test_a_two_phase_transaction_waits_for_its_owner(cluster: Cluster, raw: RawTransactions) -> None:
    answer = raw.initialise("sink", version=6, timeout_ms=1, two_phase=True)
    assert answer.error_code == ErrorCode.NONE
    writer = transaction.Producer(answer.producer_id, answer.producer_epoch)
    raw.add("sink", writer, TOPIC, 0)
    raw.produce("sink", writer, TOPIC, b"prepared")
    time.sleep(0.5)  # the coordinator looks every tenth of a second
    assert raw.describe("sink").transaction_state == "Ongoing"
    assert raw.end("sink", writer, commit=True).error_code == ErrorCode.NONE
    assert committed(cluster) == [b"prepared"]


# --- with transaction.version 2 -----------------------------------------------------------------------------


def test_the_version_is_finalised(raw: RawTransactions) -> None:
    answer = raw.wire.ask(
        ApiVersionsRequest(client_software_name="test", client_software_version="1"), 4, ApiVersionsResponse
    )
    assert [
        (each.min_version, each.max_version)
        for each in answer.supported_features
        if each.name == "transaction.version"
    ] == [(0, 2)]
    assert [
        each.max_version_level for each in answer.finalized_features if each.name == "transaction.version"
    ] == [2]


def test_partitions_come_with_their_first_records(cluster: Cluster, raw: RawTransactions) -> None:
    producer = raw.producer("shop")
    for number in range(3):
        for partition in (0, 1):
            value = b"%d" % number
            code = raw.produce("shop", producer, TOPIC, value, partition=partition, version=12)
            assert code is ErrorCode.NONE
        state = raw.describe("shop")
        assert state.transaction_state == "Ongoing"
        assert [(topic.topic, topic.partitions) for topic in state.topics] == [(TOPIC, [0, 1])]
        answer = raw.end("shop", producer, commit=number != 1, version=5)
        assert answer.error_code == ErrorCode.NONE
        assert (answer.producer_id, answer.producer_epoch) == (producer.producer_id, producer.epoch + 1)
        eventually(lambda: raw.describe("shop").transaction_state.startswith("Complete"))
        again = raw.end("shop", producer, commit=number != 1, version=5)
        assert again.to_bytes(5) == answer.to_bytes(5)
        late = raw.produce("shop", producer, TOPIC, b"late", version=12)
        assert late in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
        late_end = raw.end("shop", producer, commit=number == 1, version=5)
        assert late_end.error_code == ErrorCode.INVALID_TXN_STATE
        producer = transaction.Producer(answer.producer_id, answer.producer_epoch)
    assert committed(cluster, 0) == [b"0", b"2"]
    assert committed(cluster, 1) == [b"0", b"2"]


def test_the_next_transaction_may_begin_at_once(cluster: Cluster, raw: RawTransactions) -> None:
    """The markers of the one before may still be on their way: then its first records wait for them."""
    producer = raw.producer("shop")
    for number in range(20):
        value = b"%d" % number
        assert raw.produce("shop", producer, TOPIC, value, version=12) is ErrorCode.NONE
        answer = raw.end("shop", producer, commit=True, version=5)
        assert answer.error_code == ErrorCode.NONE
        producer = transaction.Producer(answer.producer_id, answer.producer_epoch)
    assert committed(cluster) == [b"%d" % number for number in range(20)]


def test_a_kept_transaction_is_ended_by_another_process(cluster: Cluster, raw: RawTransactions) -> None:
    first = raw.initialise("sink", version=6, two_phase=True)
    writer = transaction.Producer(first.producer_id, first.producer_epoch)
    assert raw.produce("sink", writer, TOPIC, b"kept", version=12) is ErrorCode.NONE
    second = raw.initialise("sink", version=6, two_phase=True, keep=True)
    assert (second.ongoing_txn_producer_id, second.ongoing_txn_producer_epoch) == writer
    owner = transaction.Producer(second.producer_id, second.producer_epoch)
    assert raw.end("sink", writer, commit=False, version=5).error_code == ErrorCode.PRODUCER_FENCED
    answer = raw.end("sink", owner, commit=True, version=5)
    assert (answer.error_code, answer.producer_epoch) == (ErrorCode.NONE, owner.epoch + 1)
    assert committed(cluster) == [b"kept"]
