"""ACL rules, over the wire. A change returns when all brokers that answer know of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Final, NamedTuple

from headrace.client.agreement import until_all_know
from headrace.client.cluster import Cluster
from headrace.client.configs import Resource, ResourceType, describe_configs
from headrace.client.refusals import refusal
from headrace.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from headrace.protocol.messages.create_acls_response import CreateAclsResponse
from headrace.protocol.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from headrace.protocol.messages.delete_acls_response import DeleteAclsResponse
from headrace.protocol.messages.describe_acls_request import DescribeAclsRequest
from headrace.protocol.messages.describe_acls_response import DescribeAclsResponse
from headrace.security.acl import AclRule, Operation, PatternType, Permission
from headrace.security.acl import ResourceType as AclResourceType
from headrace.security.acl_filter import AclFilter
from headrace.security.principal import super_users

EVERY_RULE: Final = AclFilter()
_RULES_AT_ONCE: Final = 1000


class AuthorizerSettings(NamedTuple):
    """What decides beside the rules, as the file of one broker says. All files should say the same."""

    super_users: frozenset[str]
    allow_everyone_if_no_acl_found: bool
    is_shadow: bool = False
    """What the rules deny is counted, and done all the same."""


async def describe_acls(cluster: Cluster, wanted: AclFilter = EVERY_RULE) -> list[AclRule]:
    return sorted(await cluster.retried(lambda: _described(cluster, wanted)))


async def create_acls(cluster: Cluster, rules: Sequence[AclRule]) -> None:
    """Those that are there already stay as they are."""
    for at in range(0, len(rules), _RULES_AT_ONCE):
        some = rules[at : at + _RULES_AT_ONCE]
        await cluster.retried(partial(_create, cluster, some))
    await _until_known(cluster, present=rules)


async def delete_acls(cluster: Cluster, rules: Sequence[AclRule]) -> None:
    """These rules and no others."""
    for at in range(0, len(rules), _RULES_AT_ONCE):
        some = rules[at : at + _RULES_AT_ONCE]
        await cluster.retried(partial(_delete, cluster, some))
    await _until_known(cluster, absent=rules)


async def authorizer_settings(cluster: Cluster) -> AuthorizerSettings:
    """Of the broker that the client is connected to."""
    broker_id = min((await cluster.metadata([])).brokers, key=lambda node: node.node_id).node_id
    names = ("super.users", "allow.everyone.if.no.acl.found", "headrace.authorizer.mode")
    entries = await describe_configs(cluster, Resource(ResourceType.BROKER, str(broker_id)), names)
    values = {entry.name: entry.value or "" for entry in entries}
    return AuthorizerSettings(
        frozenset(str(each) for each in super_users(values.get("super.users", ""))),
        values.get("allow.everyone.if.no.acl.found", "").lower() == "true",
        values.get("headrace.authorizer.mode") == "shadow",
    )


async def _create(cluster: Cluster, rules: Sequence[AclRule]) -> None:
    request = CreateAclsRequest(
        creations=[
            AclCreation(
                resource_type=rule.resource_type,
                resource_name=rule.name,
                resource_pattern_type=rule.pattern,
                principal=rule.principal,
                host=rule.host,
                operation=rule.operation,
                permission_type=rule.permission,
            )
            for rule in rules
        ]
    )
    reply = await cluster.ask_controller(request, CreateAclsResponse)
    for rule, result in zip(rules, reply.results, strict=True):
        if result.error_code:
            raise refusal(result.error_code, f"rule {rule}", result.error_message)


async def _delete(cluster: Cluster, rules: Sequence[AclRule]) -> None:
    request = DeleteAclsRequest(
        filters=[
            DeleteAclsFilter(
                resource_type_filter=rule.resource_type,
                resource_name_filter=rule.name,
                pattern_type_filter=rule.pattern,
                principal_filter=rule.principal,
                host_filter=rule.host,
                operation=rule.operation,
                permission_type=rule.permission,
            )
            for rule in rules
        ]
    )
    reply = await cluster.ask_controller(request, DeleteAclsResponse)
    for rule, result in zip(rules, reply.filter_results, strict=True):
        for code, text in (
            (result.error_code, result.error_message),
            *((each.error_code, each.error_message) for each in result.matching_acls),
        ):
            if code:
                raise refusal(code, f"rule {rule}", text)


async def _described(cluster: Cluster, wanted: AclFilter, broker_id: int | None = None) -> list[AclRule]:
    """Without a broker, the controller is asked: it knows first."""
    request = DescribeAclsRequest(
        resource_type_filter=wanted.resource_type,
        resource_name_filter=wanted.name,
        pattern_type_filter=wanted.pattern,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission,
    )
    if broker_id is None:
        reply = await cluster.ask_controller(request, DescribeAclsResponse)
    else:
        reply = await cluster.ask_broker(broker_id, request, DescribeAclsResponse)
    if reply.error_code:
        raise refusal(reply.error_code, "rules", reply.error_message)
    return [
        AclRule(
            AclResourceType(resource.resource_type),
            resource.resource_name,
            PatternType(resource.pattern_type),
            each.principal,
            each.host,
            Operation(each.operation),
            Permission(each.permission_type),
        )
        for resource in reply.resources
        for each in resource.acls
    ]


async def _until_known(
    cluster: Cluster, *, present: Collection[AclRule] = (), absent: Collection[AclRule] = ()
) -> None:
    principals = {rule.principal for rule in (*present, *absent)}
    if not principals:
        return
    wanted = AclFilter(principal=principals.pop()) if len(principals) == 1 else EVERY_RULE

    async def knows(broker_id: int) -> bool:
        known = set(await _described(cluster, wanted, broker_id))
        return known.issuperset(present) and known.isdisjoint(absent)

    await until_all_know(cluster, knows)
