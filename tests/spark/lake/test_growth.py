"""Schemas, topics and partitions that change while the lake exists."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from headrace.spark.kafka_properties import KafkaProperties
from headrace.spark.lake import job
from headrace.spark.lake.config import LakeConfig
from headrace.spark.lake.files import LocalFiles, for_people
from headrace.spark.lake.job import Lake, LoadFailed
from tests.broker_process import BrokerProcess
from tests.spark.lake.conftest import LakeUnderTest
from tests.spark.source.queries import delete


def with_schema(config: LakeConfig, schema: str) -> LakeConfig:
    return replace(config, topics=tuple(replace(rule, schema=schema) for rule in config.topics))


def test_columns_are_added_widened_and_left_behind(lake: LakeUnderTest, new_topic: Callable[[], str]) -> None:
    topic = new_topic()
    config = lake.config(
        f'[[topics]]\nname = "{topic}"\nformat = "json"\nschema = "id int, gone string, s struct<x: float>"'
    )
    lake.produce(topic, [b'{"id": 1, "gone": "g", "s": {"x": 0.5}}'])
    lake.load(config)
    wider = "s struct<x: double, y: string>, id bigint, more array<string>"
    lake.produce(topic, [b'{"id": 5000000000, "s": {"x": 0.1, "y": "why"}, "more": ["a", "b"]}'])
    lake.load(with_schema(config, wider))
    # Narrower again, and a type that does not fit: the column stays, the record is a dead letter.
    lake.produce(topic, [b'{"id": 3}', b'{"id": 4, "gone": true}'])
    lake.load(with_schema(config, "id int, gone boolean"))

    rows = lake.rows(config, topic)
    assert [row.id for row in rows] == [1, 5_000_000_000, 3]
    assert [row.gone for row in rows] == ["g", None, None]
    assert [row.s and (row.s.x, row.s.y) for row in rows] == [(0.5, None), (0.1, "why"), None]
    assert [row.more for row in rows] == [None, ["a", "b"], None]
    (dead,) = lake.rows(config, f"{topic}_dead_letters")
    assert "string cannot become boolean" in dead.reason


def test_topics_and_partitions_that_appear_are_loaded(
    make_lake: Callable[[BrokerProcess, str], LakeUnderTest],
    broker: BrokerProcess,
    new_topic: Callable[[], str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Against both brokers, with a job that runs on."""
    lake = make_lake(broker, "parquet")
    prefix = new_topic()
    config = lake.config(f'[[topics]]\npattern = "{prefix}.*"', 'trigger = "100ms"\ndiscover = "1s"')
    config = replace(config, kafka=KafkaProperties({**config.kafka, "metadata.max.age.ms": "500"}))
    lake.produce(f"{prefix}-a", [b"1", b"2"])
    stop = threading.Event()
    seen: list[Lake] = []

    def loaded(topic: str) -> int:
        found = seen[-1].loading.get(topic) if seen else None
        return 0 if found is None else sum(batch.records for batch in found.done.batches)

    def until(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 240
        while not condition():
            assert time.monotonic() < deadline
            assert running.is_alive()
            time.sleep(0.2)

    running = threading.Thread(
        target=lambda: job.run(lake.spark, config, stop=stop, told=lambda each: seen.append(each))
    )
    running.start()
    try:
        until(lambda: loaded(f"{prefix}-a") == 2)
        lake.produce(f"{prefix}-b", [b"3"])
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for future in admin.create_partitions([NewPartitions(f"{prefix}-a", 2)]).values():
            future.result(30)
        lake.produce(f"{prefix}-a", [b"4", b"5", b"6"], partition=1)
        until(lambda: loaded(f"{prefix}-b") == 1 and loaded(f"{prefix}-a") == 5)
        # It has no place in the lake: its table would be that of the other's dead letters.
        lake.produce(f"{prefix}-a_dead_letters", [b"7"])
        until(lambda: "new topics are not looked for" in caplog.text)
        lake.produce(f"{prefix}-b", [b"8"])
        until(lambda: loaded(f"{prefix}-b") == 2)
    finally:
        stop.set()
        running.join(120)
    rows = lake.rows(config, f"{prefix}-a")
    assert [(row.partition, row.offset) for row in rows] == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]
    assert len(lake.rows(config, f"{prefix}-b")) == 2


def test_a_lost_checkpoint_loads_nothing_twice(lake: LakeUnderTest, new_topic: Callable[[], str]) -> None:
    topic = new_topic()
    config = lake.config(f'[[topics]]\nname = "{topic}"\nformat = "json"\nschema = "id int"')
    lake.produce(topic, [b'{"id": 0}', b'{"id": 1}', b"bad"])
    lake.load(config)
    LocalFiles().remove(config.state)
    lake.produce(topic, [b'{"id": 3}'])
    lake.load(config)
    assert [row.offset for row in lake.rows(config, topic)] == [0, 1, 3]
    assert [row.offset for row in lake.rows(config, f"{topic}_dead_letters")] == [2]


# Which topics there are is decided before any table is opened.
@pytest.mark.parametrize("table_format", ["parquet"], indirect=True)
def test_a_topic_is_added_to_the_configuration(lake: LakeUnderTest, new_topic: Callable[[], str]) -> None:
    one, two = new_topic(), new_topic()
    lake.produce(one, [b"1"])
    lake.produce(two, [b"2"])
    lake.load(lake.config(f'[[topics]]\nname = "{one}"'))
    both = lake.config(f'[[topics]]\nname = "{one}"\n[[topics]]\nname = "{two}"')
    lake.load(both)
    assert [len(lake.rows(both, name)) for name in (one, two)] == [1, 1]


@pytest.mark.parametrize("table_format", ["parquet"], indirect=True)
def test_a_topic_that_is_not_there_fails_a_load(lake: LakeUnderTest, new_topic: Callable[[], str]) -> None:
    topic = new_topic()
    with pytest.raises(LoadFailed, match=f"no topic {topic}"):
        lake.load(lake.config(f'[[topics]]\nname = "{topic}"'))


@pytest.mark.parametrize("table_format", ["parquet"], indirect=True)
def test_a_topic_that_was_made_anew_stops_with_advice(
    lake: LakeUnderTest, new_topic: Callable[[], str]
) -> None:
    topic = new_topic()
    config = lake.config(
        f'[[topics]]\nname = "{topic}"\nformat = "json"\nschema = "id int"\ndead_letters = "bad"',
        'on_data_loss = "continue"',
    )
    lake.produce(topic, [b'{"id": 0}', b'{"id": 1}', b"bad"])
    lake.load(config)
    delete(lake.broker.bootstrap, topic)
    # More than the old one had: no offset tells that it is another.
    lake.produce(topic, [b'{"id": %d}' % number for number in range(5)])
    with pytest.raises(LoadFailed, match=r"was deleted and made anew.* give it other tables") as refused:
        lake.load(config)
    assert len(lake.rows(config, topic)) == 2

    state = f"{config.state}/{topic}"
    assert str(refused.value).endswith(f"remove {for_people(state)}")
    LocalFiles().remove(state)
    other = replace(config, topics=tuple(replace(rule, table="second") for rule in config.topics))
    lake.load(other)  # the dead letters of the old one say nothing of where it begins
    assert [row.offset for row in lake.rows(other, "second")] == list(range(5))
