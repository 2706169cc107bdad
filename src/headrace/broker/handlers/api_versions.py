"""ApiVersions: what this broker speaks.

Versions 0-4. 3: client software name and version, features (KIP-511, KIP-584). 4: features may begin at 0.
A version that we do not know is answered in version 0 with UNSUPPORTED_VERSION and our own range of this
API alone, so that the client can ask again; the dispatcher calls `unsupported` for that.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from headrace.broker.requests.api import Api, Call
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.api_versions_request import ApiVersionsRequest
from headrace.protocol.messages.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

LOWEST: Final = 0
HIGHEST: Final = 4
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(context: RequestContext, request: ApiVersionsRequest, call: Call) -> ApiVersionsResponse:
    if call.version >= 3 and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    response = ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=lowest, max_version=highest)
            for key, (lowest, highest) in sorted(context.served_versions.items())
        ]
    )
    if call.version >= 3:
        _add_features(context, response, call.version)
    return response


def _add_features(context: RequestContext, response: ApiVersionsResponse, version: int) -> None:
    for name, (lowest, highest) in context.runtime.supported_features.items():
        if lowest > 0 or version >= 4:
            response.supported_features.append(
                SupportedFeatureKey(name=name, min_version=lowest, max_version=highest)
            )
    response.finalized_features_epoch = context.metadata.offset
    for name, level in context.metadata.image.features.items():
        response.finalized_features.append(
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        )


def unsupported() -> ApiVersionsResponse:
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=[ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=LOWEST, max_version=HIGHEST)],
    )


API: Final = Api(ApiKey.API_VERSIONS, LOWEST, HIGHEST, ApiVersionsRequest, handle)
