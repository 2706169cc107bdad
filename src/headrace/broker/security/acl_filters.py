"""The filters of DescribeAcls and DeleteAcls as the wire has them."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from headrace.broker.requests.slices import slices
from headrace.broker.runtime.turns import Turns
from headrace.protocol.messages.delete_acls_request import DeleteAclsFilter
from headrace.protocol.messages.describe_acls_request import DescribeAclsRequest
from headrace.security.acl import AclRule, Operation, PatternType, Permission, ResourceType
from headrace.security.acl_filter import AclFilter

COMPARED_AT_ONCE = 200


def filter_of(asked: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        ResourceType(asked.resource_type_filter),
        asked.resource_name_filter,
        PatternType(asked.pattern_type_filter),
        asked.principal_filter,
        asked.host_filter,
        Operation(asked.operation),
        Permission(asked.permission_type),
    )


async def matching(
    turns: Turns, wanted: AclFilter, candidates: Sequence[tuple[UUID, AclRule]]
) -> list[tuple[UUID, AclRule]]:
    """Those of the candidates that the filter matches, found with pauses."""
    found: list[tuple[UUID, AclRule]] = []
    async for some in slices(turns, candidates, COMPARED_AT_ONCE):
        found += [each for each in some if wanted.matches(each[1])]
    return found
