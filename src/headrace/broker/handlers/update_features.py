"""UpdateFeatures: raise or lower the levels that the whole cluster has agreed on (KIP-584).

Versions 0-2. 1: only to see, and how a level may be lowered (KIP-778). 2: no answer for each feature. All
of a request's updates are made or none (KIP-1022). Which can be made is in controller/feature_updates.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.cluster.decision_timeouts import in_time
from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of, text_of
from headrace.controller.feature_updates import FeatureUpdate
from headrace.controller.features import SUPPORTED
from headrace.core.errors import HeadraceError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.update_features_request import UpdateFeaturesRequest
from headrace.protocol.messages.update_features_response import UpdatableFeatureResult, UpdateFeaturesResponse

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

LAST_WITH_RESULTS: Final = 1


async def handle(
    context: RequestContext, request: UpdateFeaturesRequest, call: Call
) -> UpdateFeaturesResponse:
    # Each is another feature: of more than there are, one is refused, and with it all.
    updates = [
        FeatureUpdate(asked.feature, asked.max_version_level, asked.upgrade_type)
        for asked in request.feature_updates[: len(SUPPORTED) + 1]
    ]
    try:
        await in_time(
            context.runtime,
            context.peers.reachability,
            context.controller.submit(
                lambda machine: machine.update_features(updates), request.validate_only
            ),
        )
    except HeadraceError as error:
        return UpdateFeaturesResponse(error_code=code_of(error), error_message=text_of(error))
    response = UpdateFeaturesResponse(error_message=None)
    if call.version <= LAST_WITH_RESULTS:
        response.results = [
            UpdatableFeatureResult(feature=update.feature, error_message=None) for update in updates
        ]
    return response


API: Final = Api(ApiKey.UPDATE_FEATURES, 0, 2, UpdateFeaturesRequest, handle, at_controller=True)
