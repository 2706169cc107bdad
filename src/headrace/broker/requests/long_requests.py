"""Requests that would hold up the loop: read in a thread, carried out and encoded in slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from headrace.broker.authorization.guard import Guard, authorised
from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.context import RequestContext
from headrace.broker.requests.large_requests import ClientHasGone
from headrace.broker.requests.long_answers import EncodedRows, LongAnswer
from headrace.broker.requests.request_parts import parts_of
from headrace.broker.requests.request_reading import read_request
from headrace.broker.requests.request_shapes import Shape
from headrace.core.errors import InvalidRequest
from headrace.network.response import Parts
from headrace.protocol.headers import frame_response
from headrace.protocol.message import Message

READ_AT_ONCE_BYTES: Final = 16 * 1024
"""The messages of a larger frame are made in a thread."""
ROWS_AT_ONCE: Final = 300
"""An answer with more rows is encoded in slices."""
MOST_ANSWER_BYTES: Final = 32 * 1024 * 1024
"""Of what can be asked for in several requests: clients take 50 to 100 MB at most."""


class LongRequests:
    def __init__(self, context: RequestContext, guards: Mapping[int, Guard]) -> None:
        self._context = context
        self._guards = guards
        self._runtime = context.runtime

    async def read(self, api: Api, frame: bytes, at: int, version: int, shape: Shape | None) -> Message:
        return await self._runtime.work_thread.run(read_request, api, memoryview(frame), at, version, shape)

    async def carry_out(self, api: Api, request: Message, call: Call, shape: Shape) -> Message:
        """Part by part. Each part takes effect on its own, as if it had come as a request of its own."""
        turns = self._runtime.turns
        caller: Any = call  # whose connection may be a stand-in, which compiled code would not take for one
        answer = LongAnswer(shape.answers, call.version)
        for part in parts_of(request, shape):
            if turns.is_over:
                await turns.next()
                if caller.connection.closed:
                    raise ClientHasGone("the client has hung up meanwhile")
            result = authorised(self._context, self._guards, api, part, call)
            await self._add(answer, result if isinstance(result, Message) else await result)
            if answer.is_refused:
                break
        return answer.whole()

    async def encode(self, response: Message, shape: Shape, version: int) -> Message:
        """The same answer, with its rows as bytes already."""
        answer = LongAnswer(shape.answers, version)
        await self._add(answer, response)
        return answer.whole()

    async def _add(self, answer: LongAnswer, response: Message) -> None:
        turns = self._runtime.turns
        for _ in answer.add(response):
            if turns.is_over:
                if answer.size_bytes > MOST_ANSWER_BYTES:
                    raise InvalidRequest(
                        f"the answer would be larger than {MOST_ANSWER_BYTES} bytes: ask in several requests"
                    )
                await turns.next()


def is_long_answer(response: Message, fields: Sequence[str]) -> bool:
    if not fields:
        return False
    rows: Sequence[object] = getattr(response, fields[0]) or ()
    if isinstance(rows, EncodedRows):
        return False
    return _count(rows, fields, ROWS_AT_ONCE) > ROWS_AT_ONCE


def _count(rows: Sequence[object], fields: Sequence[str], enough: int) -> int:
    total = len(rows)
    if len(fields) > 1:
        for row in rows:
            if total > enough:
                break
            total += _count(getattr(row, fields[1]) or (), fields[1:], enough - total)
    return total


def framed(response: Message, shape: Shape | None, version: int, correlation_id: int) -> Parts:
    if shape is not None and shape.answers:
        rows = getattr(response, shape.answers[0])
        if isinstance(rows, EncodedRows):
            return [*rows.framed(lambda: frame_response(response, version, correlation_id))]
    return [frame_response(response, version, correlation_id)]
