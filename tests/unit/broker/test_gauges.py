"""What a scrape tells of the whole cluster comes from the metadata, not from the partitions at hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

from headrace.broker.process.gauges import connect_gauges
from headrace.controller.topic_image import DirectoryTable, Exceptional, PartitionState, TopicImage
from headrace.metrics.registry import BrokerGauges, BrokerMetrics

HERE = 1


class Partitions(list[Any]):
    offline = ()


class Sessions(list[Any]):
    partition_count = 0


def row(leader: int, *replicas: int, rare: Exceptional | None = None) -> PartitionState:
    state = PartitionState(leader, 0, 0, replicas, replicas, tuple(UUID(int=each) for each in replicas))
    return state if rare is None else state._replace(exceptional=rare)


def gauges(*rows: PartitionState) -> BrokerGauges:
    topic = TopicImage("t", UUID(int=9), DirectoryTable())
    for index, state in enumerate(rows):
        topic.add(index, state)

    metrics = BrokerMetrics()
    image = SimpleNamespace(brokers={}, topics_by_name={"t": topic}, partition_count=len(rows))
    broker: Any = SimpleNamespace(
        runtime=SimpleNamespace(broker_id=HERE, metrics=metrics, memory=()),
        metadata=SimpleNamespace(image=image),
        partitions=Partitions(),
        storage=SimpleNamespace(logs=SimpleNamespace(directories=[])),
        controller=SimpleNamespace(is_active=False),
        context=SimpleNamespace(
            fetches=SimpleNamespace(purgatory=(), sessions=Sessions()),
            produces=SimpleNamespace(purgatory=()),
        ),
    )
    connect_gauges(broker)
    return metrics.read_gauges()


def test_partitions_without_a_leader_are_counted_wherever_they_are() -> None:
    found = gauges(row(-1, 2, 3), row(-1, 3, 2), row(2, 2, 3))
    assert found.offline_partitions == 2
    assert found.offline_replicas == 0


def test_whoever_leads_in_place_of_another_is_counted() -> None:
    assert gauges(row(3, 2, 3), row(2, 2, 3), row(-1, 2, 3)).preferred_replica_imbalance == 2


def test_moves_are_counted_by_whoever_leads() -> None:
    moving = Exceptional(adding=(4,))
    found = gauges(
        row(HERE, 1, 4, rare=moving),
        row(2, 2, 4, rare=moving),
        row(HERE, 1, 2, rare=Exceptional(elr=(2,))),
        row(HERE, 1, 2, rare=Exceptional(removing=(2,))),
    )
    assert found.reassigning_partitions == 2
