"""A change is done for its user when every broker tells of it: the next command may ask any of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final
from uuid import UUID

from headrace.client.cluster import METADATA_AT_MOST, Cluster
from headrace.client.errors import ClientFailure
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from headrace.protocol.messages.metadata_response import MetadataResponse

AGREEMENT_SECONDS: Final = 10.0
"""Then a broker is left to hear of it when it can: the change itself is made."""
_PAUSE: Final = 0.02

_Told = list[tuple[str | None, UUID, int, object]]
"""What a broker says of some topics, as far as only the controller changes it."""


async def until_all_agree(
    cluster: Cluster, topics: Sequence[str], *, made: bool = False, timeout: float = AGREEMENT_SECONDS
) -> None:
    """Returns when all brokers that answer say the same of these topics, or when the time is over.

    Who has made a change asks for this, with the controller's own answer in hand: the controller knows, so
    all that agree know as well. Where no broker is the controller, as in Apache Kafka, all may agree before
    any of them has heard: of topics that were `made`, each must know. Of no topics nothing is asked: nothing
    was changed.
    """
    if not topics:
        return
    try:
        async with asyncio.timeout(timeout):
            brokers = [node.node_id for node in (await cluster.metadata([])).brokers]
            while made or len(brokers) > 1:
                answers = await asyncio.gather(*(_told(cluster, broker_id, topics) for broker_id in brokers))
                heard = [answer for answer in answers if answer is not None]
                if all(answer == heard[0] for answer in heard) and not (made and _lacks_some(heard)):
                    return
                await asyncio.sleep(_PAUSE)
    except (TimeoutError, ClientFailure):
        return


async def until_all_know(
    cluster: Cluster, knows: Callable[[int], Awaitable[bool]], *, timeout: float = AGREEMENT_SECONDS
) -> None:
    """Returns when `knows` is true of every broker that can be asked, or when the time is over."""
    try:
        async with asyncio.timeout(timeout):
            waiting = [node.node_id for node in (await cluster.metadata([])).brokers]
            while waiting:
                answers = await asyncio.gather(*(_or_lost(knows(broker_id)) for broker_id in waiting))
                waiting = [broker_id for broker_id, known in zip(waiting, answers, strict=True) if not known]
                if waiting:
                    await asyncio.sleep(_PAUSE)
    except (TimeoutError, ClientFailure):
        return


async def _or_lost(known: Awaitable[bool]) -> bool:
    """A broker that cannot be asked is not waited for."""
    try:
        return await known
    except ClientFailure:
        return True


def _lacks_some(heard: Sequence[_Told]) -> bool:
    return any(row[2] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for answer in heard for row in answer)


async def _told(cluster: Cluster, broker_id: int, topics: Sequence[str]) -> _Told | None:
    """None of a broker that cannot be asked."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in topics], allow_auto_topic_creation=False
    )
    try:
        reply = await cluster.ask_broker(broker_id, request, MetadataResponse, at_most=METADATA_AT_MOST)
    except ClientFailure:
        return None
    return [
        (
            topic.name,
            topic.topic_id,
            topic.error_code,
            sorted(
                (each.partition_index, each.leader_id, each.leader_epoch, tuple(each.replica_nodes))
                for each in topic.partitions
            ),
        )
        for topic in sorted(reply.topics, key=lambda topic: topic.name or "")
    ]
