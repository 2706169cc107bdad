"""Envelope: a request that another broker took in, for the controller to serve. Between brokers only.

Version 0. The request and its answer travel as they are, headers included, so that forwarding knows no API.
Not done: the client's principal, which comes with security.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from headrace.broker.api import Api, Call
from headrace.network.answer import NoAnswer, Parts, Pending
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.headers import LENGTH_SIZE
from headrace.protocol.messages.envelope_request import EnvelopeRequest
from headrace.protocol.messages.envelope_response import EnvelopeResponse

if TYPE_CHECKING:
    from headrace.broker.broker import Broker


async def handle(broker: Broker, request: EnvelopeRequest, call: Call) -> EnvelopeResponse:
    if not broker.controller.in_office:
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    answer = broker.dispatcher(call.connection, memoryview(bytearray(request.request_data)))
    if isinstance(answer, NoAnswer):
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    parts = await _completed(answer) if isinstance(answer, Pending) else answer
    frame = b"".join(_bytes(part) for part in parts)
    return EnvelopeResponse(response_data=frame[LENGTH_SIZE:])


async def _completed(pending: Pending) -> Parts:
    done = asyncio.Event()
    pending.attach(done.set)
    if pending.parts is None:
        await done.wait()
    assert pending.parts is not None, "a pending answer that is complete has its parts"
    return pending.parts


def _bytes(part: Any) -> bytes:
    assert isinstance(part, (bytes, bytearray, memoryview)), "only Fetch answers with files"
    return bytes(part)


API: Final = Api(ApiKey.ENVELOPE, 0, 0, EnvelopeRequest, handle, internal=True)
