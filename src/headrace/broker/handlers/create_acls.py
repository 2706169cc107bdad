"""CreateAcls: rules that allow or deny.

Versions 1-3. 2: flexible. 3: users as resources (KIP-373). The results are in the order of the request, one
for each mention. Up to 200 rules take effect together. Of more than that, those that deny take effect first,
so that nobody may do meanwhile what all of them together forbid.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from headrace.broker.cluster.decision_timeouts import each_in_time
from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of, text_of
from headrace.broker.requests.slices import slices
from headrace.controller.acls import refusal_of
from headrace.controller.machine import ControllerMachine
from headrace.controller.operations import Result
from headrace.controller.security_operations import CreatedAcl
from headrace.core.errors import HeadraceError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from headrace.protocol.messages.create_acls_response import AclCreationResult, CreateAclsResponse
from headrace.security.acl import AclRule, Operation, PatternType, Permission, ResourceType
from headrace.security.errors import SecurityDisabled

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

CREATED_AT_ONCE: Final = 200
Placed = tuple[int, AclRule]
"""A rule and its place in the request."""


async def handle(context: RequestContext, request: CreateAclsRequest, _call: Call) -> CreateAclsResponse:
    creations = request.creations
    try:
        context.security.require_authorizer()
    except SecurityDisabled as error:
        return CreateAclsResponse(results=[_result(error)] * len(creations))
    denying: list[Placed] = []
    allowing: list[Placed] = []
    async for places in slices(context.runtime.turns, range(len(creations)), CREATED_AT_ONCE):
        for place in places:
            rule = _rule(creations[place])
            refusal = refusal_of(rule)
            if refusal is not None:
                return CreateAclsResponse(results=[_result(refusal)] * len(creations))
            (denying if rule.permission == Permission.DENY else allowing).append((place, rule))
    results = [_result(None)] * len(creations)
    async for placed in slices(context.runtime.turns, denying + allowing, CREATED_AT_ONCE):
        for (place, _), outcome in zip(placed, await _create(context, placed), strict=True):
            if outcome.error is not None:
                results[place] = _result(outcome.error)
    return CreateAclsResponse(results=results)


async def _create(context: RequestContext, placed: Sequence[Placed]) -> list[CreatedAcl]:
    rules = [rule for _, rule in placed]
    return await each_in_time(
        context.runtime,
        context.peers.reachability,
        context.controller.submit(partial(_decide, rules)),
        lambda error: [CreatedAcl(rule, error) for rule in rules],
    )


def _decide(rules: Sequence[AclRule], machine: ControllerMachine) -> Result[list[CreatedAcl]]:
    return machine.create_acls(rules)


def _rule(creation: AclCreation) -> AclRule:
    return AclRule(
        ResourceType(creation.resource_type),
        creation.resource_name,
        PatternType(creation.resource_pattern_type),
        creation.principal,
        creation.host,
        Operation(creation.operation),
        Permission(creation.permission_type),
    )


def _result(error: HeadraceError | None) -> AclCreationResult:
    return AclCreationResult(error_code=code_of(error), error_message=text_of(error))


API: Final = Api(ApiKey.CREATE_ACLS, 1, 3, CreateAclsRequest, handle, at_controller=True)
