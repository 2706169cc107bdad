"""`headrace audit status|report|wait|retire` and the audited producers, against a real broker. No Spark."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from confluent_kafka import Producer

from headrace.audit import confluent, event, kafka_python
from headrace.audit.checksum import record_hash
from headrace.audit.event import Event
from headrace.audit.settings import AuditSettings
from headrace.audit.tally import Cell, Tally, total
from headrace.audit.verdict import Difference, Kind, State, Verdict
from headrace.audit.verdict_topic import publish
from headrace.client.cluster import Cluster
from headrace.client.consumer import Consumer
from headrace.client.errors import Refused
from headrace.client.offsets import ends_of, partitions_of
from headrace.client.producer import Producer as ClientProducer
from headrace.core.ids import TopicPartition
from headrace.protocol.records import NewRecord, Record
from tests.integration.either_broker import either_broker
from tests.integration.real_client import SECONDS, create
from tests.unit.cli.serving import Run, runner

PROPERTIES = {"transaction.state.log.num.partitions": "3", "offsets.topic.num.partitions": "3"}
MINUTE = 60_000
BEGIN = 1_700_000_040_000


@pytest.fixture(scope="module")
def bootstrap(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with either_broker(request, tmp_path_factory, PROPERTIES) as address:
        yield address


@pytest.fixture
def run(bootstrap: str) -> Run:
    return runner(bootstrap)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return "".join(c if c.isalnum() else "-" for c in request.node.name)


def verdict(topic: str, number: int, state: State = State.CERTIFIED) -> Verdict:
    tally = Tally(100 + number, 1, 2)
    different = Difference("lake", "log", 1, Kind.LOST, 99 + number, 100 + number)
    return Verdict(
        topic,
        BEGIN + number * MINUTE,
        MINUTE,
        state,
        {"producers": tally, "log": tally, "lake": tally},
        (different,) if state is State.DIFFERENT else (),
        ("producer checkout on web-3 is silent",) if state is State.INCOMPLETE else (),
    )


def read_all(bootstrap: str, topic: str) -> dict[TopicPartition, list[Record]]:
    async def read() -> dict[TopicPartition, list[Record]]:
        async with Cluster(bootstrap) as cluster:
            ends = await ends_of(cluster, await partitions_of(cluster, topic))
            consumer = Consumer(cluster, {place: first for place, (first, _) in ends.items()})
            found: dict[TopicPartition, list[Record]] = {place: [] for place in ends}
            while any(consumer.positions[place] < end for place, (first, end) in ends.items() if end > first):
                for fetched in await consumer.poll():
                    found[fetched.partition] += fetched.records
            await consumer.close()
            return found

    return asyncio.run(read())


async def send(bootstrap: str, topic: str, record: NewRecord) -> None:
    async with Cluster(bootstrap) as cluster:
        sender = ClientProducer(cluster)
        await sender.send(topic, record)
        await sender.flush()


def told(bootstrap: str, topic: str) -> list[Event]:
    """By sequence, each once."""
    records = [record for records in read_all(bootstrap, topic).values() for record in records]
    events = [event.decode(bytes(record.value or b"")) for record in records]
    return sorted({each.sequence: each for each in events}.values(), key=lambda each: each.sequence)


def until_told(
    bootstrap: str, topic: str, wanted: Callable[[Event], object] = lambda event: event.counts
) -> None:
    deadline = time.monotonic() + SECONDS
    while True:
        with suppress(Refused):  # the first event makes the topic
            if any(wanted(each) for each in told(bootstrap, topic)):
                return
        assert time.monotonic() < deadline, "the producer has told nothing yet"
        time.sleep(0.05)


def sums(events: list[Event]) -> dict[Cell, Tally]:
    found: dict[Cell, Tally] = {}
    for each in events:
        for count in each.counts:
            found[count.cell] = found.get(count.cell, Tally()).plus(count.tally)
    return found


def counted(bootstrap: str, topic: str) -> dict[Cell, Tally]:
    """What a reader of the topic sees."""
    found: dict[Cell, Tally] = {}
    for place, records in read_all(bootstrap, topic).items():
        for record in records:
            key = None if record.key is None else bytes(record.key)
            value = None if record.value is None else bytes(record.value)
            cell = Cell(topic, place.partition, record.timestamp - record.timestamp % MINUTE)
            one = Tally(1, *record_hash(key, value, record.timestamp))
            found[cell] = found.get(cell, Tally()).plus(one)
    return found


# --- commands -----------------------------------------------------------------------------------------------


def test_status_report_and_wait_agree(bootstrap: str, run: Run, name: str, tmp_path: Path) -> None:
    states = [State.CERTIFIED, State.CERTIFIED, State.DIFFERENT, State.INCOMPLETE]
    asyncio.run(
        publish(Cluster(bootstrap), name, [verdict("orders", at, state) for at, state in enumerate(states)])
    )
    where = ("--certificates", name)
    shown = run("audit", "status", *where).stdout
    assert "2023-11-14T22:16:00Z" in shown  # certified until there
    assert "partition 1: lake: 1 lost" in shown
    assert "incomplete: producer checkout on web-3 is silent" in shown
    documents = json.loads(run("audit", "report", "orders", "--json", *where).stdout)
    assert [each["state"] for each in documents] == [state.value for state in states]

    for moment, code in (
        (BEGIN + 5_000, 0),
        (BEGIN + 2 * MINUTE, 1),
        (BEGIN + 3 * MINUTE, 2),
        (BEGIN - MINUTE, 2),
    ):
        run("audit", "wait", "orders", str(moment), "--timeout", "4s", *where, code=code)

    for file in ("report.html", "report.svg"):
        run("audit", "report", "orders", "--output", str(tmp_path / file), *where)
    drawn = ElementTree.fromstring((tmp_path / "report.svg").read_text())
    assert len(drawn.findall(".//{http://www.w3.org/2000/svg}title")) == 4 * 4
    assert "orders" in (tmp_path / "report.html").read_text()
    assert "orders 4 windows" in run("audit", "report", *where).stdout.replace("\n", " ")


def test_wait_goes_on_until_the_certificate_comes(bootstrap: str, run: Run, name: str) -> None:
    def certify() -> None:
        time.sleep(1)
        asyncio.run(
            publish(Cluster(bootstrap), name, [verdict("orders", 0, State.OPEN), verdict("orders", 0)])
        )

    later = threading.Thread(target=certify)
    later.start()
    ended = run("audit", "wait", "orders", str(BEGIN), "--timeout", "30s", "--certificates", name)
    later.join()
    assert "certified" in ended.stdout


def test_a_topic_without_verdicts_says_what_to_do(run: Run, name: str) -> None:
    assert "headrace audit run" in run("audit", "status", "--certificates", name).stderr
    assert "audit run" in run("audit", "report", "--certificates", name, code=1).output


# --- producers ----------------------------------------------------------------------------------------------


def settings(name: str, **more: float) -> AuditSettings:
    return AuditSettings(f"{name}-producer", "here", f"{name}-events", report_seconds=more.get("every", 0.3))


def test_confluent_kafka_tells_what_the_log_holds(bootstrap: str, name: str) -> None:
    create(bootstrap, name, 2)
    heard: list[object] = []
    producer = confluent.audited(Producer, settings(name))({"bootstrap.servers": bootstrap})
    for number in range(500):
        producer.produce(name, b"%d" % number, None if number % 3 else b"%d" % (number % 7))
        if number == 250:
            producer.flush(SECONDS)
            until_told(bootstrap, f"{name}-events")
    producer.produce(name, None, b"tombstone", timestamp=BEGIN)
    producer.produce(name, b"mine", on_delivery=lambda *told: heard.append(told))
    producer.produce(name, b"mine", b"k", 0, lambda *told: heard.append(told))
    producer.produce_batch(
        name, [{"value": b"a"}, {"value": b"b", "callback": lambda *told: heard.append(told)}]
    )
    producer.flush(SECONDS)
    producer.close()
    events = told(bootstrap, f"{name}-events")
    assert sums(events) == counted(bootstrap, name)
    assert total(sums(events).values()).count == 505
    assert [each.sequence for each in events] == list(range(len(events)))
    assert (events[0].counts, events[-1].closing) == ((), True)
    assert len([each for each in events if each.counts]) >= 2
    assert len(heard) == 3


@pytest.fixture
def kafka_producer() -> type[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of its own way to read its files
        from kafka import KafkaProducer
    found: type[Any] = KafkaProducer
    return found


def test_kafka_python_tells_what_the_log_holds(bootstrap: str, name: str, kafka_producer: type[Any]) -> None:
    create(bootstrap, name, 2)
    with closing(
        kafka_python.audited(kafka_producer, settings(name))(bootstrap_servers=bootstrap)
    ) as producer:
        for number in range(300):
            producer.send(name, b"%d" % number, None if number % 3 else b"%d" % (number % 7))
        producer.send(name, b"old", timestamp_ms=BEGIN)
        producer.flush()
        until_told(bootstrap, f"{name}-events")
    events = told(bootstrap, f"{name}-events")
    assert sums(events) == counted(bootstrap, name)
    assert total(sums(events).values()).count == 301
    assert events[-1].closing


def test_only_committed_transactions_are_told(bootstrap: str, name: str) -> None:
    create(bootstrap, name, 1)
    producer = confluent.audited(Producer, settings(name))(
        {"bootstrap.servers": bootstrap, "transactional.id": name}
    )
    producer.init_transactions(SECONDS)
    for number in range(4):
        producer.begin_transaction()
        for value in range(10):
            producer.produce(name, b"%d-%d" % (number, value))
        if number % 2:
            producer.flush(SECONDS)
            producer.abort_transaction(SECONDS)
        else:
            producer.commit_transaction(SECONDS)
    producer.close()
    events = told(bootstrap, f"{name}-events")
    assert sums(events) == counted(bootstrap, name)
    assert total(sums(events).values()).count == 20
    assert events[-1].closing


def test_a_producer_that_is_dropped_says_so_and_one_that_is_retired_is_found(
    bootstrap: str, run: Run, name: str
) -> None:
    create(bootstrap, name, 1)
    producer = confluent.audited(Producer, settings(name))({"bootstrap.servers": bootstrap})
    producer.produce(name, b"x")
    producer.flush(SECONDS)
    until_told(bootstrap, f"{name}-events", lambda event: event)
    retire = ("audit", "retire", f"{name}-producer", "--events", f"{name}-events")
    assert "here was heard" in run(*retire, code=1).stderr
    long_ago = time.time_ns() // 1_000_000 - 10 * MINUTE
    silent = Event(f"{name}-producer", "gone", "there", long_ago, 0, long_ago, long_ago, 300, MINUTE)
    asyncio.run(send(bootstrap, f"{name}-events", NewRecord(silent.encode(), silent.key, long_ago)))
    assert "there is retired" in run(*retire).stdout
    del producer
    records = [record for records in read_all(bootstrap, f"{name}-events").values() for record in records]
    last = [json.loads(bytes(record.value or b"")) for record in records]
    assert any(each.get("retired") for each in last)
    assert last[-1]["closing"] is True
    run("audit", "retire", "nobody", "--events", f"{name}-events", code=1)


def test_an_audit_topic_that_cannot_be_written_breaks_nothing(bootstrap: str, name: str) -> None:
    create(bootstrap, name, 1)
    unwritable = AuditSettings("p", "here", "no such/topic", report_seconds=0.2, close_seconds=1)
    delivered: list[object] = []
    with confluent.audited(Producer, unwritable)(
        {"bootstrap.servers": bootstrap, "message.timeout.ms": 20_000}
    ) as producer:
        producer.produce(name, b"x", on_delivery=lambda error, _: delivered.append(error))
        producer.flush(SECONDS)
    assert delivered == [None]
