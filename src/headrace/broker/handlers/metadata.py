"""Metadata: which topics exist, who leads their partitions, where the brokers are.

Versions 0-13. 1: null asks for all topics, 0 does it with an empty list. 4: the client may forbid
auto-creation. 7: leader epochs. 9: flexible. 10: topic ids. 12: asking by topic id.
8: authorised operations, all of them where there is no authorizer.
13: an error of the whole answer (KIP-1102), by which a proxy sends clients back to their bootstrap servers.
No broker does, in Kafka neither.
A topic that is created by the question is in the answer at once; Apache Kafka makes the client ask twice.
A broker that has left is named for a while longer (broker/cluster/recently_fenced.py).
Who asks for all topics hears of those that it may describe. Topics that are asked for one by one and denied
never come here (broker/authorization/topic_metadata.py).
"""

from __future__ import annotations

from collections.abc import Awaitable, Container, Iterable
from typing import TYPE_CHECKING, Final, cast

from headrace.broker.coordinators import internal_topics
from headrace.broker.requests.allowed_operations import (
    NOT_ASKED,
    ON_TOPIC,
    may_see_topic,
    on_cluster,
    on_topic,
)
from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of
from headrace.broker.requests.offline_replicas import offline_replicas
from headrace.controller.topic_names import INTERNAL_TOPICS, is_topic_name
from headrace.core.errors import HeadraceError
from headrace.core.ids import NO_BROKER, NO_TOPIC_ID
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from headrace.protocol.messages.create_topics_response import CreateTopicsResponse
from headrace.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from headrace.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext
    from headrace.broker.requests.long_answers import EncodedRows
    from headrace.broker.requests.metadata_rows import Describe, DescribePartition, Operations
    from headrace.controller.topic_image import TopicImage

CREATE_MS: Final = 10_000
FEW_TOPICS: Final = 20
"""Are described at once."""
FEW_PARTITIONS: Final = 500
"""Of the topics that are asked for by name, likewise."""
NO_IDS_YET: Final = (10, 11)
"""They have a place for a topic id, but cannot answer a question that is asked by it."""


def handle(
    context: RequestContext, request: MetadataRequest, call: Call
) -> MetadataResponse | Awaitable[MetadataResponse]:
    if call.version in NO_IDS_YET and asks_by_id(request.topics or ()):
        return MetadataResponse(cluster_id=None, topics=[_refused(topic) for topic in request.topics or ()])
    if asks_for_all(request, call) and len(context.metadata.image.topics_by_name) > FEW_TOPICS:
        return _everything(context, request, call)
    if request.topics and _are_wide(context, request.topics):
        return _wide(context, request, call, request.topics)
    if context.peers.suspicions:
        return _once_settled(context, request, call)
    return _handle(context, request, call)


async def _once_settled(context: RequestContext, request: MetadataRequest, call: Call) -> MetadataResponse:
    """A leader that was lost a moment ago is not named: wait for the election, or say that there is none."""
    answer = await _whole(context, request, call)
    if _led_by(answer, context.peers.suspicions.brokers):
        await context.peers.suspicions.settled()
        answer = await _whole(context, request, call)
        for row in _led_by(answer, context.peers.suspicions.brokers):
            row.error_code, row.leader_id = ErrorCode.LEADER_NOT_AVAILABLE, NO_BROKER
    return answer


async def _whole(context: RequestContext, request: MetadataRequest, call: Call) -> MetadataResponse:
    answer = _handle(context, request, call)
    return answer if isinstance(answer, MetadataResponse) else await answer


def _led_by(answer: MetadataResponse, brokers: Container[int]) -> list[MetadataResponsePartition]:
    return [row for topic in answer.topics for row in topic.partitions if row.leader_id in brokers]


async def _everything(context: RequestContext, request: MetadataRequest, call: Call) -> MetadataResponse:
    """In slices, and from what was encoded before. A leader that was lost a moment ago is waited for."""
    if context.peers.suspicions:
        await context.peers.suspicions.settled()
        if context.peers.suspicions:
            return await _once_settled(context, request, call)
    rows = await _rows_of_all(context, request, call)
    answer = _answer(context, call, request, [])
    answer.topics = cast("list[MetadataResponseTopic]", rows)
    return answer


async def _rows_of_all(context: RequestContext, request: MetadataRequest, call: Call) -> EncodedRows:
    rows, describers = context.answers.rows, _describers(context)
    if call.rights is None:
        operations = ON_TOPIC if request.include_topic_authorized_operations else NOT_ASKED
        return await rows.all(call.version, operations, *describers)
    topics = await _visible(context, call)
    return await rows.some(call.version, _operations(request, call), topics, *describers)


async def _visible(context: RequestContext, call: Call) -> list[TopicImage]:
    topics = []
    for topic in list(context.metadata.image.topics_by_name.values()):
        if context.runtime.turns.is_over:
            await context.runtime.turns.next()
        if may_see_topic(call.rights, topic.name):
            topics.append(topic)
    return topics


def _operations(request: MetadataRequest, call: Call) -> Operations | None:
    if not request.include_topic_authorized_operations:
        return None
    return lambda name: on_topic(call.rights, name)


def _describers(context: RequestContext) -> tuple[Describe, DescribePartition]:
    return (
        lambda topic: _known(context, topic, with_partitions=False),
        lambda topic, index: _partition(context, topic, index),
    )


def _are_wide(context: RequestContext, asked: Iterable[MetadataRequestTopic]) -> bool:
    partitions = 0
    for topic in asked:
        image = image_of(context, topic)
        if image is not None:
            partitions += len(image)
    return partitions > FEW_PARTITIONS


def image_of(context: RequestContext, asked: MetadataRequestTopic) -> TopicImage | None:
    if asked.name is None:
        return context.metadata.image.topic_by_id(asked.topic_id)
    return context.metadata.image.topic(asked.name)


async def _wide(
    context: RequestContext, request: MetadataRequest, call: Call, asked: list[MetadataRequestTopic]
) -> MetadataResponse:
    """Topics of very many partitions: in slices, and from what was encoded before."""
    if context.peers.suspicions:
        await context.peers.suspicions.settled()
        if context.peers.suspicions:
            return await _once_settled(context, request, call)
    if context.runtime.config.auto_create_topics_enable and request.allow_auto_topic_creation:
        missing = _missing(context, asked)
        if missing:
            return await _create_first(context, call, request, asked, missing)
    answer = _answer(context, call, request, _unless_known(context, asked))
    topics = [image_of(context, topic) or row for topic, row in zip(asked, answer.topics, strict=True)]
    rows = await context.answers.rows.some(
        call.version, _operations(request, call), topics, *_describers(context)
    )
    answer.topics = cast("list[MetadataResponseTopic]", rows)
    return answer


def _unless_known(
    context: RequestContext, asked: Iterable[MetadataRequestTopic]
) -> list[MetadataResponseTopic]:
    """What is said of topics that do not exist, with a place for each that does."""
    return [
        MetadataResponseTopic() if image_of(context, topic) is not None else _topics(context, (topic,))[0]
        for topic in asked
    ]


def asks_for_all(request: MetadataRequest, call: Call) -> bool:
    return request.topics is None or (call.version == 0 and not request.topics)


def _handle(
    context: RequestContext, request: MetadataRequest, call: Call
) -> MetadataResponse | Awaitable[MetadataResponse]:
    if request.topics is None or asks_for_all(request, call):
        known = context.metadata.image.topics_by_name.values()
        visible = [_known(context, topic) for topic in known if may_see_topic(call.rights, topic.name)]
        return _answer(context, call, request, visible)
    if context.runtime.config.auto_create_topics_enable and request.allow_auto_topic_creation:
        missing = _missing(context, request.topics)
        if missing:
            return _create_first(context, call, request, request.topics, missing)
    return _answer(context, call, request, _topics(context, request.topics))


def _missing(context: RequestContext, asked: Iterable[MetadataRequestTopic]) -> list[str]:
    missing = []
    for topic in asked:
        if (
            topic.name is not None
            and context.metadata.image.topic(topic.name) is None
            and is_topic_name(topic.name)
        ):
            missing.append(topic.name)
    return missing


async def _create_first(
    context: RequestContext,
    call: Call,
    request: MetadataRequest,
    asked: list[MetadataRequestTopic],
    missing: list[str],
) -> MetadataResponse:
    wanted = CreateTopicsRequest(
        topics=[_creatable(context, name) for name in missing],
        timeout_ms=CREATE_MS,
    )
    try:
        made = await context.channel.request(wanted, CreateTopicsResponse)
        errors = {topic.name: _not_there_yet(topic.error_code) for topic in made.topics}
    except HeadraceError as error:
        errors = dict.fromkeys(missing, code_of(error))
    return _answer(context, call, request, _topics(context, asked, errors))


def _creatable(context: RequestContext, name: str) -> CreatableTopic:
    if name in (internal_topics.GROUPS_TOPIC, internal_topics.TRANSACTIONS_TOPIC):
        return internal_topics.creatable(context.runtime, context.metadata, name)
    return CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=[], configs=[])


def _not_there_yet(code: int) -> ErrorCode:
    """The topic exists, but this broker has not heard of it yet: the client asks again."""
    if code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
        return ErrorCode.LEADER_NOT_AVAILABLE
    return ErrorCode(code)


def _topics(
    context: RequestContext,
    asked: Iterable[MetadataRequestTopic],
    errors: dict[str, ErrorCode] | None = None,
) -> list[MetadataResponseTopic]:
    answers = []
    for topic in asked:
        if topic.name is None:
            answers.append(_by_id(context, topic))
            continue
        image = context.metadata.image.topic(topic.name)
        if image is not None:
            answers.append(_known(context, image))
        else:
            answers.append(_unknown(topic.name, errors))
    return answers


def _by_id(context: RequestContext, asked: MetadataRequestTopic) -> MetadataResponseTopic:
    image = context.metadata.image.topic_by_id(asked.topic_id)
    if image is not None:
        return _known(context, image)
    return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=asked.topic_id)


def asks_by_id(asked: Iterable[MetadataRequestTopic]) -> bool:
    return any(topic.name is None or topic.topic_id != NO_TOPIC_ID for topic in asked)


def _refused(asked: MetadataRequestTopic) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=ErrorCode.INVALID_REQUEST, name=asked.name or "", topic_id=asked.topic_id
    )


def _unknown(name: str, errors: dict[str, ErrorCode] | None) -> MetadataResponseTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not is_topic_name(name):
        code = ErrorCode.INVALID_TOPIC_EXCEPTION
    elif errors and name in errors:
        code = errors[name]
    return MetadataResponseTopic(error_code=code, name=name, topic_id=NO_TOPIC_ID)


def _known(
    context: RequestContext, topic: TopicImage, *, with_partitions: bool = True
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            _partition(context, topic, index) for index in range(len(topic) if with_partitions else 0)
        ],
    )


def _partition(context: RequestContext, topic: TopicImage, index: int) -> MetadataResponsePartition:
    leader = topic.leaders[index]
    replicas = topic.replicas(index)
    return MetadataResponsePartition(
        error_code=ErrorCode.NONE if leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=leader,
        leader_epoch=topic.leader_epochs[index],
        replica_nodes=list(replicas),
        isr_nodes=list(topic.isr(index)),
        offline_replicas=offline_replicas(
            context.runtime, context.metadata, context.partitions, topic, index, replicas
        ),
    )


def _answer(
    context: RequestContext, call: Call, request: MetadataRequest, topics: list[MetadataResponseTopic]
) -> MetadataResponse:
    if request.include_topic_authorized_operations:
        for topic in topics:
            if topic.name is not None:  # of a topic that does not exist, too
                topic.topic_authorized_operations = on_topic(call.rights, topic.name)
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node.broker_id, host=node.host, port=node.port, rack=node.rack)
            for node in context.metadata.nodes(
                call.connection.listener, context.peers.recently_fenced.brokers
            )
        ],
        cluster_id=context.metadata.cluster_id,
        controller_id=context.node.controller_id,
        topics=topics,
        cluster_authorized_operations=(
            on_cluster(call.rights) if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


API: Final = Api(ApiKey.METADATA, 0, 13, MetadataRequest, handle)
