"""What the driver lists, and what a task reads. Without Spark, so that any job may use it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from headrace.arrow.columns import Bounds
from headrace.arrow.errors import HistoryGone
from headrace.arrow.partition_reader import Block, PartitionReader, Reading
from headrace.client.errors import ClientFailure
from headrace.spark.segments.place import Opened, Place
from headrace.spark.segments.plan import Span, Task


def list_spans(
    opened: Opened,
    topic: str,
    partitions: Sequence[int] | None,
    bounds_of: Callable[[int], Bounds],
    *,
    wants: Callable[[int], bool] = lambda _: True,
    narrowed: Callable[[Bounds], Bounds] = lambda bounds: bounds,
    committed_only: bool = True,
) -> list[Span]:
    """What there is within the bounds, decided and in segments. A partition without any is left out.

    HistoryGone where a beginning that is asked for was deleted. `wants` and `narrowed`: what a query leaves.
    """
    found: list[Span] = []
    if partitions is not None and not partitions:
        return found
    for history in opened.histories(topic, partitions):
        if not wants(history.partition.partition):
            continue
        bounds = bounds_of(history.partition.partition)
        if 0 <= bounds.first_offset < min(history.start, bounds.next_offset):
            raise HistoryGone(history.partition, bounds.first_offset, history.start)
        bounds = narrowed(bounds)
        first = max(history.start, bounds.first_offset)
        end = min(history.stable_end(first) if committed_only else history.end, bounds.next_offset)
        segments = tuple(history.listed(bounds._replace(first_offset=first, next_offset=end)))
        if first < end and segments:
            begin = max(first, segments[0].base_offset)
            end = min(end, segments[-1].next_offset)
            found.append(Span(topic, history.partition.partition, begin, end, segments))
    return found


def read_task(place: Place, task: Task, reading: Reading) -> Iterator[Block]:
    """The records of a task, in the order of its spans. `reading` bounds their times."""
    with place.opened() as opened:
        for span in task:
            yield from read_span(opened, span, reading)


def read_span(opened: Opened, span: Span, reading: Reading) -> Iterator[Block]:
    history = opened.history_of(span)
    bounds = reading.bounds._replace(first_offset=span.first_offset, next_offset=span.next_offset)
    reader = PartitionReader(history, reading._replace(bounds=bounds), stable_end=span.next_offset)
    yield from reader.blocks()
    if reader.is_held_up:
        raise ClientFailure(
            f"nothing says how a transaction of {history.partition} at offset {reader.position} ended",
            "the index of its segment is missing: restore it, or read the brokers",
        )
