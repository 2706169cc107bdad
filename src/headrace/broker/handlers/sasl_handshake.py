"""SaslHandshake where it is not due: on a listener without SASL, or after the peer has authenticated.

A connection that has to authenticate is served by `security/authentication.py` instead.
"""

from __future__ import annotations

from typing import Final

from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.context import RequestContext
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from headrace.protocol.messages.sasl_handshake_response import SaslHandshakeResponse


def handle(_context: RequestContext, _request: SaslHandshakeRequest, _call: Call) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


API: Final = Api(ApiKey.SASL_HANDSHAKE, 0, 1, SaslHandshakeRequest, handle)
