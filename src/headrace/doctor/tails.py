"""Whether anything can be read between where a group stands and the end, or only marks of transactions.

A client that has read a transaction to its end may commit the offset before its mark, and stand there for
good. Whoever only compares offsets would call that a record that nobody has read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from headrace.client.cluster import Cluster
from headrace.client.consumer import Consumer
from headrace.core.ids import TopicPartition
from headrace.doctor.facts import TAIL, Ends, Facts
from headrace.doctor.model import Unknown

_PARTITION_BYTES: Final = 64 * 1024
_WAIT_MS: Final = 100
_SECONDS: Final = 20.0


def to_read(facts: Facts) -> dict[TopicPartition, int]:
    """Of each partition whose last offsets decide of a finding: from where."""
    wanted: dict[TopicPartition, int] = {}
    groups, ends = facts.groups, facts.ends
    if isinstance(groups, Unknown) or isinstance(ends, Unknown):
        return wanted
    bounds = [each for each in (facts.nearly_lost, facts.an_hour_ago) if not isinstance(each, Unknown)]
    for group in groups.values():
        for partition, offset in group.committed.items():
            at = ends.get(partition)
            if at is None or not at.first < at.end or not 0 < at.end - offset <= TAIL:
                continue
            if not group.members or any(offset < each.get(partition, 0) for each in bounds):
                wanted[partition] = min(wanted.get(partition, offset), max(offset, at.first))
    return wanted


async def last_records(
    cluster: Cluster, places: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, Ends]
) -> dict[TopicPartition, int]:
    """The offset of the last record from there on, -1 for none. A partition that cannot be read to its end,
    because a transaction is open for instance, is left out."""
    found = dict.fromkeys(places, -1)
    done: dict[TopicPartition, int] = {}
    if not places:
        return done
    consumer = Consumer(
        cluster, places, max_wait_ms=_WAIT_MS, partition_max_bytes=_PARTITION_BYTES, patience=_SECONDS
    )
    try:
        async with asyncio.timeout(_SECONDS):
            while consumer.positions:
                for fetched in await consumer.poll():
                    partition = fetched.partition
                    if fetched.records:
                        found[partition] = fetched.records[-1].offset
                    if fetched.next_offset >= ends[partition].end:
                        done[partition] = found[partition]
                        consumer.drop(partition)
                    elif fetched.next_offset >= fetched.end_offset:
                        consumer.drop(partition)
    except TimeoutError:
        pass  # what was not read to its end is left out
    finally:
        await consumer.close()
    return done
