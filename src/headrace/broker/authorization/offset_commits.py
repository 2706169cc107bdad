"""OffsetCommit, TxnOffsetCommit, OffsetDelete: a right on the group first, then READ on each topic.

Neither commit has a place for an error of the whole: who is denied the group, or the transactional id, is
told so of every partition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from headrace.broker.authorization.division import Entries, divide, without
from headrace.broker.authorization.guard import Decided, Partly, Verdict
from headrace.broker.authorization.refusals import GROUP_DENIED, TOPIC_DENIED, TRANSACTIONAL_ID_DENIED
from headrace.broker.handlers import offset_commit as commits
from headrace.broker.handlers import txn_offset_commit as txn_commits
from headrace.broker.requests.api import Call
from headrace.broker.requests.context import RequestContext
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.offset_commit_request import OffsetCommitRequest, OffsetCommitRequestTopic
from headrace.protocol.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponseTopic,
)
from headrace.protocol.messages.offset_delete_request import OffsetDeleteRequest, OffsetDeleteRequestTopic
from headrace.protocol.messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from headrace.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
)
from headrace.protocol.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponseTopic,
)
from headrace.security.acl import Operation, ResourceType
from headrace.security.rights import Rights


def name_by_id(context: RequestContext, by_id: bool) -> Callable[[Any], str | None]:
    """Gives the name of a topic that a request names, or None for an id that nobody has."""

    def name(topic: Any) -> str | None:
        if not by_id:
            named: str = topic.name
            return named
        known = context.metadata.image.topic_by_id(topic.topic_id)
        return None if known is None else known.name

    return name


def offset_commit(
    context: RequestContext, rights: Rights, request: OffsetCommitRequest, call: Call
) -> Verdict:
    if not rights.allows(Operation.READ, ResourceType.GROUP, request.group_id):
        return OffsetCommitResponse(topics=_refused(request.topics, GROUP_DENIED))
    name_of = name_by_id(context, call.version >= commits.FIRST_WITH_TOPIC_IDS)

    def is_allowed(topic: OffsetCommitRequestTopic) -> bool:
        name = name_of(topic)
        return name is None or rights.allows(Operation.READ, ResourceType.TOPIC, name)

    def when_denied(
        allowed: list[OffsetCommitRequestTopic], denied: list[OffsetCommitRequestTopic]
    ) -> Decided:
        refused = _refused(denied, TOPIC_DENIED)
        if not allowed:
            return OffsetCommitResponse(topics=refused)
        request.topics = allowed

        def complete(response: OffsetCommitResponse) -> OffsetCommitResponse:
            response.topics += refused
            return response

        return Partly(request, complete)

    return divide(context, request.topics, is_allowed, when_denied)


def _refused(topics: list[OffsetCommitRequestTopic], code: ErrorCode) -> list[OffsetCommitResponseTopic]:
    return [commits.answer_of(topic, topic.partitions, code) for topic in topics]


def _txn_name(topic: TxnOffsetCommitRequestTopic) -> str:
    return topic.name


def _txn_refused(topic: TxnOffsetCommitRequestTopic) -> TxnOffsetCommitResponseTopic:
    return txn_commits.answer_of(topic.name, topic.partitions, TOPIC_DENIED)


_TXN: Final = Entries("topics", _txn_name, TxnOffsetCommitResponse, "topics", _txn_refused)


def txn_offset_commit(
    context: RequestContext, rights: Rights, request: TxnOffsetCommitRequest, _call: Call
) -> Verdict:
    code = None
    if not rights.allows(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        code = TRANSACTIONAL_ID_DENIED
    elif not rights.allows(Operation.READ, ResourceType.GROUP, request.group_id):
        code = GROUP_DENIED
    if code is not None:
        return TxnOffsetCommitResponse(
            topics=[txn_commits.answer_of(topic.name, topic.partitions, code) for topic in request.topics]
        )
    return divide(
        context,
        request.topics,
        lambda topic: rights.allows(Operation.READ, ResourceType.TOPIC, topic.name),
        lambda allowed, denied: without(request, _TXN, allowed, denied),
    )


def _deleted_name(topic: OffsetDeleteRequestTopic) -> str:
    return topic.name


def _not_deleted(topic: OffsetDeleteRequestTopic) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=[
            OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=TOPIC_DENIED)
            for each in topic.partitions
        ],
    )


_DELETED: Final = Entries("topics", _deleted_name, OffsetDeleteResponse, "topics", _not_deleted)


def offset_delete(
    context: RequestContext, rights: Rights, request: OffsetDeleteRequest, _call: Call
) -> Verdict:
    if not rights.allows(Operation.DELETE, ResourceType.GROUP, request.group_id):
        return OffsetDeleteResponse(error_code=GROUP_DENIED)
    return divide(
        context,
        request.topics,
        lambda topic: rights.allows(Operation.READ, ResourceType.TOPIC, topic.name),
        lambda allowed, denied: without(request, _DELETED, allowed, denied),
    )
