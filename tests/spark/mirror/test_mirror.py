"""Topics go from one cluster into another on a real Spark, between Headrace and Apache Kafka."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
)
from pyspark.sql import SparkSession

from headrace.cli.main import cli
from headrace.spark.mirror import config, job
from headrace.spark.mirror.config import MirrorConfig
from headrace.spark.mirror.groups import Carried
from headrace.spark.mirror.job import Totals
from headrace.spark.mirror.problems import MirrorRefused
from headrace.spark.mirror.reading import Reading, groups_now
from tests.broker_process import BrokerProcess
from tests.spark.committed import committed, end_of
from tests.spark.mirror.ends import Filler, compare, exact, offsets_of
from tests.spark.sink.reading import create, read


@pytest.fixture(params=["from headrace", "from kafka"])
def sides(
    request: pytest.FixtureRequest, headrace: BrokerProcess, apache_kafka: BrokerProcess
) -> tuple[str, str]:
    """Where the source is, and where the target is."""
    there, back = headrace.bootstrap, apache_kafka.bootstrap
    return (there, back) if request.param == "from headrace" else (back, there)


class Mirroring:
    """One mirror of one topic, and of what the test adds."""

    def __init__(self, spark: SparkSession, sides: tuple[str, str], name: str, text: str = "") -> None:
        self.spark, self.name = spark, name
        self.source, self.target = sides
        self.text = text or f'[[topics]]\nname = "{name}"\n'

    def config(self, more: str = "") -> MirrorConfig:
        return config.parse(self.file(more), Path("mirror.toml"))

    def file(self, more: str = "") -> str:
        return (
            f'[source]\n"bootstrap.servers" = "{self.source}"\n'
            f'[target]\n"bootstrap.servers" = "{self.target}"\n'
            f'{self.text}{more}[mirror]\nname = "{self.name}"\nmax_records_per_batch = 400\n'
            f'group = "of-{self.name}"\n'
        )

    def run(self, more: str = "", **how: object) -> Totals:
        return job.run(self.spark, self.config(more), once=True, **how)  # type: ignore[arg-type]  # as `run` has it

    def reading(self) -> Reading:
        async def read_it() -> Reading:
            return await Reading.of(self.config())

        return asyncio.run(read_it())

    def groups(self, more: str) -> list[Carried]:
        return asyncio.run(groups_now(self.config(more)))


@pytest.fixture
def mirroring(spark: SparkSession, sides: tuple[str, str], new_topic: Callable[[], str]) -> Mirroring:
    return Mirroring(spark, sides, new_topic())


@pytest.fixture
def one_way(
    spark: SparkSession, headrace: BrokerProcess, apache_kafka: BrokerProcess, new_topic: Callable[[], str]
) -> Mirroring:
    """For what does not depend on whose brokers they are."""
    return Mirroring(spark, (headrace.bootstrap, apache_kafka.bootstrap), new_topic())


def test_records_arrive_once_and_every_offset_is_translated(mirroring: Mirroring) -> None:
    topic = mirroring.name
    create(mirroring.source, topic, 2)
    filler = Filler(mirroring.source, topic, 2, seed=1)
    for records in (700, 300):
        filler.fill(records)
        mirroring.run()
    pairs = compare(mirroring.source, mirroring.target, topic, topic)
    reading = mirroring.reading()
    wrong = {
        (partition, offset): (reading.translate(topic, partition, offset), exact(pairs[partition], offset))
        for partition, offset in offsets_of(pairs)
        if reading.translate(topic, partition, offset) != exact(pairs[partition], offset)
    }
    assert not wrong
    assert mirroring.run().records == 0, "and nothing is new"
    own = [committed(mirroring.source, f"of-{topic}", topic, each) for each in (0, 1)]
    assert own == [end_of(mirroring.source, topic, each) for each in (0, 1)], "its group has no lag"
    _grow(mirroring.source, topic, 3)
    Filler(mirroring.source, topic, 3, seed=2).fill(100)
    mirroring.run()
    assert set(compare(mirroring.source, mirroring.target, topic, topic)) == {0, 1, 2}


def _grow(bootstrap: str, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(60)


def test_a_group_that_moves_over_reads_each_record_once(mirroring: Mirroring) -> None:
    topic, group = mirroring.name, f"group-of-{mirroring.name}"
    carried = f'[groups]\npatterns = ["{group}"]\n'
    create(mirroring.source, topic, 1)
    filler = Filler(mirroring.source, topic, 1, seed=3)
    filler.fill(300)
    first = _consume(mirroring.source, topic, group, 100)
    mirroring.run(carried)
    there = _consume(mirroring.target, topic, group, 10_000)
    values = [each for each in (*first, *there) if each is not None]
    expected = [each.value for each in read(mirroring.source, topic) if each.value is not None]
    assert values == expected
    # The group lives on the target now: what the source remembers of it is not carried any more.
    (shown,) = mirroring.groups(carried)
    assert shown.state == "moved"
    assert mirroring.run(carried).offsets_carried == 0


def _consume(bootstrap: str, topic: str, group: str, most: int) -> list[bytes | None]:
    """As a reader that commits what it has read, and leaves."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "session.timeout.ms": 6000,
        }
    )
    found: list[bytes | None] = []
    try:
        # Committed by nobody yet: begin at the beginning, which is said and not assumed.
        partition = TopicPartition(topic, 0)
        if consumer.committed([partition], 30)[0].offset < 0:
            consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
        consumer.subscribe([topic])
        while len(found) < most:
            message = consumer.poll(60)
            assert message is not None, "nothing comes, not even the end"
            if message.error() is not None:
                break
            found.append(message.value())
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return found


def test_settings_go_along_and_follow(one_way: Mirroring) -> None:
    topic = one_way.name
    admin = AdminClient({"bootstrap.servers": one_way.source})
    create(one_way.source, topic, 1)
    one_way.run()
    assert _setting(one_way.target, topic, "retention.ms") == "-1"
    change = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
    admin.incremental_alter_configs([resource])[resource].result(30)
    one_way.run()
    assert _setting(one_way.target, topic, "cleanup.policy") == "compact"


def _setting(bootstrap: str, topic: str, name: str) -> str:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    return str(admin.describe_configs([resource])[resource].result(30)[name].value)


def test_a_source_that_lost_records_stops_with_a_sentence(one_way: Mirroring) -> None:
    topic = one_way.name
    create(one_way.source, topic, 1)
    _produce(one_way.source, topic, range(10))
    one_way.run()
    _produce(one_way.source, topic, range(10, 30))
    admin = AdminClient({"bootstrap.servers": one_way.source})
    admin.delete_records([TopicPartition(topic, 0, 15)])[TopicPartition(topic, 0)].result(30)
    with pytest.raises(MirrorRefused, match="5 offsets from 10 on were removed"):
        one_way.run()
    assert len(read(one_way.target, topic)) == 10, "nothing is skipped in silence"
    assert one_way.run(accept="earliest").records == 15
    admin.delete_topics([topic])[topic].result(30)
    _until_gone(admin, topic)
    create(one_way.source, topic, 1)
    _produce(one_way.source, topic, range(100, 200))
    with pytest.raises(MirrorRefused, match="was deleted and made anew on the source"):
        one_way.run()
    assert one_way.run(accept="earliest").records == 100
    values = [each.value for each in read(one_way.target, topic)]
    assert values == [b"%d" % n for n in (*range(10), *range(15, 30), *range(100, 200))]
    reading = one_way.reading()
    assert reading.translate(topic, 0, 0) == [each.offset for each in read(one_way.target, topic)][25]


def _until_gone(admin: AdminClient, topic: str) -> None:
    while topic in admin.list_topics(timeout=30).topics:
        pass


def _produce(bootstrap: str, topic: str, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in numbers:
        producer.produce(topic, value=b"%d" % number, partition=0)
    producer.flush(60)


def test_two_mirrors_between_the_same_topics_carry_nothing_back(
    spark: SparkSession, headrace: BrokerProcess, apache_kafka: BrokerProcess, new_topic: Callable[[], str]
) -> None:
    topic = new_topic()
    one, other = headrace.bootstrap, apache_kafka.bootstrap
    for bootstrap, numbers in ((one, range(50)), (other, range(50, 100))):
        create(bootstrap, topic, 1)
        _produce(bootstrap, topic, numbers)
    there = Mirroring(spark, (one, other), topic)
    with pytest.raises(MirrorRefused, match="50 offsets that this mirror has not written"):
        there.run()
    mirrors = [_Appending(spark, each, topic) for each in ((one, other), (other, one))]
    for _ in range(2):
        for mirror in mirrors:
            mirror.run()
    for bootstrap in (one, other):
        values = [int(each.value or b"") for each in read(bootstrap, topic)]
        assert sorted(values) == list(range(100))
    reading = mirrors[0].reading()
    mine = {each.value: each.offset for each in read(other, topic)}
    for each in read(one, topic):
        if int(each.value or b"") < 50:
            assert reading.translate(topic, 0, each.offset) == mine[each.value]


class _Appending(Mirroring):
    def config(self, more: str = "") -> MirrorConfig:
        return replace(super().config(more), existing="append")


def test_commands_tell_what_is_mirrored_and_what_is_not(one_way: Mirroring, tmp_path: Path) -> None:
    topic, group = one_way.name, f"group-of-{one_way.name}"
    groups = f'[groups]\npatterns = ["{group}"]\n'
    path = tmp_path / "mirror.toml"
    path.write_text(one_way.file(groups))

    def told(*arguments: str, status: int = 0) -> Any:
        found = CliRunner().invoke(cli, ["mirror", *arguments, "--config", str(path), "--json"])
        assert found.exit_code == status, found.output
        return json.loads(found.stdout)

    create(one_way.source, topic, 1)
    _produce(one_way.source, topic, range(10))
    assert told("status")["coming"] == [topic]
    _consume(one_way.source, topic, group, 4)
    one_way.run(groups)
    _produce(one_way.source, topic, range(10, 13))
    (status,) = told("status")["topics"]
    assert (status["mirrored"], status["lag"], status["problem"]) == (10, 3, None)
    assert 0 < status["lag_ms"] < 3_600_000
    assert [each["target"] for each in told("translate", topic, "0", "7", "10")["offsets"]] == [7, 10]
    assert told("translate", topic, "0", "11", status=1)["offsets"] == [{"source": 11, "target": None}]
    (carried,) = told("groups", group, "--ready")
    assert (carried["source_offset"], carried["there"], carried["state"]) == (4, 4, "carried")
