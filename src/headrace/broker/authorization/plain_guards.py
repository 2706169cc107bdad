"""Guards that need one right for the whole request, or none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.broker.authorization.guard import ALLOWED, Guard, Verdict
from headrace.broker.requests.api import Call
from headrace.broker.requests.context import RequestContext
from headrace.core.errors import HeadraceError
from headrace.protocol.message import Message
from headrace.security.acl import CLUSTER_NAME, Operation, ResourceType
from headrace.security.rights import Rights

Refuse = Callable[[Any, Call], Message]
"""Makes the response that denies the request."""


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


def on_cluster(operation: Operation, refuse: Refuse, *, outlasts_shadow: bool = False) -> Guard:
    """What outlasts shadow mode, that mode does not open."""

    def guard(_context: RequestContext, rights: Rights, request: Any, call: Call) -> Verdict:
        decide = rights.enforces if outlasts_shadow else rights.allows
        if decide(operation, ResourceType.CLUSTER, CLUSTER_NAME):
            return ALLOWED
        return refuse(request, call)

    return guard


def on_group(operation: Operation, refuse: Refuse) -> Guard:
    """For a request about the one group in its `group_id`."""

    def guard(_context: RequestContext, rights: Rights, request: Any, call: Call) -> Verdict:
        if rights.allows(operation, ResourceType.GROUP, request.group_id):
            return ALLOWED
        return refuse(request, call)

    return guard


def on_transactional_id(operation: Operation, refuse: Refuse) -> Guard:
    """For a request about the one id in its `transactional_id`."""

    def guard(_context: RequestContext, rights: Rights, request: Any, call: Call) -> Verdict:
        if rights.allows(operation, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
            return ALLOWED
        return refuse(request, call)

    return guard
