"""DescribeAcls: the rules that a filter matches, by resource.

Versions 1-3. 2: flexible. 3: users as resources (KIP-373). An unknown code is answered INVALID_REQUEST,
as in DeleteAcls; Apache Kafka answers an empty list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of, text_of
from headrace.broker.requests.slices import slices
from headrace.broker.security.acl_filters import filter_of, matching
from headrace.core.errors import HeadraceError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.describe_acls_request import DescribeAclsRequest
from headrace.protocol.messages.describe_acls_response import (
    AclDescription,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from headrace.security.acl import AclRule
from headrace.security.acl_filter import check_filter

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

DESCRIBED_AT_ONCE: Final = 200


async def handle(context: RequestContext, request: DescribeAclsRequest, _call: Call) -> DescribeAclsResponse:
    wanted = filter_of(request)
    try:
        context.security.require_authorizer()
        check_filter(wanted)
    except HeadraceError as error:
        return DescribeAclsResponse(error_code=code_of(error), error_message=text_of(error))
    turns, candidates = context.runtime.turns, context.metadata.image.acls.candidates(wanted)
    resources: dict[tuple[int, str, int], DescribeAclsResource] = {}
    async for found in slices(turns, await matching(turns, wanted, candidates), DESCRIBED_AT_ONCE):
        for _, rule in found:
            resource = resources.get(rule[:3])
            if resource is None:
                resource = resources[rule[:3]] = DescribeAclsResource(
                    resource_type=rule.resource_type, resource_name=rule.name, pattern_type=rule.pattern
                )
            resource.acls.append(_described(rule))
    return DescribeAclsResponse(error_message=None, resources=list(resources.values()))


def _described(rule: AclRule) -> AclDescription:
    return AclDescription(
        principal=rule.principal,
        host=rule.host,
        operation=rule.operation,
        permission_type=rule.permission,
    )


API: Final = Api(ApiKey.DESCRIBE_ACLS, 1, 3, DescribeAclsRequest, handle)
