"""Produce: the hot path in. Served from the raw frame; no record is decoded.

Versions 3-13 are served; 0-2 are advertised because librdkafka before 2.12 looks for them before it
compresses, and refused as Apache Kafka refuses them. 7: zstd. 8: error details. 9: flexible. 11: the
transactional client's newer errors. 12: the partition is put into the transaction by this very request
(KIP-890). 13: topics by id.

The first batch of a transaction in a partition waits until the coordinator knows of it
(broker/produce/unverified_produce.py); meanwhile its connection serves nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from headrace.broker.produce.appending import (
    Refused,
    Results,
    acknowledged,
    count_failure,
    encode,
    known_name,
    may_write_transactionally,
    must_wait,
    produce,
    refusal,
)
from headrace.broker.produce.delayed_produce import DelayedProduce
from headrace.broker.produce.unverified_produce import Refusals, verify_partitions
from headrace.broker.requests.api import Api
from headrace.broker.requests.partition_limit import most_elements
from headrace.core.completion import Completion
from headrace.core.errors import (
    HeadraceError,
    InvalidRecord,
    TransactionalIdNotAuthorized,
    UnsupportedVersion,
)
from headrace.core.ids import TopicPartition
from headrace.core.tasks import spawn
from headrace.network.connection import Connection
from headrace.network.response import NO_RESPONSE, DelayedResponse, NoResponse, Parts, Response
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.produce_request import ProduceRequest
from headrace.protocol.produce_codec import (
    PartitionResult,
    ProduceRequestView,
    encode_acknowledgement,
    names_partition_twice,
    once_each,
    parse_any,
    parse_one,
)

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

FIRST_SERVED: Final = 3

NO_REFUSALS: Final[Refusals] = {}

AT_ONCE: Final = 60
"""Partitions. They take some forty milliseconds if each has to open a file; of more each has its turn."""


def serve(
    context: RequestContext,
    version: int,
    correlation_id: int,
    frame: memoryview,
    at: int,
    connection: Connection,
) -> Response:
    if version < FIRST_SERVED:
        raise UnsupportedVersion(f"Produce {version} is too old: the least is {FIRST_SERVED}")
    one = parse_one(frame, at, version, len(frame))
    if one is None:
        return _serve_many(context, version, correlation_id, frame, at, connection)
    acks, timeout_ms, topic, index, start, end = one
    outcome = produce(
        context,
        topic,
        index,
        frame,
        frame[start:end],
        version,
        acks,
        context.runtime.clock.wall_ms(),
        connection.rights,
        in_transaction=False,
    )
    if isinstance(outcome, Refused):
        if acks == 0:
            raise outcome.error
        return [encode(context, version, correlation_id, [(topic, [outcome.answer])], connection)]
    partition, result = outcome
    if must_wait(partition, result, acks):
        answers = [acknowledged(index, result)]
        delayed = DelayedProduce(context, version, correlation_id, [(topic, answers)])
        delayed.hold(partition, result, answers, 0, acks)
        return NO_RESPONSE if acks == 0 else delayed.begin(timeout_ms)
    if acks == 0:
        return NO_RESPONSE
    return [encode_acknowledgement(version, correlation_id, topic, index, result[0], result[2], result[3])]


def _serve_many(
    context: RequestContext,
    version: int,
    correlation_id: int,
    frame: memoryview,
    at: int,
    connection: Connection,
) -> Response:
    request = parse_any(frame, at, version, len(frame), most_elements(context.partitions, len(frame)))
    if names_partition_twice(request):
        error = InvalidRecord("a produce request holds exactly one batch for each partition")
        return _refuse_all(context, version, correlation_id, once_each(request), connection, error)
    rights = connection.rights
    if rights is not None and not may_write_transactionally(rights, request, frame):
        denied = TransactionalIdNotAuthorized("WRITE is not allowed on the transactional id")
        return _refuse_all(context, version, correlation_id, request, connection, denied)
    if request.transactional_id is None:
        return _carry_out(context, version, correlation_id, frame, request, connection, NO_REFUSALS)
    try:
        verified = verify_partitions(context, request, frame, version)
    except HeadraceError as error:
        return _refuse_all(context, version, correlation_id, request, connection, error)
    if verified is None:
        return _carry_out(context, version, correlation_id, frame, request, connection, NO_REFUSALS)
    if verified.is_done:
        return _carry_out(context, version, correlation_id, frame, request, connection, verified.result())
    kept = memoryview(bytearray(frame))  # the next read overwrites the frame
    pending = DelayedResponse(exclusive=True)
    verified.when_done(partial(_go_on, context, version, correlation_id, kept, request, connection, pending))
    return pending


def _go_on(
    context: RequestContext,
    version: int,
    correlation_id: int,
    frame: memoryview,
    request: ProduceRequestView,
    connection: Connection,
    pending: DelayedResponse,
    verified: Completion[Refusals],
) -> None:
    """The coordinator has answered."""
    try:
        answer = _carry_out(context, version, correlation_id, frame, request, connection, verified.result())
    except Exception as error:
        _hang_up(context, connection, error)
        return
    _complete(pending, answer)


def _hang_up(context: RequestContext, connection: Connection, error: Exception) -> None:
    """Nobody else would hear of it: the request is not on the stack any more."""
    context.runtime.peer_log.warning("connection closed", connection.peer_host, error=repr(error))
    connection.close()


def _complete(pending: DelayedResponse, answer: Response) -> None:
    if isinstance(answer, DelayedResponse):
        answer.when_done(partial(_hand_on, pending))
    else:
        pending.complete([] if isinstance(answer, NoResponse) else answer)


def _hand_on(pending: DelayedResponse, done: Completion[Parts]) -> None:
    pending.complete(done.result())


def _refuse_all(
    context: RequestContext,
    version: int,
    correlation_id: int,
    request: ProduceRequestView,
    connection: Connection,
    error: HeadraceError,
) -> Response:
    if request.acks == 0:
        raise error
    results: Results = [
        (topic, [refusal(context, known_name(context, topic), index, version, error) for index, _, _ in each])
        for topic, each in request.topics
    ]
    return [encode(context, version, correlation_id, results, connection)]


def _carry_out(
    context: RequestContext,
    version: int,
    correlation_id: int,
    frame: memoryview,
    request: ProduceRequestView,
    connection: Connection,
    refused: Refusals,
) -> Response:
    if sum(len(partitions) for _, partitions in request.topics) > AT_ONCE:
        kept = memoryview(bytearray(frame))  # the next read overwrites the frame
        carrying = _Carrying(context, version, correlation_id, kept, request, connection, refused)
        return carrying.take_turns()
    carrying = _Carrying(context, version, correlation_id, frame, request, connection, refused)
    for _ in carrying.steps():
        pass
    return carrying.answer()


class _Carrying:
    """A request on its way: one partition after the other, then the answer."""

    __slots__ = (
        "_connection",
        "_context",
        "_correlation_id",
        "_delayed",
        "_failed",
        "_frame",
        "_refused",
        "_request",
        "_results",
        "_version",
    )

    def __init__(
        self,
        context: RequestContext,
        version: int,
        correlation_id: int,
        frame: memoryview,
        request: ProduceRequestView,
        connection: Connection,
        refused: Refusals,
    ) -> None:
        self._context = context
        self._version = version
        self._correlation_id = correlation_id
        self._frame = frame
        self._request = request
        self._connection = connection
        self._refused = refused
        self._results: Results = []
        self._delayed = DelayedProduce(context, version, correlation_id, self._results)
        self._failed: HeadraceError | None = None

    def take_turns(self) -> DelayedResponse:
        """Meanwhile the connection serves nothing else, so that batches of one producer stay in order. Apache
        Kafka promises nothing about partitions of one request together."""
        pending = DelayedResponse(exclusive=True)
        task = spawn("a produce to many partitions", self._in_turns(pending), self._context.runtime.loop)
        self._context.in_flight.keep(task)
        return pending

    async def _in_turns(self, pending: DelayedResponse) -> None:
        turns = self._context.runtime.turns
        try:
            for _ in self.steps():
                if turns.is_over:
                    await turns.next()
            _complete(pending, self.answer())
        except Exception as error:
            _hang_up(self._context, self._connection, error)

    def steps(self) -> Iterator[None]:
        context, version, frame, refused = self._context, self._version, self._frame, self._refused
        acks = self._request.acks
        in_transaction = self._request.transactional_id is not None
        now_ms = context.runtime.clock.wall_ms()
        for topic, partitions in self._request.topics:
            answers: list[PartitionResult] = []
            self._results.append((topic, answers))
            name = known_name(context, topic)
            for index, start, end in partitions:
                yield
                if refused and (name, index) in refused:
                    code, text = refused[TopicPartition(name, index)]
                    self._failed = HeadraceError(text)
                    count_failure(context, name, version, code)
                    answers.append(PartitionResult(index, code, error_message=text))
                    continue
                records = frame[start:end] if start >= 0 else frame[:0]
                outcome = produce(
                    context,
                    topic,
                    index,
                    frame,
                    records,
                    version,
                    acks,
                    now_ms,
                    self._connection.rights,
                    in_transaction=in_transaction,
                )
                if isinstance(outcome, Refused):
                    self._failed = outcome.error
                    answers.append(outcome.answer)
                    continue
                partition, result = outcome
                answers.append(acknowledged(index, result))
                if must_wait(partition, result, acks):
                    self._delayed.hold(partition, result, answers, len(answers) - 1, acks)

    def answer(self) -> Response:
        request = self._request
        if request.acks == 0:
            if self._failed is not None:
                # Nobody reads an answer to acks=0: the only way to tell the producer is to hang up.
                raise self._failed
            return NO_RESPONSE
        if self._delayed.is_waiting:
            return self._delayed.begin(request.timeout_ms)
        return [encode(self._context, self._version, self._correlation_id, self._results, self._connection)]


API: Final = Api(ApiKey.PRODUCE, 0, 13, ProduceRequest, None)
