"""DeleteAcls: remove the rules that filters match.

Versions 1-3. 2: flexible. 3: users as resources (KIP-373). The results are in the order of the filters. A
rule that several filters match is in the result of each. Up to 500 rules are removed together. Of more than
that, those that allow go first, so that nobody may do meanwhile what is forbidden both before and after.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import UUID

from headrace.broker.cluster.decision_timeouts import in_time
from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of, text_of
from headrace.broker.requests.slices import slices
from headrace.broker.security.acl_filters import filter_of, matching
from headrace.controller.machine import ControllerMachine
from headrace.controller.operations import Result
from headrace.core.errors import HeadraceError, InvalidRequest, RequestTimedOut
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.delete_acls_request import DeleteAclsRequest
from headrace.protocol.messages.delete_acls_response import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsResponse,
)
from headrace.security.acl import AclRule, Permission
from headrace.security.acl_filter import AclFilter, check_filter
from headrace.security.errors import SecurityDisabled

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

DELETED_AT_ONCE: Final = 500
MOST_MATCHES: Final = 100_000
"""In one answer, each mention of a rule counted."""

Matches = list[tuple[UUID, AclRule]] | HeadraceError
"""Of one filter: what it matches, or why it is refused."""


async def handle(context: RequestContext, request: DeleteAclsRequest, _call: Call) -> DeleteAclsResponse:
    try:
        context.security.require_authorizer()
    except SecurityDisabled as error:
        return DeleteAclsResponse(filter_results=[_refused(error)] * len(request.filters))
    matched = await _match(context, request)
    try:
        gone = await _delete(context, matched)
    except RequestTimedOut as error:
        return DeleteAclsResponse(filter_results=[_refused(error)] * len(request.filters))
    results: list[DeleteAclsFilterResult] = []
    for matches in matched:
        if isinstance(matches, HeadraceError):
            results.append(_refused(matches))
            continue
        result = DeleteAclsFilterResult(error_message=None)
        async for some in slices(context.runtime.turns, matches, DELETED_AT_ONCE):
            result.matching_acls += [_row(rule) for acl_id, rule in some if acl_id in gone]
        results.append(result)
    return DeleteAclsResponse(filter_results=results)


async def _match(context: RequestContext, request: DeleteAclsRequest) -> list[Matches]:
    """A rule never changes under its id, so what matches now still does when it is removed."""
    turns, acls = context.runtime.turns, context.metadata.image.acls
    known: dict[AclFilter, Matches] = {}
    matched: list[Matches] = []
    left = MOST_MATCHES
    for asked in request.filters:
        if matched and turns.is_over:
            await turns.next()
        wanted = filter_of(asked)
        matches = known.get(wanted)
        if matches is None:
            try:
                check_filter(wanted)
                matches = await matching(turns, wanted, acls.candidates(wanted))
            except InvalidRequest as error:
                matches = error
            known[wanted] = matches
        if not isinstance(matches, HeadraceError):
            left -= len(matches)
            if left < 0:
                matches = InvalidRequest("the filters match too many rules: ask in several requests")
        matched.append(matches)
    return matched


async def _delete(context: RequestContext, matched: Sequence[Matches]) -> set[UUID]:
    allowing: dict[UUID, None] = {}
    denying: dict[UUID, None] = {}
    for matches in matched:
        if not isinstance(matches, HeadraceError):
            async for found in slices(context.runtime.turns, matches, DELETED_AT_ONCE):
                for acl_id, rule in found:
                    (denying if rule.permission == Permission.DENY else allowing)[acl_id] = None
    gone: set[UUID] = set()
    async for some in slices(context.runtime.turns, [*allowing, *denying], DELETED_AT_ONCE):
        decision = context.controller.submit(partial(_decide, some))
        gone |= await in_time(context.runtime, context.peers.reachability, decision)
    return gone


def _decide(acl_ids: Sequence[UUID], machine: ControllerMachine) -> Result[frozenset[UUID]]:
    return machine.delete_acls(acl_ids)


def _refused(error: HeadraceError) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(error_code=code_of(error), error_message=text_of(error))


def _row(rule: AclRule) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=rule.resource_type,
        resource_name=rule.name,
        pattern_type=rule.pattern,
        principal=rule.principal,
        host=rule.host,
        operation=rule.operation,
        permission_type=rule.permission,
    )


API: Final = Api(ApiKey.DELETE_ACLS, 1, 3, DeleteAclsRequest, handle, at_controller=True)
