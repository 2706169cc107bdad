"""Guards that look at no field of the request."""

from __future__ import annotations

from typing import Any

from headrace.broker.authorization.guard import ALLOWED, Verdict
from headrace.broker.requests.api import Call
from headrace.broker.requests.context import RequestContext
from headrace.core.errors import HeadraceError
from headrace.security.acl import CLUSTER_NAME, Operation, ResourceType
from headrace.security.rights import Rights


class ClusterAuthorizationFailed(HeadraceError):
    """The principal may not do that with the cluster; the connection ends."""


def anybody(_context: RequestContext, _rights: Rights, _request: Any, _call: Call) -> Verdict:
    return ALLOWED


def brokers_only(_context: RequestContext, rights: Rights, _request: Any, _call: Call) -> Verdict:
    """What brokers say to each other. Nobody else has a reason to ask: the peer loses its connection."""
    if rights.allows(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        return ALLOWED
    raise ClusterAuthorizationFailed(
        "only brokers may ask for this: CLUSTER_ACTION on the cluster is missing"
    )
