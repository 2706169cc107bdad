"""TxnOffsetCommit: how far a group has come, if the transaction is committed.

Versions 0-5. 2: leader epoch; COORDINATOR_LOAD_IN_PROGRESS is understood. 3: flexible; member and generation,
so that a consumer that was replaced is fenced (KIP-447). 4: TRANSACTION_ABORTABLE is understood. 5: the
group's partition is put into the transaction by this very request (KIP-890). Not done: 6, topics by id, which
Kafka 4.3 does not serve either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.coordinators.named_partitions import merged, take_unknown
from headrace.broker.coordinators.refusals import refusal_code, told_as
from headrace.broker.requests.api import Api, Call
from headrace.broker.transactions.verification_requests import Codes
from headrace.core.completion import Completion
from headrace.core.errors import HeadraceError
from headrace.core.ids import PartitionIndex, TopicPartition
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
)
from headrace.protocol.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

FIRST_THAT_KNOWS_LOADING: Final = 2
FIRST_THAT_KNOWS_ABORTABLE: Final = 4
FIRST_THAT_ADDS_THE_PARTITION: Final = 5


def handle(
    context: RequestContext, request: TxnOffsetCommitRequest, call: Call
) -> TxnOffsetCommitResponse | Completion[TxnOffsetCommitResponse]:
    unknown = take_unknown(context.metadata.image, request, _unknown)
    if not request.topics:
        return TxnOffsetCommitResponse(topics=unknown)
    return _Commit(context, request, unknown, call.version).begin()


class _Commit:
    """One request: first its partition is verified to be in the transaction, then the group is asked."""

    __slots__ = ("_completion", "_context", "_index", "_request", "_unknown", "_version")

    def __init__(
        self,
        context: RequestContext,
        request: TxnOffsetCommitRequest,
        unknown: list[TxnOffsetCommitResponseTopic],
        version: int,
    ) -> None:
        self._context = context
        self._request = request
        self._unknown = unknown
        self._version = version
        self._index = -1
        self._completion: Completion[TxnOffsetCommitResponse] = Completion()

    def begin(self) -> Completion[TxnOffsetCommitResponse]:
        request, groups = self._request, self._context.coordinators.groups
        if not request.group_id:
            return self._refuse(ErrorCode.INVALID_GROUP_ID)
        try:
            self._index = groups.partition_for(request.group_id)
        except HeadraceError as error:
            return self._refuse(refusal_code(error))
        verified = self._context.coordinators.verification.verify(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            [TopicPartition(groups.topic, PartitionIndex(self._index))],
            add=self._version >= FIRST_THAT_ADDS_THE_PARTITION,
            knows_abortable=self._version >= FIRST_THAT_KNOWS_ABORTABLE,
        )
        verified.when_done(self._on_verified)
        return self._completion

    def _on_verified(self, verified: Completion[Codes]) -> None:
        if verified.error is not None:
            self._refuse(refusal_code(verified.error))
            return
        for code in verified.result().values():
            if code != ErrorCode.NONE:
                self._refuse(told_as(code))
                return
        request, version = self._request, self._version
        asked = self._context.coordinators.groups.ask_partition(
            self._index,
            lambda shard, _, now_ms: shard.offsets.commit_in_transaction(request, version, now_ms),
            producer=(request.producer_id, request.producer_epoch),
        )
        asked.when_done(self._on_decided)

    def _on_decided(self, decided: Completion[TxnOffsetCommitResponse]) -> None:
        if decided.error is not None:
            self._refuse(refusal_code(decided.error))
        else:
            topics = merged(self._unknown, decided.result().topics)
            self._completion.complete(TxnOffsetCommitResponse(topics=topics))

    def _refuse(self, code: ErrorCode) -> Completion[TxnOffsetCommitResponse]:
        if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and self._version < FIRST_THAT_KNOWS_LOADING:
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        answered = [answer_of(topic.name, topic.partitions, code) for topic in self._request.topics]
        self._completion.complete(TxnOffsetCommitResponse(topics=merged(self._unknown, answered)))
        return self._completion


def _unknown(name: str, partitions: list[TxnOffsetCommitRequestPartition]) -> TxnOffsetCommitResponseTopic:
    return answer_of(name, partitions, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def answer_of(
    name: str, partitions: list[TxnOffsetCommitRequestPartition], code: ErrorCode
) -> TxnOffsetCommitResponseTopic:
    return TxnOffsetCommitResponseTopic(
        name=name,
        partitions=[
            TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
            for each in partitions
        ],
    )


API: Final = Api(ApiKey.TXN_OFFSET_COMMIT, 0, 5, TxnOffsetCommitRequest, handle)
