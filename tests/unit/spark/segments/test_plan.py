"""Offsets shared among tasks: each once, in order, and no task much larger than it may be."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.arrow.history import ListedSegment
from headrace.spark.segments.plan import Span, Task, tasks, tasks_json, tasks_of


@st.composite
def spans(draw: st.DrawFn) -> list[Span]:
    found = []
    for partition in draw(st.lists(st.integers(0, 9), unique=True, max_size=4)):
        segments = []
        offset = draw(st.integers(0, 50))
        for _ in range(draw(st.integers(1, 5))):
            end = offset + draw(st.integers(1, 40))
            segments.append(ListedSegment(offset, end, draw(st.integers(0, 900)), f"segment-{offset}"))
            offset = end + draw(st.sampled_from((0, 0, 7)))
        first = draw(st.integers(segments[0].base_offset, segments[0].next_offset - 1))
        end = draw(st.integers(max(first, segments[-1].base_offset) + 1, segments[-1].next_offset))
        found.append(Span("orders", partition, first, end, tuple(segments)))
    return found


def offsets_in(span: Span) -> list[tuple[int, int]]:
    """As a reader finds them: those in its segments."""
    return [
        (span.partition, offset)
        for segment in span.segments
        for offset in range(segment.base_offset, segment.next_offset)
        if span.first_offset <= offset < span.next_offset
    ]


@given(spans(), st.integers(1, 400))
def test_each_offset_is_in_one_task_and_in_order(given_spans: list[Span], task_bytes: int) -> None:
    planned = tasks(given_spans, task_bytes)
    found = [pair for task in planned for span in task for pair in offsets_in(span)]
    assert found == [pair for span in given_spans for pair in offsets_in(span)]
    assert all(offsets_in(span) for task in planned for span in task)
    assert tasks_of(tasks_json(planned)) == planned


@given(spans(), st.integers(1, 400))
def test_a_task_is_larger_than_it_may_be_by_a_record_at_most(
    given_spans: list[Span], task_bytes: int
) -> None:
    for task in tasks(given_spans, task_bytes):
        records = [
            -(-each.size // (each.next_offset - each.base_offset)) for span in task for each in span.segments
        ]
        assert sum(span.size for span in task) <= task_bytes + max(records) + len(records)


@given(spans(), st.integers(100, 400))
def test_two_tasks_that_follow_each_other_are_more_than_one_may_have(
    given_spans: list[Span], task_bytes: int
) -> None:
    planned = tasks(given_spans, task_bytes)
    for one, other in pairwise(planned):
        together = sum(span.size for span in (*one, *other))
        assert together + 2 * len((*one, *other)) >= task_bytes


def segment(number: int, size: int = 100) -> ListedSegment:
    return ListedSegment(number * 10, number * 10 + 10, size, f"s{number}")


def planned(span: Span, task_bytes: int) -> list[list[tuple[int, int]]]:
    return [[(each.first_offset, each.next_offset) for each in task] for task in tasks([span], task_bytes)]


def test_segments_are_taken_whole_where_they_fit() -> None:
    span = Span("orders", 0, 3, 37, tuple(map(segment, range(4))))
    assert planned(span, 250) == [[(3, 20)], [(20, 37)]]


def test_a_large_segment_is_cut_evenly() -> None:
    assert planned(Span("orders", 0, 0, 10, (segment(0, 1000),)), 300) == [
        [(0, 2)],
        [(2, 5)],
        [(5, 7)],
        [(7, 10)],
    ]


def test_partitions_with_little_share_a_task() -> None:
    found: list[Task] = tasks([Span("orders", each, 0, 10, (segment(0),)) for each in range(5)], 250)
    assert [[span.partition for span in task] for task in found] == [[0, 1], [2, 3], [4]]


def test_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match="version 2"):
        tasks_of('{"version": 2, "tasks": []}')
