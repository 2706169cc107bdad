"""Reading what a fetch asks for before the local log start: from the history in the object store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.broker.fetch.read_result import UNKNOWN_OFFSET, PartitionAnswer

if TYPE_CHECKING:
    from headrace.broker.fetch.reading import Reader
    from headrace.broker.fetch.watched_partition import WatchedPartition
    from headrace.broker.requests.context import RequestContext
    from headrace.replication.partition import Partition


def is_in_history(partition: Partition, offset: int) -> bool:
    """Whether it lies before the log of a partition that has more in the store."""
    return partition.history is not None and offset < partition.log.log_start_offset


def log_start_of(partition: Partition) -> int:
    start = partition.log_start_offset
    return UNKNOWN_OFFSET if start is None else start


def read_history(
    context: RequestContext,
    partition: Partition,
    want: WatchedPartition,
    answer: PartitionAnswer,
    reader: Reader,
    remaining: int,
    min_one: bool,
) -> None:
    """All of it is committed and decided. RemoteRead if it has to be fetched first."""
    if remaining <= 0 and not min_one:
        return
    tiering = context.tiering
    assert tiering is not None, "without a store no partition has a history"
    records, aborted = tiering.reads.read(
        tiering.history_of(partition),
        want.fetch_offset,
        min(remaining, want.max_bytes),
        min_one=min_one,
        waits=reader.waits_for_store,
    )
    if records.length:
        answer.records = records
        if reader.read_committed:
            answer.aborted = aborted
