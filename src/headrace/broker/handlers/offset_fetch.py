"""OffsetFetch: how far groups have come.

Versions 1-10. 2: all partitions of a group, and an error of the whole. 5: leader epoch. 6: flexible.
7: require_stable, to be told of offsets that a transaction may still change (KIP-447). 8: several groups
(KIP-709). 9: member id and epoch (KIP-848). 10: topics by id (KIP-848).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

from headrace.broker.coordinators.refusals import refusal_code
from headrace.broker.requests.api import Api, Call
from headrace.controller.image import MetadataImage
from headrace.core.completion import Completion
from headrace.groups.offsets.fetches import missing
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from headrace.protocol.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

FEW_GROUPS: Final = 20
"""Are asked about at once."""
FIRST_WITH_GROUP_ERROR: Final = 2
FIRST_WITH_SEVERAL_GROUPS: Final = 8
FIRST_WITH_TOPIC_IDS: Final = 10

_ANSWER_OF_READERS: Final = {ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.NOT_COORDINATOR}
"""Consumers before 3.9 give up at the first, and look for the coordinator again at the second."""


def handle(
    context: RequestContext, request: OffsetFetchRequest, call: Call
) -> Awaitable[OffsetFetchResponse]:
    if call.version < FIRST_WITH_SEVERAL_GROUPS:
        return _fetch(context, only_group(request), call.version, request.require_stable).then(of_one_group)
    if len(request.groups) > FEW_GROUPS:
        return _in_turns(context, request, call.version)
    answers = [_fetch(context, group, call.version, request.require_stable) for group in request.groups]
    return _all_of(answers, lambda groups: OffsetFetchResponse(groups=groups))


async def _in_turns(
    context: RequestContext, request: OffsetFetchRequest, version: int
) -> OffsetFetchResponse:
    """Each group for itself, as it is in its turn."""
    answers = []
    for group in request.groups:
        if context.runtime.turns.is_over:
            await context.runtime.turns.next()
        answers.append(_fetch(context, group, version, request.require_stable))
    return OffsetFetchResponse(groups=[await answer for answer in answers])


def only_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    return OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)


def of_one_group(group: OffsetFetchResponseGroup) -> OffsetFetchResponse:
    topics = [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=each.partition_index,
                    committed_offset=each.committed_offset,
                    committed_leader_epoch=each.committed_leader_epoch,
                    metadata=each.metadata,
                    error_code=each.error_code,
                )
                for each in topic.partitions
            ],
        )
        for topic in group.topics
    ]
    return OffsetFetchResponse(topics=topics, error_code=group.error_code)


def _fetch(
    context: RequestContext, group: OffsetFetchRequestGroup, version: int, require_stable: bool
) -> Completion[OffsetFetchResponseGroup]:
    by_id = version >= FIRST_WITH_TOPIC_IDS
    everything = group.topics is None
    unknown = _take_unknown(context.metadata.image, group) if by_id else []

    def finish(answer: OffsetFetchResponseGroup) -> OffsetFetchResponseGroup:
        if by_id and everything:
            answer.topics = _with_ids(context.metadata.image, answer.topics)
        answer.topics += unknown
        return answer

    asked: Completion[OffsetFetchResponseGroup] = context.coordinators.groups.ask(
        group.group_id,
        lambda shard, _, _now_ms: shard.offsets.fetch(group, require_stable=require_stable),
        writes=False,
    )
    return asked.then(finish, lambda error: refused_group(group, version, refusal_code(error)))


def _take_unknown(image: MetadataImage, group: OffsetFetchRequestGroup) -> list[OffsetFetchResponseTopics]:
    """Give the topics that are asked for by id their names. Unknown ids are taken out, and answered."""
    if group.topics is None:
        return []
    unknown: list[OffsetFetchResponseTopics] = []
    known: list[OffsetFetchRequestTopics] = []
    for topic in group.topics:
        found = image.topic_by_id(topic.topic_id)
        if found is not None:
            topic.name = found.name
            known.append(topic)
        else:
            rows = [missing(each, ErrorCode.UNKNOWN_TOPIC_ID) for each in topic.partition_indexes]
            unknown.append(OffsetFetchResponseTopics(topic_id=topic.topic_id, partitions=rows))
    group.topics = known
    return unknown


def _with_ids(
    image: MetadataImage, topics: list[OffsetFetchResponseTopics]
) -> list[OffsetFetchResponseTopics]:
    """What has no id cannot be told in this version: offsets of topics that are gone."""
    told: list[OffsetFetchResponseTopics] = []
    for topic in topics:
        found = image.topic(topic.name)
        if found is not None:
            topic.topic_id = found.topic_id
            told.append(topic)
    return told


def refused_group(group: OffsetFetchRequestGroup, version: int, code: ErrorCode) -> OffsetFetchResponseGroup:
    code = _ANSWER_OF_READERS.get(code, code)
    if version >= FIRST_WITH_GROUP_ERROR:
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=code)
    topics = [
        OffsetFetchResponseTopics(
            name=topic.name, partitions=[missing(each, code) for each in topic.partition_indexes]
        )
        for topic in group.topics or ()
    ]
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)


def _all_of(
    answers: Sequence[Completion[OffsetFetchResponseGroup]],
    finish: Callable[[list[OffsetFetchResponseGroup]], OffsetFetchResponse],
) -> Completion[OffsetFetchResponse]:
    """None of them is refused: a refusal has become an answer."""
    together: Completion[OffsetFetchResponse] = Completion()
    waiting = len(answers)

    def on_answer(_: Completion[OffsetFetchResponseGroup]) -> None:
        nonlocal waiting
        waiting -= 1
        if not waiting:
            together.complete(finish([answer.result() for answer in answers]))

    for answer in answers:
        answer.when_done(on_answer)
    if not answers:
        together.complete(finish([]))
    return together


API: Final = Api(ApiKey.OFFSET_FETCH, 1, 10, OffsetFetchRequest, handle)
