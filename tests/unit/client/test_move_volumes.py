"""What a plan has to copy, by the files that are there."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.client import move_volumes
from headrace.client.log_dirs import ReplicaFiles
from headrace.client.move_volumes import Volume, volume
from headrace.client.throttles import Move
from headrace.core.ids import TopicPartition

CLUSTER: Any = None
A, B, C = (TopicPartition("t", number) for number in range(3))


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[TopicPartition, int], ReplicaFiles]:
    held = {
        (A, 1): ReplicaFiles(1000, 0),
        (A, 2): ReplicaFiles(900, 3),
        (B, 1): ReplicaFiles(50, 0),
        (C, 1): ReplicaFiles(7, 0),
    }

    async def answer(_: object, holders: dict[int, list[TopicPartition]]) -> Any:
        asked = {(partition, number) for number, partitions in holders.items() for partition in partitions}
        return {key: found for key, found in held.items() if key in asked}

    monkeypatch.setattr(move_volumes, "replica_files", answer)
    return held


async def test_each_new_replica_is_a_copy_of_the_largest_there_is(files: object) -> None:
    todo = {A: Move((1, 2), (3, 4)), B: Move((1,), (3,)), C: Move((1,), (1,))}
    found = await volume(CLUSTER, todo)
    assert found == Volume(3, 3, 2 * 1000 + 50, 2050)
    assert found.least_seconds(100) == 20.5


async def test_an_order_that_changes_copies_nothing(files: object) -> None:
    assert await volume(CLUSTER, {A: Move((1, 2), (2, 1))}) == Volume(1, 0, 0, 0)


async def test_a_broker_that_cannot_be_asked_counts_for_nothing(files: dict[Any, Any]) -> None:
    files.clear()
    assert await volume(CLUSTER, {A: Move((1,), (2,))}) == Volume(1, 1, 0, 0)
