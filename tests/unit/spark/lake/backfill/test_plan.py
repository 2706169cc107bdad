"""Tasks in steps, and where a step begins and ends."""

from __future__ import annotations

from headrace.arrow.history import ListedSegment
from headrace.spark.lake.backfill.plan import (
    LEAST_TASK_BYTES,
    MOST_TASK_BYTES,
    begins_of,
    ends_of,
    size_of,
    steps_of,
    task_bytes,
)
from headrace.spark.segments.plan import Span, Task, tasks


def span(partition: int, first: int, end: int, size: int = 100) -> Span:
    return Span("t", partition, first, end, (ListedSegment(first, end, size),))


def test_tasks_are_as_large_as_keeps_all_cores_busy() -> None:
    assert task_bytes(0, 4) == LEAST_TASK_BYTES
    assert task_bytes(400_000_000, 4) == 50_000_000
    assert task_bytes(10**13, 4) == MOST_TASK_BYTES


def test_steps_have_all_tasks_once_and_in_order() -> None:
    planned: list[Task] = [(span(0, at, at + 1),) for at in range(19)]
    steps = steps_of(planned, 2)
    assert [len(step) for step in steps] == [8, 8, 3]
    assert [task for step in steps for task in step] == planned
    assert steps_of([], 2) == []


def test_a_step_says_where_each_of_its_partitions_begins_and_ends() -> None:
    step: list[Task] = [(span(0, 10, 20), span(1, 0, 5)), (span(1, 5, 9),)]
    assert begins_of(step) == {0: 10, 1: 0}
    assert ends_of(step, {0: 10, 7: 3}) == {0: 20, 1: 9, 7: 3}
    assert size_of(step[0]) == 200


def test_after_any_number_of_steps_no_partition_has_a_gap() -> None:
    spans = [span(partition, 0, 1000, 1_000) for partition in range(3)]
    ends: dict[int, int] = {}
    for step in steps_of(tasks(spans, 300), 1):
        for partition, first in begins_of(step).items():
            assert first == ends.get(partition, 0)
        for task in step:
            for each in task:
                assert each.first_offset == ends.get(each.partition, 0)
                ends[each.partition] = each.next_offset
        assert ends == ends_of(step, ends)
    assert ends == {0: 1000, 1: 1000, 2: 1000}
