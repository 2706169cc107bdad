"""Rules as people write and read them: words of the command line, rows of tables, JSON."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final, NamedTuple, TypeVar

import click

from headrace.security import acl_document
from headrace.security.acl import (
    CLUSTER_NAME,
    AclRule,
    Operation,
    ResourceType,
)
from headrace.security.acl_document import NotARule, principal_of

C = TypeVar("C", bound=IntEnum)
F = TypeVar("F", bound=Callable[..., Any])

COLUMNS: Final = ("PRINCIPAL", "PERMISSION", "OPERATION", "RESOURCE", "PATTERN", "HOST")
_RESOURCES: Final = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "cluster": ResourceType.CLUSTER,
    "txn": ResourceType.TRANSACTIONAL_ID,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "token": ResourceType.DELEGATION_TOKEN,
    "delegation-token": ResourceType.DELEGATION_TOKEN,
    "user": ResourceType.USER,
}


class ResourceName(NamedTuple):
    type: ResourceType
    name: str

    def __str__(self) -> str:
        if self.type == ResourceType.CLUSTER:
            return "cluster"
        return f"{self.type.name.lower().replace('_', '-')} {self.name}"


def resource_of(text: str) -> ResourceName:
    """orders, topic:orders, TOPIC:orders, group:readers, txn:id, user:User:alice, cluster."""
    kind, colon, name = text.partition(":")
    resource_type = _RESOURCES.get(kind.lower().replace("_", "-"))
    if resource_type == ResourceType.CLUSTER and name in ("", CLUSTER_NAME):
        return ResourceName(resource_type, CLUSTER_NAME)
    if not colon:
        return ResourceName(ResourceType.TOPIC, text)
    if resource_type is None or not name:
        kinds = ", ".join(f"{each}:NAME" for each in ("topic", "group", "txn", "token", "user"))
        raise click.BadParameter(f"{text!r} is not a resource; write {kinds} or cluster")
    return ResourceName(resource_type, principal_of(name) if resource_type == ResourceType.USER else name)


def operation_of(text: str) -> Operation:
    """As `acl_document` has it, of a command line."""
    try:
        return acl_document.operation_of(text)
    except NotARule as error:
        raise click.BadParameter(str(error)) from None


def code_of(kind: type[C], text: str, what: str, *, at_least: int) -> C:
    """As `acl_document` has it, of a command line."""
    try:
        return acl_document.code_of(kind, text, what, at_least=at_least)
    except NotARule as error:
        raise click.BadParameter(str(error)) from None


def row_of(rule: AclRule) -> tuple[str, ...]:
    resource = str(ResourceName(rule.resource_type, rule.name))
    return (
        rule.principal,
        rule.permission.name,
        rule.operation.name,
        resource,
        rule.pattern.name,
        rule.host,
    )
