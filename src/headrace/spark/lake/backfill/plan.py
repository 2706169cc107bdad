"""Tasks in steps, and what a step has. Pure.

A step is what one commit puts into the table. Tasks are in the order of offsets within each partition, so
after any number of steps the table has each partition up to some offset, without a gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from headrace.spark.segments import plan as segments
from headrace.spark.segments.plan import Span, Task

MOST_TASK_BYTES: Final = segments.TASK_BYTES
LEAST_TASK_BYTES: Final = 16_000_000
TASKS_OF_A_CORE: Final = 4
"""In one step. A kill costs at most a step, and at its end cores wait for the last task."""

Offsets = dict[int, int]
"""The next offset, by partition."""


def task_bytes(total: int, cores: int) -> int:
    """Small topics keep all cores busy too."""
    return min(MOST_TASK_BYTES, max(LEAST_TASK_BYTES, total // (2 * cores)))


def steps_of(tasks: Sequence[Task], cores: int) -> list[list[Task]]:
    count = cores * TASKS_OF_A_CORE
    return [list(tasks[at : at + count]) for at in range(0, len(tasks), count)]


def begins_of(tasks: Iterable[Task]) -> Offsets:
    """Where they begin in each of their partitions."""
    found: Offsets = {}
    for span in _spans(tasks):
        found.setdefault(span.partition, span.first_offset)
    return found


def ends_of(tasks: Iterable[Task], before: Mapping[int, int]) -> Offsets:
    """Where each partition is once they are in the table."""
    return {**before, **{span.partition: span.next_offset for span in _spans(tasks)}}


def size_of(task: Task) -> int:
    return sum(span.size for span in task)


def _spans(tasks: Iterable[Task]) -> Iterable[Span]:
    return (span for task in tasks for span in task)
