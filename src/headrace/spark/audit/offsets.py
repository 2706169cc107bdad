"""Which offsets a pass reads: from where the last one stopped to where the topic ends now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from headrace.client.cluster import Cluster
from headrace.client.errors import Refused
from headrace.client.offsets import EARLIEST, LATEST, list_offsets, partitions_of
from headrace.protocol.error_codes import ErrorCode
from headrace.spark.audit.config import AuditRefused
from headrace.spark.audit.picture import Partition, Since


class Ends(NamedTuple):
    first: int
    #: Of what is committed, behind no open transaction.
    stable: int
    #: Of all that was acknowledged, also before every replica had it.
    log_end: int
    #: Where the records of `since` begin; the first, if nothing was asked.
    since: int


class Range(NamedTuple):
    start: int
    end: int
    #: Offsets that retention took away before they were read.
    gone: int


async def ends_of(cluster: Cluster, topics: Since) -> dict[Partition, Ends]:
    """Topics that do not exist have no partitions."""
    found: dict[Partition, Ends] = {}
    for topic, since_ms in topics.items():
        try:
            wanted = await partitions_of(cluster, topic)
        except Refused as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            continue
        # The order matters: what a producer was told is stored lies before the end of now; with acks=1 not
        # before the high watermark.
        end = await list_offsets(cluster, dict.fromkeys(wanted, LATEST), log_end=True)
        stable = await list_offsets(cluster, dict.fromkeys(wanted, LATEST), read_committed=True)
        first = await list_offsets(cluster, dict.fromkeys(wanted, EARLIEST))
        since = {} if since_ms is None else await list_offsets(cluster, dict.fromkeys(wanted, since_ms))
        for partition in wanted:
            begin = first[partition].offset
            young = since[partition].offset if partition in since else begin
            found[topic, partition.partition] = Ends(
                begin,
                stable[partition].offset,
                end[partition].offset,
                # -1: no record is as young yet.
                young if young >= 0 else stable[partition].offset,
            )
    return found


def ranges(
    positions: Mapping[Partition, int], ends: Mapping[Partition, Ends], at_most: int | None = None
) -> dict[Partition, Range]:
    """Of every partition, also of those with nothing new: Spark wants all of a topic named."""
    found = {}
    for partition, end in ends.items():
        position = positions.get(partition, end.since)
        if partition in positions and position > end.log_end:
            topic, number = partition
            raise AuditRefused(
                f"partition {number} of {topic} ends at {end.log_end}, and was audited to {position}: "
                "the topic was deleted and made anew. Give the audit a new --state, or another topic."
            )
        start = max(position, end.first)
        stop = max(start, end.stable)
        if at_most is not None:
            stop = min(stop, start + at_most)
        found[partition] = Range(start, stop, start - position)
    return found


def as_option(offsets: Mapping[Partition, int]) -> str:
    """As Spark's connector takes startingOffsets and endingOffsets."""
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in offsets.items():
        topics.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(topics)
