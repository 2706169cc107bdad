"""Whose log is the longest, of partitions that nobody leads: asked before an unclean election.

Kafka elects the first replica that is alive. It may be an empty one, and all others would cut off what they
have. The last epoch counts first, then the end: the same order in which a follower compares its log.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from headrace.broker.api import Call
from headrace.broker.cluster.asking import ask
from headrace.broker.cluster.peer_link import PeerLink
from headrace.broker.handlers import list_offsets
from headrace.core.errors import HeadraceError
from headrace.core.ids import NO_BROKER
from headrace.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headrace.protocol.messages.list_offsets_response import ListOffsetsResponse

if TYPE_CHECKING:
    from headrace.broker.broker import Broker

ANSWER_SECONDS: Final = 5.0
VERSION: Final = list_offsets.FIRST_WITH_LEADER_EPOCH

Key = tuple[str, int]
LogEnd = tuple[int, int]
"""The epoch of the last record, and the end offset."""


async def longest_first(broker: Broker, asked: Iterable[Key] | None) -> dict[Key, list[int]]:
    """The replicas of each partition without a leader that have answered, the longest log first."""
    wanted: dict[int, list[Key]] = defaultdict(list)
    for key in _leaderless(broker, asked):
        for broker_id in _replicas(broker, key):
            if broker.is_alive(broker_id):
                wanted[broker_id].append(key)
    answers = await asyncio.gather(*(_ends(broker, each, keys) for each, keys in wanted.items()))
    found: dict[Key, dict[int, LogEnd]] = defaultdict(dict)
    for broker_id, ends in zip(wanted, answers, strict=True):
        for key, end in ends.items():
            found[key][broker_id] = end
    # The order of the assignment decides between equals, as ever.
    return {
        key: sorted(
            (each for each in _replicas(broker, key) if each in ends), key=ends.__getitem__, reverse=True
        )
        for key, ends in found.items()
    }


def _leaderless(broker: Broker, asked: Iterable[Key] | None) -> list[Key]:
    image = broker.image
    if asked is None:
        return [
            (name, index)
            for name, topic in image.topics_by_name.items()
            for index in topic.leaderless_partitions()
        ]
    return [
        (name, index)
        for name, index in dict.fromkeys(asked)
        if (topic := image.topic(name)) is not None and index in topic and topic.leader(index) == NO_BROKER
    ]


def _replicas(broker: Broker, key: Key) -> tuple[int, ...]:
    topic = broker.image.topic(key[0])
    return () if topic is None or key[1] not in topic else topic.replicas(key[1])


async def _ends(broker: Broker, broker_id: int, keys: list[Key]) -> Mapping[Key, LogEnd]:
    """Nothing of a broker that does not answer, and nothing of a replica that it cannot use."""
    topics: dict[str, list[ListOffsetsPartition]] = defaultdict(list)
    for name, index in keys:
        topics[name].append(ListOffsetsPartition(partition_index=index, timestamp=list_offsets.LATEST))
    request = ListOffsetsRequest(
        replica_id=list_offsets.DEBUGGING_CONSUMER,
        topics=[ListOffsetsTopic(name=name, partitions=each) for name, each in topics.items()],
    )
    if broker_id == broker.broker_id:
        answered = list_offsets.handle(broker, request, Call(VERSION, None, broker.to_itself))
        assert isinstance(answered, ListOffsetsResponse), "only times are looked up later"
        return _read(answered)
    link = PeerLink(broker, broker_id)
    try:
        opened = await link.open()
        return _read(await ask(opened, request, ListOffsetsResponse, version=VERSION, timeout=ANSWER_SECONDS))
    except HeadraceError as error:
        broker.log.warning("the length of logs is not known", broker=broker_id, error=str(error))
        return {}
    finally:
        link.close()


def _read(response: ListOffsetsResponse) -> dict[Key, LogEnd]:
    return {
        (topic.name, each.partition_index): (each.leader_epoch, each.offset)
        for topic in response.topics
        for each in topic.partitions
        if not each.error_code
    }
