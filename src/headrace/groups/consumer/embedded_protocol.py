"""What classic consumers put into the metadata and the assignments of their groups, read by the broker.

Only where a group changes its protocol, or has members of both: elsewhere these bytes are nobody's business.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final
from uuid import UUID

from headrace.core.errors import HeadraceError, InvalidRequest
from headrace.groups.consumer.reconciliation import Owned
from headrace.groups.topics_view import TopicsView
from headrace.protocol.messages.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
    TopicPartition,
)
from headrace.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from headrace.protocol.primitives import Reader, Writer

_NEWEST: Final = 3


class Malformed(InvalidRequest):
    """Bytes that are no subscription or assignment of a consumer."""


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    try:
        reader = Reader(data)
        return ConsumerProtocolSubscription.decode(reader, _version(reader))
    except HeadraceError as error:
        raise Malformed(f"not a subscription: {error}") from error


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    try:
        reader = Reader(data)
        return ConsumerProtocolAssignment.decode(reader, _version(reader))
    except HeadraceError as error:
        raise Malformed(f"not an assignment: {error}") from error


def _version(reader: Reader) -> int:
    """Later versions only add at the end, so they are read as the newest that is known."""
    version = reader.int16()
    if version < 0:
        raise Malformed(f"version {version}")
    return min(version, _NEWEST)


def write_assignment(partitions: Mapping[UUID, Collection[int]], like: bytes, topics: TopicsView) -> bytes:
    """In the version in which the member wrote its subscription, `like`."""
    try:
        version = _version(Reader(like))
    except HeadraceError as error:
        raise Malformed(f"not a subscription: {error}") from error
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            TopicPartition(topic=name, partitions=sorted(numbers))
            for topic_id, numbers in partitions.items()
            if (name := topics.name_of(topic_id)) is not None
        ],
        user_data=None,
    )
    writer = Writer()
    writer.int16(version)
    assignment.encode(writer, version)
    return writer.getvalue()


def by_id(named: Mapping[str, Collection[int]], topics: TopicsView) -> Owned:
    """Topics that are gone are left out."""
    return {
        topic_id: numbers for name, numbers in named.items() if (topic_id := topics.id_of(name)) is not None
    }


def owned_of(subscription: ConsumerProtocolSubscription, topics: TopicsView) -> Owned:
    return by_id({each.topic: each.partitions for each in subscription.owned_partitions}, topics)
