"""The filters of DescribeAcls and DeleteAcls: which rules are meant."""

from __future__ import annotations

from typing import NamedTuple

from headrace.core.errors import InvalidRequest
from headrace.security.acl import AclRule, Operation, PatternType, Permission, ResourceType
from headrace.security.acl_rule_scope import covers_name


class AclFilter(NamedTuple):
    """ANY and None let everything pass. A principal `User:*` or a host `*` is compared like any other."""

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    def matches(self, rule: AclRule) -> bool:
        return (
            self.resource_type in (ResourceType.ANY, rule.resource_type)
            and self._matches_name(rule)
            and self.principal in (None, rule.principal)
            and self.host in (None, rule.host)
            and self.operation in (Operation.ANY, rule.operation)
            and self.permission in (Permission.ANY, rule.permission)
        )

    def _matches_name(self, rule: AclRule) -> bool:
        """MATCH asks which rules are about a resource of this name; the other patterns compare names."""
        if self.pattern not in (PatternType.ANY, PatternType.MATCH, rule.pattern):
            return False
        if self.name is None:
            return True
        return covers_name(rule, self.name) if self.pattern == PatternType.MATCH else self.name == rule.name


def check_filter(wanted: AclFilter) -> None:
    """Raises InvalidRequest for an unknown code: the filter would match nothing without saying why."""
    codes = (wanted.resource_type, wanted.pattern, wanted.operation, wanted.permission)
    if not all(codes):
        raise InvalidRequest("the filter has an unknown resource type, pattern type, operation or permission")
