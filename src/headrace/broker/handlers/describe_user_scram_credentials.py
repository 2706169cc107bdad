"""DescribeUserScramCredentials: which users have which credentials, without any secret (KIP-554).

Version 0.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.slices import slices
from headrace.controller.scram_image import ScramTable
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
)
from headrace.protocol.messages.describe_user_scram_credentials_response import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

DESCRIBED_AT_ONCE: Final = 200


async def handle(
    context: RequestContext, request: DescribeUserScramCredentialsRequest, _call: Call
) -> DescribeUserScramCredentialsResponse:
    """No list and an empty one ask for every user."""
    scram = context.metadata.image.scram
    asked = Counter(user.name for user in request.users or ()) or dict.fromkeys(scram.users(), 1)
    results: list[DescribeUserScramCredentialsResult] = []
    async for users in slices(context.runtime.turns, list(asked.items()), DESCRIBED_AT_ONCE):
        results += [_described(scram, user, mentions) for user, mentions in users]
    return DescribeUserScramCredentialsResponse(error_message=None, results=results)


def _described(scram: ScramTable, user: str, mentions: int) -> DescribeUserScramCredentialsResult:
    if mentions > 1:
        return DescribeUserScramCredentialsResult(
            user=user, error_code=ErrorCode.DUPLICATE_RESOURCE, error_message="the user is listed twice"
        )
    credentials = scram.of(user)
    if not credentials:
        return DescribeUserScramCredentialsResult(
            user=user, error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message="the user has no credential"
        )
    return DescribeUserScramCredentialsResult(
        user=user,
        error_message=None,
        credential_infos=[
            CredentialInfo(mechanism=mechanism.wire_type, iterations=credential.iterations)
            for mechanism, credential in credentials.items()
        ],
    )


API: Final = Api(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0, DescribeUserScramCredentialsRequest, handle)
