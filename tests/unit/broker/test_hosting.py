"""What becomes of logs when the metadata lets go of their partitions."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from headrace.broker.replicas.partitions import PartitionTable
from headrace.broker.replicas.throttle import ReplicationThrottles
from headrace.broker.storage.hosting import Hosting
from headrace.controller.delta import MetadataDelta
from headrace.core.errors import CorruptLog, StorageError
from headrace.core.ids import TopicPartition
from headrace.metrics.registry import BrokerMetrics
from headrace.replication.safeguards import ALL_ON
from tests.unit.log.material import NOW, append
from tests.unit.log.test_manager import TOPIC_ID, manager
from tests.unit.replication.replicas import new_partition

NAME = TopicPartition("orders", 0)


def hosting_of(
    runtime: Any, *, metadata: Any = None, node: Any = None, logs: Any = None, partitions: Any = None
) -> Hosting:
    """With the parts that a test needs."""
    unused: Any = None
    replicas: Any = SimpleNamespace(throttles=ReplicationThrottles(1))
    return Hosting(
        runtime,
        metadata,
        node,
        logs,
        partitions,
        replicas,
        unused,
        unused,
        unused,
        lambda: None,
        lambda _: None,
        high_watermarks={},
    )


def no_partitions() -> PartitionTable:
    return PartitionTable(lambda _topic, _index: False)


def test_a_damaged_log_of_a_deleted_topic_makes_room_for_another_of_its_name(tmp_path: Path) -> None:
    """With one replica nobody else could ever lead the new one, and it would be offline for good."""
    logs = manager([tmp_path])
    append(logs.create(NAME, TOPIC_ID, NOW), b"a")
    logs.quarantine(NAME, CorruptLog("a bit has flipped"))
    warnings: list[str] = []
    runtime = SimpleNamespace(
        metrics=BrokerMetrics(),
        clock=SimpleNamespace(wall_ms=lambda: NOW),
        log=SimpleNamespace(warning=lambda text, **_: warnings.append(text)),
    )
    partitions = no_partitions()
    partitions.set_offline(NAME, StorageError("damaged"))
    hosting_of(runtime, logs=logs, partitions=partitions)._remove(NAME.topic, TOPIC_ID)
    assert NAME not in logs.quarantined
    assert len(warnings) == 1
    assert logs.create(NAME, TOPIC_ID, NOW).end_offset == 0
    kept = [path for path in tmp_path.iterdir() if path.name.startswith("orders-0.")]
    assert [path.name for path in kept[0].iterdir() if path.suffix == ".log"], "its files are there"


def test_what_a_mistake_left_out_is_looked_at_with_the_next_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a partition could follow its old leader for ever."""
    topics = {UUID(int=number): SimpleNamespace(topic_id=UUID(int=number)) for number in (1, 2)}
    registration = SimpleNamespace(epoch=5)
    image = SimpleNamespace(brokers={1: registration}, topic_by_id=topics.get)
    hosting = hosting_of(
        SimpleNamespace(broker_id=1, environment=SimpleNamespace(safeguards=ALL_ON)),
        metadata=SimpleNamespace(image=image),
        node=SimpleNamespace(broker_epoch=5),
    )
    looked: list[str] = []

    def follow_rows(topic: Any, _: object) -> None:
        raise ValueError("a mistake")

    monkeypatch.setattr(hosting, "_follow_rows", follow_rows)
    monkeypatch.setattr(hosting, "_host_everything", lambda: looked.append("everything"))
    monkeypatch.setattr(hosting, "_reconfigure_broker", lambda: looked.append("settings"))
    delta = MetadataDelta()
    for topic_id in topics:
        delta.partitions[topic_id] = {0: None}
    with pytest.raises(ValueError, match="a mistake"):
        hosting._on_delta(delta)
    hosting._on_delta(MetadataDelta())
    assert looked == ["everything", "settings"]


def test_a_partition_that_has_come_back_is_not_offline_any_more() -> None:
    partition = new_partition()
    table = no_partitions()
    table.set_offline(partition.topic_partition, StorageError("damaged"))
    table.add(partition)
    assert table.offline == {}
