"""Which topics are gone, by their ids: asked of every broker, since one alone may lag behind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from headrace.client.cluster import Cluster
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from headrace.protocol.messages.metadata_response import MetadataResponse

BY_ID_VERSION: Final = 12
"""Of Metadata."""
_AT_ONCE: Final = 1000


async def gone_topics(cluster: Cluster, topic_ids: Iterable[UUID]) -> set[UUID]:
    """Those that no broker knows. A topic that one is not allowed to see is none of them."""
    await cluster.metadata([])
    gone = set(topic_ids)
    for broker_id in cluster.known_brokers if gone else ():
        connection = await cluster.broker(broker_id)
        asked = sorted(gone)
        for first in range(0, len(asked), _AT_ONCE):
            request = MetadataRequest(
                topics=[
                    MetadataRequestTopic(topic_id=each, name=None) for each in asked[first : first + _AT_ONCE]
                ],
                allow_auto_topic_creation=False,
            )
            reply = await connection.request(
                request,
                MetadataResponse,
                version=BY_ID_VERSION,
                timeout=cluster.request_timeout,
            )
            for topic in reply.topics:
                if topic.error_code != ErrorCode.UNKNOWN_TOPIC_ID:
                    gone.discard(topic.topic_id)
    return gone
