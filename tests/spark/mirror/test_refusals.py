"""What one topic of the target refuses keeps no other topic waiting."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from pyspark.sql import SparkSession

from headrace.spark.mirror.problems import MirrorRefused
from tests.broker_process import BrokerProcess
from tests.spark.mirror.ends import compare
from tests.spark.mirror.test_mirror import Mirroring
from tests.spark.sink.reading import create

_YEAR_2100_MS = 4_102_444_800_000


def test_a_topic_that_the_target_refuses_stands_still_and_the_others_go_on(
    spark: SparkSession, headrace: BrokerProcess, apache_kafka: BrokerProcess, new_topic: Callable[[], str]
) -> None:
    source, target = headrace.bootstrap, apache_kafka.bootstrap
    prefix = new_topic()
    good, early, large, own = (f"{prefix}-{name}" for name in ("good", "early", "large", "own"))
    for name in (good, large, own):
        create(source, name, 1)
    _make(source, early, {"message.timestamp.after.max.ms": str(2**63 - 1)})
    _make(target, large, {"max.message.bytes": "2000"})
    create(target, own, 1)
    _produce(target, own, b"of its own")
    _produce(source, good, b"good")
    _produce(source, early, b"early", _YEAR_2100_MS)
    _produce(source, large, b"x" * 5000)
    _produce(source, own, b"own")
    mirror = Mirroring(spark, (source, target), prefix, f'[[topics]]\npattern = "{prefix}-.*"\n')
    with pytest.raises(MirrorRefused) as caught:
        mirror.run()
    said = str(caught.value)
    assert f"topic {own} of the target holds 1 offsets that this mirror has not written" in said
    assert f"topic {large} of the target refuses what {large} has" in said
    for name in (good, early):
        assert len(compare(source, target, name, name)[0]) == 1
    _alter(target, large, "max.message.bytes", "1048588")
    mirror.text = f'[[topics]]\npattern = "{prefix}-.*"\nexclude = ["{own}"]\n'
    assert mirror.run().records == 1, "each start tries again"
    compare(source, target, large, large)


def _make(bootstrap: str, topic: str, settings: dict[str, str]) -> None:
    new = NewTopic(topic, 1, 1, config={"retention.ms": "-1", **settings})
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([new])[topic].result(60)


def _alter(bootstrap: str, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(60)


def _produce(bootstrap: str, topic: str, value: bytes, time_ms: int = 0) -> None:
    told: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, value, timestamp=time_ms, on_delivery=lambda error, _: told.append(error))
    assert producer.flush(60) == 0
    assert told == [None]
