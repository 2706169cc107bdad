"""OffsetCommit: how far a group has come.

Versions 2-10. 2-4: a retention of the client's own. 5: none any more. 6: leader epoch. 7: static members.
8: flexible. 9: members of the server-side protocol, GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH (KIP-848).
10: topics by id (KIP-848).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from uuid import UUID

from headrace.broker.coordinators.named_partitions import merged
from headrace.broker.coordinators.refusals import refusal_code
from headrace.broker.requests.api import Api, Call, Codec
from headrace.controller.image import MetadataImage
from headrace.core.completion import Completion
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.protocol.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from headrace.protocol.offset_commit_codec import frame_answer, read_request

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

FIRST_WITH_TOPIC_IDS: Final = 10


def handle(
    context: RequestContext, request: OffsetCommitRequest, call: Call
) -> OffsetCommitResponse | Completion[OffsetCommitResponse]:
    version = call.version
    refused = resolve_topics(context.metadata.image, request, by_id=version >= FIRST_WITH_TOPIC_IDS)
    if not request.topics:
        return OffsetCommitResponse(topics=refused)
    asked = context.coordinators.groups.ask(
        request.group_id, lambda shard, _, now_ms: shard.offsets.commit(request, version, now_ms)
    )
    if asked.is_done and asked.error is None and not refused:
        return asked  # as it is: the commonest by far, where no other replica is waited for
    return asked.then(_finisher(refused), lambda error: _refusal(refused, request, refusal_code(error)))


def resolve_topics(
    image: MetadataImage, request: OffsetCommitRequest, *, by_id: bool
) -> list[OffsetCommitResponseTopic]:
    """Give every topic of the request both name and id. What does not exist is taken out of it, and
    answered."""
    refused: list[OffsetCommitResponseTopic] = []
    accepted: list[OffsetCommitRequestTopic] = []
    for topic in request.topics:
        known = image.topic_by_id(topic.topic_id) if by_id else image.topic(topic.name)
        if known is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            refused.append(answer_of(topic, topic.partitions, code))
            continue
        topic.name, topic.topic_id = known.name, known.topic_id
        count = len(known)
        for each in topic.partitions:
            if not 0 <= each.partition_index < count:
                refused.append(_take_missing(topic, count))
                break
        if topic.partitions:
            accepted.append(topic)
    request.topics = accepted
    return refused


def _take_missing(topic: OffsetCommitRequestTopic, count: int) -> OffsetCommitResponseTopic:
    missing = [each for each in topic.partitions if not 0 <= each.partition_index < count]
    topic.partitions = [each for each in topic.partitions if 0 <= each.partition_index < count]
    return answer_of(topic, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _finisher(
    refused: list[OffsetCommitResponseTopic],
) -> Callable[[OffsetCommitResponse], OffsetCommitResponse]:
    if not refused:
        return _as_it_is
    return lambda response: OffsetCommitResponse(topics=merged(refused, response.topics, _by_name_and_id))


def _as_it_is(response: OffsetCommitResponse) -> OffsetCommitResponse:
    return response


def _by_name_and_id(topic: OffsetCommitResponseTopic) -> tuple[str, UUID]:
    return topic.name, topic.topic_id


def _refusal(
    refused: list[OffsetCommitResponseTopic], request: OffsetCommitRequest, code: ErrorCode
) -> OffsetCommitResponse:
    answered = [answer_of(topic, topic.partitions, code) for topic in request.topics]
    return OffsetCommitResponse(topics=merged(refused, answered, _by_name_and_id))


def answer_of(
    topic: OffsetCommitRequestTopic, partitions: list[OffsetCommitRequestPartition], code: ErrorCode
) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
            for each in partitions
        ],
    )


CODEC: Final = Codec(read_request, frame_answer)
API: Final = Api(ApiKey.OFFSET_COMMIT, 2, 10, OffsetCommitRequest, handle, codec=CODEC)
