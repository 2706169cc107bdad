"""The topics in the metadata of members whose protocol type is "consumer"."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headrace.core.errors import HeadraceError
from headrace.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from headrace.protocol.primitives import Reader

CONSUMER_PROTOCOL_TYPE: Final = "consumer"


def subscribed_topics(metadata: Iterable[bytes]) -> frozenset[str] | None:
    """The topics of all members together; None if one of them says something that is not understood."""
    topics: set[str] = set()
    try:
        for each in metadata:
            reader = Reader(each)
            if reader.int16() < 0:
                return None
            # Every version begins as version 0 does, and that has the topics.
            topics.update(ConsumerProtocolSubscription.decode(reader, 0).topics)
    except HeadraceError:
        return None
    return frozenset(topics)
