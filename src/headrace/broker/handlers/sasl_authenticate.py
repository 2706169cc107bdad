"""SaslAuthenticate where it is not due: on a listener without SASL, or after the peer has authenticated.

A connection that has to authenticate is served by `security/authentication.py` instead.
"""

from __future__ import annotations

from typing import Final

from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.context import RequestContext
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from headrace.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse


def handle(
    _context: RequestContext, _request: SaslAuthenticateRequest, _call: Call
) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


API: Final = Api(ApiKey.SASL_AUTHENTICATE, 0, 2, SaslAuthenticateRequest, handle)
