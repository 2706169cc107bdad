from __future__ import annotations

from uuid import UUID

from headrace.broker.process.replicas_behind import replicas_behind
from headrace.controller.topic_image import (
    ORDINARY,
    DirectoryTable,
    Exceptional,
    PartitionState,
    TopicImage,
)


def row(*replicas: int, isr: tuple[int, ...], rare: Exceptional = ORDINARY) -> PartitionState:
    directories = tuple(UUID(int=100 + replica) for replica in replicas)
    return PartitionState(isr[0], 0, 0, replicas, isr, directories, rare)


def topic_of(name: str, *rows: PartitionState) -> TopicImage:
    topic = TopicImage(name, UUID(int=9), DirectoryTable())
    for partition, state in enumerate(rows):
        topic.add(partition, state)
    return topic


async def test_a_broker_is_judged_by_its_own_replicas() -> None:
    orders = topic_of(
        "orders", row(1, 2, 3, isr=(1, 2)), row(2, 3, 1, isr=(1, 2, 3)), row(1, 2, isr=(2,)), row(2, isr=(2,))
    )
    assert await replicas_behind([orders], 1) == "replicas out of sync: 1 (orders-2)"
    assert await replicas_behind([orders], 2) is None
    assert await replicas_behind([orders], 3) == "replicas out of sync: 1 (orders-0)"
    assert await replicas_behind([orders], 4) is None


async def test_a_replica_that_is_being_added_does_not_count() -> None:
    moving = topic_of("moving", row(1, 2, 3, isr=(1, 2), rare=Exceptional(adding=(3,), removing=(1,))))
    assert await replicas_behind([moving], 3) is None


async def test_some_are_named_and_all_are_counted() -> None:
    topics = [topic_of(name, *[row(1, 2, isr=(1,))] * 2) for name in ("a", "b", "c")]
    assert await replicas_behind(topics, 2) == "replicas out of sync: 6 (a-0, a-1, b-0, ...)"
