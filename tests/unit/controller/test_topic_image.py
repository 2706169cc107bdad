from __future__ import annotations

import gc
import tracemalloc
from uuid import UUID

import pytest

from headrace.controller.image import MetadataImage
from headrace.controller.topic_image import (
    KEEP_LEADER,
    ORDINARY,
    DirectoryTable,
    Exceptional,
    PartitionState,
    TopicImage,
)
from headrace.core.errors import CorruptLog

BYTES_PER_PARTITION = 300


def row(*replicas: int, isr: tuple[int, ...] | None = None, rare: Exceptional = ORDINARY) -> PartitionState:
    directories = tuple(UUID(int=100 + replica) for replica in replicas)
    return PartitionState(replicas[0], 0, 0, replicas, replicas if isr is None else isr, directories, rare)


def topic_of(*rows: PartitionState) -> TopicImage:
    topic = TopicImage("t", UUID(int=9), DirectoryTable())
    for partition, state in enumerate(rows):
        topic.add(partition, state)
    return topic


def test_rows_of_different_lengths_keep_their_values() -> None:
    rows = [row(1), row(4, 5, 6, isr=(6,)), row(2, 3, rare=Exceptional(elr=(3,))), row(7, isr=())]
    topic = topic_of(*rows)
    assert [topic.state(partition) for partition in range(4)] == rows


def test_a_longer_row_lays_the_topic_out_again() -> None:
    topic = topic_of(row(1), row(2))
    wider = row(2, 3, 4, 5, rare=Exceptional(adding=(3, 4, 5)))
    topic.put(1, wider)
    assert topic.state(0) == row(1)
    assert topic.state(1) == wider
    topic.put(1, row(5))
    assert topic.state(1) == row(5)


def test_partitions_follow_one_another() -> None:
    topic = topic_of(row(1))
    with pytest.raises(CorruptLog):
        topic.add(2, row(1))
    assert 0 in topic
    assert 1 not in topic
    assert -1 not in topic
    with pytest.raises(IndexError):
        topic.state(-1)


def test_partitions_of_a_broker_are_found() -> None:
    topic = topic_of(row(1, 2), row(2, 3, isr=(2,)), row(3, 1), row(3, 2))
    assert list(topic.partitions_with_replica(2)) == [0, 1, 3]
    assert list(topic.partitions_with_isr_member(3)) == [2, 3]
    assert list(topic.partitions_led_by(3)) == [2, 3]
    assert list(topic.partitions_led_by(9)) == []
    assert list(topic.partitions_with_replica(-1)) == []


def test_a_broker_id_is_not_found_across_two_numbers() -> None:
    """256 and then 0 have the bytes of 1 between them."""
    topic = topic_of(row(256, 0), row(0, 256), row(1, 256))
    assert list(topic.partitions_with_replica(1)) == [2]
    assert list(topic.partitions_with_replica(256)) == [0, 1, 2]


def test_several_brokers_are_found_at_once() -> None:
    topic = topic_of(row(1, 2), row(2, 3, isr=(2,)), row(3, 4), row(4, 5, isr=()))
    assert topic.partitions_with_any_isr_member({2, 4}) == [0, 1, 2]
    assert topic.partitions_with_any_isr_member([3]) == [2]
    assert topic.partitions_with_any_isr_member(()) == []
    assert topic_of().partitions_with_any_isr_member({1, 2}) == []


def test_replicas_are_found_by_their_directory() -> None:
    topic = topic_of(row(1, 2), row(2, 3), row(3, 1))
    assert topic.partitions_in_directories([UUID(int=101)]) == [0, 2]
    assert topic.partitions_in_directories([UUID(int=101), UUID(int=102), UUID(int=7)]) == [0, 1, 2]
    assert topic.partitions_in_directories([UUID(int=0)]) == [], "unassigned is no directory"
    assert topic.directory_of(1, 3) == UUID(int=103)
    assert topic.directory_of(1, 9) == UUID(int=0)


def test_partitions_without_their_first_leader_are_found() -> None:
    topic = topic_of(row(1, 2), row(2, 3), row(3), row(4, 5))
    assert topic.partitions_led_by_another() == []
    assert topic.leaderless_partitions() == []
    topic.raise_epochs(1, 3)
    topic.raise_epochs(3, -1)
    assert topic.partitions_led_by_another() == [1]
    assert topic.leaderless_partitions() == [3]


def test_a_change_of_the_isr_moves_only_what_it_says() -> None:
    topic = topic_of(row(1, 2), row(1, 2))
    topic.put_isr(1, KEEP_LEADER, [1], Exceptional(elr=(2,)))
    assert topic.state(1) == row(1, 2)._replace(
        isr=(1,), partition_epoch=1, exceptional=Exceptional(elr=(2,))
    )
    topic.put_isr(1, 1, [1, 2], ORDINARY)
    assert topic.state(1) == row(1, 2)._replace(partition_epoch=2, leader_epoch=1)
    assert topic.exceptional_partitions() == []
    assert topic.state(0) == row(1, 2)


def fill(image: MetadataImage, topics: int, partitions: int) -> None:
    """As many brokers as make replica lists differ, three replicas each."""
    directories = [UUID(int=1000 + broker_id) for broker_id in range(500)]
    for number in range(topics):
        topic = image.add_topic(f"topic-{number:06d}", UUID(int=1_000_000 + number))
        for partition in range(partitions):
            first = number * 7 + partition
            replicas = (first % 500, (first * 3 + 1) % 500, (first * 11 + 2) % 500)
            state = PartitionState(
                replicas[0], partition, partition, replicas, replicas, tuple(directories[r] for r in replicas)
            )
            topic.add(partition, state)


@pytest.mark.parametrize(("topics", "partitions"), [(20, 1000), (400, 25)])
def test_a_partition_costs_less_than_its_share_of_memory(topics: int, partitions: int) -> None:
    gc.collect()
    tracemalloc.start()
    try:
        image = MetadataImage()
        fill(image, topics, partitions)
        used = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(image.topics_by_name) == topics
    assert used / (topics * partitions) < BYTES_PER_PARTITION
