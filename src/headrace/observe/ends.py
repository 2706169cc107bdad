"""Where every partition begins and ends: three questions to each leader, all leaders at once.

A broker that does not answer costs the others nothing: its partitions are left out, and it is said why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.offsets import EARLIEST, LATEST, LIST_OFFSETS_AT_MOST, topics_of
from headrace.client.topics import TopicState
from headrace.core.ids import TopicPartition
from headrace.protocol.messages.list_offsets_request import ListOffsetsRequest
from headrace.protocol.messages.list_offsets_response import ListOffsetsResponse

PARTITIONS_AT_ONCE: Final = 2000


class Ends(NamedTuple):
    first: int
    stable: int
    """Where consumers of committed records stop."""
    end: int
    """The high watermark: what consumers may read ends there."""


class AllEnds(NamedTuple):
    ends: Mapping[TopicPartition, Ends]
    """Of those that could be asked."""
    silent: Mapping[int, str]
    """Brokers that did not answer, and why."""


def by_leader(topics: Iterable[TopicState]) -> dict[int, list[TopicPartition]]:
    """Without those that nobody leads: they cannot be asked."""
    found: dict[int, list[TopicPartition]] = {}
    for topic in topics:
        for state in topic.partitions:
            if state.leader >= 0 and state.leader not in state.offline:
                found.setdefault(state.leader, []).append(TopicPartition(topic.name, state.partition))
    return found


def slices(partitions: Sequence[TopicPartition]) -> Iterator[Sequence[TopicPartition]]:
    """As many as one request may name."""
    for at in range(0, len(partitions), PARTITIONS_AT_ONCE):
        yield partitions[at : at + PARTITIONS_AT_ONCE]


async def ask_ends(cluster: Cluster, led: Mapping[int, Sequence[TopicPartition]]) -> AllEnds:
    ends: dict[TopicPartition, Ends] = {}
    silent: dict[int, str] = {}

    async def ask(broker_id: int, partitions: Sequence[TopicPartition]) -> None:
        try:
            for some in slices(partitions):
                ends.update(await _ends_of(cluster, broker_id, some))
        except ClientFailure as error:
            silent[broker_id] = str(error)

    await asyncio.gather(*(ask(broker_id, partitions) for broker_id, partitions in led.items()))
    return AllEnds(ends, silent)


async def _ends_of(
    cluster: Cluster, broker_id: int, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, Ends]:
    # The stable offset last: if it is below an end that was told before, a transaction holds it. Asked the
    # other way round it would be below whenever a record comes between the two questions.
    first = await ask_offsets(cluster, broker_id, partitions, EARLIEST)
    end = await ask_offsets(cluster, broker_id, partitions, LATEST)
    stable = await ask_offsets(cluster, broker_id, partitions, LATEST, committed=True)
    return {
        each: Ends(first[each], min(stable[each], end[each]), end[each])
        for each in partitions
        if min(found.get(each, -1) for found in (first, stable, end)) >= 0
    }


async def ask_offsets(
    cluster: Cluster,
    broker_id: int,
    partitions: Sequence[TopicPartition],
    time: int,
    *,
    committed: bool = False,
) -> dict[TopicPartition, int]:
    """Of the partitions that this broker answers for: leaders move, and the next look finds them. -1 where
    there is no such offset."""
    request = ListOffsetsRequest(
        replica_id=-1, isolation_level=int(committed), topics=topics_of(dict.fromkeys(partitions, time))
    )
    reply = await cluster.ask_broker(broker_id, request, ListOffsetsResponse, at_most=LIST_OFFSETS_AT_MOST)
    return {
        TopicPartition(topic.name, entry.partition_index): entry.offset
        for topic in reply.topics
        for entry in topic.partitions
        if not entry.error_code
    }
