"""A task reads its share of a batch from the brokers of the source, past Spark's connector.

There a record became a row of the JVM, and was carried from row to row into Arrow and into Python: most
of what the mirror cost. Here the batches that a broker sends are decoded column by column.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Final

from headrace.arrow.brokers import SpanReader, in_thread
from headrace.arrow.columns import Taken, Wanted
from headrace.arrow.partition_reader import Block, Reading
from headrace.arrow.vector_columns import vector_maker
from headrace.spark.mirror.clusters import cluster_of
from headrace.spark.mirror.shares import Share, portion_of
from headrace.spark.sink.encoding import Portion

_ROWS: Final = 64 * 1024
"""Of one partition at once: its batches are full, and little waits."""


def read(share: Share) -> Iterator[Portion]:
    """Only records of committed transactions, and of none."""
    targets = {span.source: span.target for span in share.spans}
    reading = Reading(Wanted(), rows=_ROWS, maker=vector_maker())

    async def fetch() -> AsyncIterator[Block]:
        spans = {span.source: (span.first, span.end) for span in share.spans}
        async with cluster_of(share.kafka, share.mirror) as cluster:
            async for block in SpanReader(cluster, spans, reading).blocks():
                yield block

    for block in in_thread(fetch):
        portion = portion_of(Taken._make(block.taken), targets[block.partition], share.passing)
        if len(portion.sources):
            yield portion
