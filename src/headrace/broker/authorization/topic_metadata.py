"""Metadata and DescribeTopicPartitions: DESCRIBE on each topic that is asked for.

Who is denied a topic does not learn whether it exists: no id by name, no name by id. Who asks for all topics
is told of those that it may describe; the handlers leave out the others while they list.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from headrace.broker.authorization.division import Entries, divide, without
from headrace.broker.authorization.guard import ALLOWED, Decided, Partly, Verdict
from headrace.broker.authorization.refusals import TOPIC_DENIED
from headrace.broker.handlers.metadata import NO_IDS_YET, asks_by_id, asks_for_all, image_of
from headrace.broker.requests.allowed_operations import may_see_topic
from headrace.broker.requests.api import Call
from headrace.broker.requests.context import RequestContext
from headrace.broker.requests.long_answers import EncodedRows
from headrace.controller.topic_names import INTERNAL_TOPICS
from headrace.core.ids import NO_TOPIC_ID
from headrace.protocol.messages.describe_topic_partitions_request import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from headrace.protocol.messages.describe_topic_partitions_response import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
)
from headrace.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from headrace.protocol.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from headrace.protocol.primitives import Writer
from headrace.security.acl import CLUSTER_NAME, Operation, ResourceType
from headrace.security.rights import Rights


def metadata(context: RequestContext, rights: Rights, request: MetadataRequest, call: Call) -> Verdict:
    topics = request.topics
    if topics is None or asks_for_all(request, call):
        return ALLOWED
    if call.version in NO_IDS_YET and asks_by_id(topics):
        return ALLOWED  # and refused by the handler, whatever exists
    creates = context.runtime.config.auto_create_topics_enable and request.allow_auto_topic_creation

    def is_allowed(asked: MetadataRequestTopic) -> bool:
        known = image_of(context, asked)
        name = asked.name if known is None else known.name
        if name is None:
            return True  # an id that nobody has
        if not rights.allows(Operation.DESCRIBE, ResourceType.TOPIC, name):
            return False
        return known is not None or not creates or may_create(rights, name)

    def when_denied(allowed: list[MetadataRequestTopic], denied: list[MetadataRequestTopic]) -> Decided:
        rows = [_refused(rights, asked) for asked in denied]
        lists_nothing = call.version == 0 and not allowed  # which would ask for all
        request.topics = allowed
        return Partly(request, lambda response: _completed(response, rows, call.version, lists_nothing))

    return divide(context, topics, is_allowed, when_denied)


def may_create(rights: Rights, name: str) -> bool:
    return rights.allows_any(
        (Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME), (Operation.CREATE, ResourceType.TOPIC, name)
    )


def _refused(rights: Rights, asked: MetadataRequestTopic) -> MetadataResponseTopic:
    if asked.name is None:
        return MetadataResponseTopic(error_code=TOPIC_DENIED, name=None, topic_id=asked.topic_id)
    return MetadataResponseTopic(
        error_code=TOPIC_DENIED,
        name=asked.name,
        topic_id=NO_TOPIC_ID,
        is_internal=asked.name in INTERNAL_TOPICS and may_see_topic(rights, asked.name),
    )


def _completed(
    response: MetadataResponse, refused: list[MetadataResponseTopic], version: int, lists_nothing: bool
) -> MetadataResponse:
    served: object = response.topics
    if lists_nothing:
        response.topics = refused
    elif isinstance(served, EncodedRows):
        response.topics = cast("list[MetadataResponseTopic]", _joined(served, refused, version))
    else:
        response.topics += refused
    return response


def _joined(encoded: EncodedRows, rows: Iterable[MetadataResponseTopic], version: int) -> EncodedRows:
    count, writer = len(encoded), Writer()
    for row in rows:
        row.encode(writer, version)
        count += 1
    return EncodedRows(count, encoded.written + writer.getvalue())


def _name(asked: TopicRequest) -> str:
    return asked.name


def _refused_pages(asked: TopicRequest) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(error_code=TOPIC_DENIED, name=asked.name)


_PAGES = Entries("topics", _name, DescribeTopicPartitionsResponse, "topics", _refused_pages)


def describe_topic_partitions(
    context: RequestContext, rights: Rights, request: DescribeTopicPartitionsRequest, _call: Call
) -> Verdict:
    """A topic that is denied is answered with each page up to its place."""
    cursor = request.cursor
    if cursor is not None and cursor.partition_index < 0:
        return ALLOWED  # and refused by the handler, whatever exists
    first = "" if cursor is None else cursor.topic_name

    def when_denied(allowed: list[TopicRequest], denied: list[TopicRequest]) -> Decided:
        return without(request, _PAGES, allowed, [asked for asked in denied if asked.name >= first])

    return divide(
        context,
        request.topics,
        lambda asked: rights.allows(Operation.DESCRIBE, ResourceType.TOPIC, asked.name),
        when_denied,
    )
