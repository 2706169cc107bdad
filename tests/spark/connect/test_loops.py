"""The loops of connectors on a real Spark: back-off, dead letters, and who has been replaced."""

from __future__ import annotations

import asyncio
import json
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headrace.client.cluster import Cluster
from headrace.client.group_offsets import committed_offsets
from headrace.client.producer import Producer
from headrace.connect.api import Connector, Source
from headrace.connect.plugins import described
from headrace.connect.runner import Condition, Report, Run
from headrace.connect.stores import Topics
from headrace.core.ids import TopicPartition
from headrace.protocol.records import NewRecord
from headrace.spark.connect.connectors.directory_sink import DirectorySink
from headrace.spark.connect.connectors.directory_source import DirectorySource
from headrace.spark.connect.context import Context
from headrace.spark.connect.looping import ConnectorLoop
from headrace.spark.connect.runner import SparkRunner
from headrace.spark.connect.sink_loop import SinkLoop
from headrace.spark.connect.source_loop import SourceLoop
from tests.broker_process import BrokerProcess
from tests.spark.connect.own_connectors import HERE, CarefulSink, CursorSource, PickySink
from tests.spark.sink.reading import create, read

pytestmark = pytest.mark.timeout(1200)

SECONDS = 600


@pytest.fixture
def context(spark: SparkSession, headrace: BrokerProcess, new_topic: Callable[[], str]) -> Iterator[Context]:
    made = Context(
        spark, {"bootstrap.servers": headrace.bootstrap}, Topics(offsets=f"offsets-{new_topic()}"), jobs=2
    )
    yield made
    made.close()


class Started:
    """A loop, and what it says."""

    def __init__(
        self, context: Context, connector: type[Connector], name: str, given: Mapping[str, str]
    ) -> None:
        self.said: queue.Queue[Report] = queue.Queue()
        kind: type[ConnectorLoop] = SourceLoop if issubclass(connector, Source) else SinkLoop
        properties = {"name": name, "connector.class": connector.__name__, "poll.interval.ms": "50", **given}
        self.loop = kind(Run(name, described(connector), properties), self.said.put, context)
        self.loop.start()

    def until(self, condition: Condition) -> Report:
        while True:
            report = self.said.get(timeout=SECONDS)
            if report.condition is condition:
                return report

    def end(self) -> None:
        ended = threading.Event()
        self.loop.end(ended.set)
        assert ended.wait(SECONDS)


def _wait(look: Callable[[], bool]) -> None:
    waiting = threading.Event()
    for _ in range(SECONDS * 5):
        if look():
            return
        waiting.wait(0.2)
    raise AssertionError("it has not come")


def test_a_source_fails_says_so_and_goes_on_where_it_was(
    context: Context, headrace: BrokerProcess, new_topic: Callable[[], str], tmp_path: Path
) -> None:
    topic = new_topic()
    create(headrace.bootstrap, topic, 1)
    started = Started(context, CursorSource, topic, {"topic": topic, "folder": str(tmp_path)})
    report = started.until(Condition.RETRYING)
    assert "the other end is busy" in (report.trace or "")
    assert "attempt 1 failed; the next is at" in (report.trace or "")
    started.until(Condition.RUNNING)
    runner = SparkRunner(context)

    def at() -> object:
        return asyncio.run(runner.source_position(topic)).offset(HERE)

    _wait(lambda: at() == {"at": 6})
    started.end()
    found = read(headrace.bootstrap, topic)
    assert [json.loads(each.value or b"") for each in found] == [{"at": number} for number in range(6)]
    assert [each.timestamp for each in found] == list(range(1000, 1006))
    assert {(each.key, tuple(each.headers)) for each in found} == {(b"k", (("h", b"1"),))}


def test_two_of_one_source_write_every_record_once(
    context: Context, headrace: BrokerProcess, new_topic: Callable[[], str], tmp_path: Path
) -> None:
    """The second is what another worker would start that takes the first one for dead."""
    topic = new_topic()
    create(headrace.bootstrap, topic, 1)
    given = {"topic": topic, "folder": str(tmp_path)}
    both = [Started(context, CursorSource, topic, given) for _ in range(2)]
    runner = SparkRunner(context)
    _wait(lambda: asyncio.run(runner.source_position(topic)).offset(HERE) == {"at": 6})
    for each in both:
        each.end()
    values = [json.loads(each.value or b"")["at"] for each in read(headrace.bootstrap, topic)]
    assert values == list(range(6))


def _produce(bootstrap: str, topic: str, values: list[bytes]) -> None:
    async def produce() -> None:
        async with Cluster(bootstrap) as cluster:
            records = [NewRecord(value, b"k", 5) for value in values]
            await Producer(cluster).send_batch(TopicPartition(topic, 0), records)

    asyncio.run(produce())


@pytest.mark.parametrize("sink", [PickySink, CarefulSink])
def test_a_sink_refuses_records_and_writes_the_others(
    sink: type[PickySink],
    context: Context,
    headrace: BrokerProcess,
    new_topic: Callable[[], str],
    tmp_path: Path,
) -> None:
    topic, letters = new_topic(), new_topic()
    create(headrace.bootstrap, topic, 1)
    bad = [b'{"id": -3}', b"no json"]
    _produce(headrace.bootstrap, topic, [b'{"id": 1}', bad[0], b'{"id": 2}', bad[1], b'{"id": 4}'])
    given = {
        "topics": topic,
        "folder": str(tmp_path),
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "errors.deadletterqueue.topic.name": letters,
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    strict = Started(context, sink, topic, given)
    failed = strict.until(Condition.FAILED)
    assert "errors.tolerance=all" in (failed.trace or ""), "it does not go on by itself"
    strict.end()
    asked_before = tmp_path / "was-asked-before"
    assert asked_before.exists() == sink.letters_first
    asked_before.unlink(missing_ok=True)

    lenient = Started(context, sink, topic, {**given, "errors.tolerance": "all"})
    _wait(lambda: _committed(headrace.bootstrap, topic) == 5)
    lenient.end()
    assert asked_before.exists() == sink.letters_first
    asked_before.unlink(missing_ok=True)
    written = [line for path in sorted(tmp_path.iterdir()) for line in path.read_text().split()]
    assert written == ["1", "2", "4"]
    found = read(headrace.bootstrap, letters)
    assert sorted(each.value or b"" for each in found) == sorted(bad)
    headers = {name: value for each in found for name, value in each.headers if each.value == bad[0]}
    assert headers["__connect.errors.offset"] == b"1"
    assert headers["__connect.errors.exception.message"] == b"-3 is below zero"


def test_a_directory_of_typed_columns(
    context: Context, headrace: BrokerProcess, new_topic: Callable[[], str], tmp_path: Path
) -> None:
    """What is not of the schema is a dead letter; a file that cannot be read back is a sentence, at once."""
    topic, letters = new_topic(), new_topic()
    create(headrace.bootstrap, topic, 1)
    values = [b'{"id": 1, "at": "2026-03-01T10:00:00Z", "tags": ["a"]}', b'{"id": "x"}', b'{"id": 2}']
    _produce(headrace.bootstrap, topic, values)
    given = {
        "topics": topic,
        "location": str(tmp_path / "files"),
        "format": "parquet",
        "value.schema": "id bigint, at timestamp, tags array<string>",
        "batch.linger.ms": "0",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": letters,
    }
    started = Started(context, DirectorySink, topic, given)
    _wait(lambda: _committed(headrace.bootstrap, topic) == 3)
    started.end()
    assert [each.value for each in read(headrace.bootstrap, letters)] == [values[1]]
    found = context.spark.read.parquet(str(tmp_path / "files")).orderBy("kafka_offset").collect()
    assert [(row["kafka_offset"], row["id"], row["tags"]) for row in found] == [(0, 1, ["a"]), (2, 2, None)]
    assert found[0]["topic"] == topic, "Spark knows the folders as columns"
    assert found[0]["at"].timestamp() == datetime(2026, 3, 1, 10, tzinfo=UTC).timestamp()
    runner = SparkRunner(context)
    run = started.loop.run
    partition = TopicPartition(topic, 0)
    assert asyncio.run(runner.sink_position(run)) == {partition: 3}
    asyncio.run(runner.set_sink_position(run, {partition: 1}))
    assert asyncio.run(runner.sink_position(run)) == {partition: 1}

    again = {
        "topic": new_topic(),
        "location": str(tmp_path / "files"),
        "format": "json",
        "file.quiet.ms": "0",
    }
    reading = Started(context, DirectorySource, again["topic"], again)
    failed = reading.until(Condition.FAILED)
    reading.end()
    assert (failed.trace or "").startswith("GiveUp: ")
    assert "a line that is no JSON" in (failed.trace or "")
    assert "Traceback" not in (failed.trace or "")


def _committed(bootstrap: str, name: str) -> int | None:
    async def ask() -> int | None:
        async with Cluster(bootstrap) as cluster:
            group = f"connect-{name}"
            found = (await committed_offsets(cluster, [group]))[group]
            return next((entry.offset for entry in found.values()), None)

    return asyncio.run(ask())
