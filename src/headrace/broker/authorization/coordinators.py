"""FindCoordinator: DESCRIBE on the group or the transactional id.

A key of another type goes to the handler, which refuses it.
"""

from __future__ import annotations

from typing import Final

from headrace.broker.authorization.division import Entries, divide, without
from headrace.broker.authorization.guard import ALLOWED, Verdict
from headrace.broker.authorization.refusals import GROUP_DENIED, TEXTS, TRANSACTIONAL_ID_DENIED
from headrace.broker.handlers.find_coordinator import BATCHED, KeyType, not_found, of_one_key
from headrace.broker.requests.api import Call
from headrace.broker.requests.context import RequestContext
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from headrace.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from headrace.security.acl import Operation, ResourceType
from headrace.security.rights import Rights

_RESOURCES: Final[dict[int, tuple[ResourceType, ErrorCode]]] = {
    KeyType.GROUP: (ResourceType.GROUP, GROUP_DENIED),
    KeyType.TRANSACTION: (ResourceType.TRANSACTIONAL_ID, TRANSACTIONAL_ID_DENIED),
}


def _key(coordinator: Coordinator) -> str:
    return coordinator.key


def find_coordinator(
    context: RequestContext, rights: Rights, request: FindCoordinatorRequest, call: Call
) -> Verdict:
    resource = _RESOURCES.get(request.key_type)
    if resource is None:
        return ALLOWED
    resource_type, code = resource

    def refuse(key: str) -> Coordinator:
        return not_found(key, code)

    if call.version < BATCHED:
        if rights.allows(Operation.DESCRIBE, resource_type, request.key):
            return ALLOWED
        response = of_one_key(refuse(request.key))
        response.error_message = TEXTS[code]
        return response
    entries = Entries("coordinator_keys", str, FindCoordinatorResponse, "coordinators", refuse, _key)
    return divide(
        context,
        request.coordinator_keys,
        lambda key: rights.allows(Operation.DESCRIBE, resource_type, key),
        lambda allowed, denied: without(request, entries, allowed, denied),
    )
