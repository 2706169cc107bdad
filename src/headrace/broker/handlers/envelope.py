"""Envelope: a request that another broker took in, for the controller to serve. Between brokers only.

Version 0. The request and its answer travel as they are, headers included, so that forwarding knows no API.
Only what the controller has to decide is served: nothing else is ever forwarded, and one envelope in another
would cost a copy of the rest each time. What has no place in an answer of its own (a refusal, a fault) is
told as the envelope's error: the link is shared by all that is forwarded, so it stays open.
The request is served with the rights of the client's principal at the client's host, not with those of the
broker that forwards it: only brokers may send envelopes, and they are believed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.context import RequestContext
from headrace.broker.requests.errors import code_of
from headrace.core.errors import HeadraceError, InvalidRequest
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.headers import LENGTH_SIZE, RequestHeader, frame_response, read_request_header
from headrace.protocol.message import Message
from headrace.protocol.messages.envelope_request import EnvelopeRequest
from headrace.protocol.messages.envelope_response import EnvelopeResponse
from headrace.security.forwarded_principal import decode_principal
from headrace.security.hosts import decode_host
from headrace.security.principal import ANONYMOUS, Principal

CarryOut = Callable[[Api, bytes, int, Call], Awaitable[Message]]


async def serve(
    context: RequestContext,
    request: EnvelopeRequest,
    call: Call,
    apis: Mapping[int, Api],
    carry_out: CarryOut,
) -> EnvelopeResponse:
    if not context.controller.is_active:
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    try:
        frame = memoryview(request.request_data)
        header, at = read_request_header(frame)
        api = _forwarded(apis, header)
        principal, came_by_token, host = _client_of(context, request)
        rights = context.security.rights_of(principal, host)
        inner = Call(
            header.api_version, header.client_id, call.connection, principal, host, rights, came_by_token
        )
        response = await carry_out(api, request.request_data, at, inner)
        framed = frame_response(response, header.api_version, header.correlation_id)
        return EnvelopeResponse(response_data=framed[LENGTH_SIZE:])
    except HeadraceError as error:
        return EnvelopeResponse(error_code=code_of(error))
    except Exception as error:  # a mistake of ours: whoever asked is told, nobody else
        source = call.connection.peer_host
        context.runtime.peer_log.error("forwarded request failed", source, error=repr(error), exc_info=error)
        return EnvelopeResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)


def _client_of(context: RequestContext, request: EnvelopeRequest) -> tuple[Principal, bool, str]:
    try:
        host = decode_host(request.client_host_address)
    except ValueError:
        host = request.client_host_address.decode(errors="replace")
    if not request.request_principal and not context.security.has_authorizer:
        return (
            ANONYMOUS,
            False,
            host,
        )  # of an older broker, while a cluster is upgraded
    return *decode_principal(request.request_principal or b""), host


def _forwarded(apis: Mapping[int, Api], header: RequestHeader) -> Api:
    api = apis.get(header.api_key)
    if api is None or api.handle is None or not api.at_controller:
        raise InvalidRequest(f"API {header.api_key} is not forwarded")
    if not api.lowest <= header.api_version <= api.highest:
        raise InvalidRequest(f"{api.key.name} {header.api_version} is not served by the controller")
    return api


API: Final = Api(ApiKey.ENVELOPE, 0, 0, EnvelopeRequest, None, internal=True)
