"""OffsetDelete: forget how far a group has come in topics that it no longer reads.

Version 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.api import Api, Call
from headrace.broker.coordinators.refusals import refusal_code
from headrace.broker.promise import Promise
from headrace.controller.image import MetadataImage
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from headrace.protocol.messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from headrace.broker.broker import Broker


def handle(
    broker: Broker, request: OffsetDeleteRequest, _call: Call
) -> OffsetDeleteResponse | Promise[OffsetDeleteResponse]:
    if not request.group_id:
        return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    unknown = _take_unknown(broker.image, request)
    asked = broker.coordinators.groups.ask(
        request.group_id, lambda shard, _ticket, _now_ms: shard.offsets.delete(request)
    )
    return asked.then(
        lambda response: OffsetDeleteResponse(topics=_merged(unknown, response.topics)),
        lambda error: OffsetDeleteResponse(error_code=refusal_code(error)),
    )


def _take_unknown(image: MetadataImage, request: OffsetDeleteRequest) -> list[OffsetDeleteResponseTopic]:
    """What does not exist is taken out of the request, and answered."""
    unknown: list[OffsetDeleteResponseTopic] = []
    known: list[OffsetDeleteRequestTopic] = []
    for topic in request.topics:
        found = image.topic(topic.name)
        count = 0 if found is None else len(found)
        missing = [each for each in topic.partitions if not 0 <= each.partition_index < count]
        if missing or found is None:
            unknown.append(_unknown(topic.name, missing))
        topic.partitions = [each for each in topic.partitions if 0 <= each.partition_index < count]
        if topic.partitions:
            known.append(topic)
    request.topics = known
    return unknown


def _unknown(name: str, partitions: list[OffsetDeleteRequestPartition]) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=name,
        partitions=[
            OffsetDeleteResponsePartition(
                partition_index=each.partition_index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
            for each in partitions
        ],
    )


def _merged(
    unknown: list[OffsetDeleteResponseTopic], decided: list[OffsetDeleteResponseTopic]
) -> list[OffsetDeleteResponseTopic]:
    """Each topic once, as a client may count on."""
    topics: dict[str, OffsetDeleteResponseTopic] = {}
    for topic in (*unknown, *decided):
        first = topics.setdefault(topic.name, topic)
        if first is not topic:
            first.partitions += topic.partitions
    return list(topics.values())


API: Final = Api(ApiKey.OFFSET_DELETE, 0, 0, OffsetDeleteRequest, handle)
