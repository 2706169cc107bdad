"""Rules as people write and read them: words of the command line, rows of tables, JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, Final, NamedTuple, TypeVar

import click

from headrace.client.errors import ClientFailure
from headrace.core.errors import InvalidRequest
from headrace.security.acl import (
    CLUSTER_NAME,
    WILDCARD,
    AclRule,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    check_rule,
)

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
_OPERATIONS: Final = {"produce": Operation.WRITE, "consume": Operation.READ}


class ResourceName(NamedTuple):
    type: ResourceType
    name: str

    def __str__(self) -> str:
        if self.type == ResourceType.CLUSTER:
            return "cluster"
        return f"{self.type.name.lower().replace('_', '-')} {self.name}"


def principal_of(text: str) -> str:
    """alice is User:alice: no other type can log in."""
    return text if ":" in text or not text else f"User:{text}"


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
    """READ, read, describe-configs; produce and consume are the operations that they begin with."""
    known = _OPERATIONS.get(text.lower())
    if known is not None:
        return known
    return code_of(Operation, text, "operation", at_least=Operation.ALL)


def code_of(kind: type[C], text: str, what: str, *, at_least: int) -> C:
    """By name, in whichever case, with - or _, or as Kafka's tools write it: DescribeConfigs."""
    wanted = text.replace("-", "").replace("_", "").lower()
    for each in kind:
        if each >= at_least and each.name.replace("_", "").lower() == wanted:
            return each
    names = ", ".join(each.name for each in kind if each >= at_least)
    raise click.BadParameter(f"{text!r} is not {_article(what)} {what}; there are {names}")


def _article(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"


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


def document_of(rule: AclRule) -> dict[str, str]:
    return {
        "principal": rule.principal,
        "permission": rule.permission.name,
        "operation": rule.operation.name,
        "resource_type": rule.resource_type.name,
        "name": rule.name,
        "pattern": rule.pattern.name,
        "host": rule.host,
    }


def rule_of(document: Mapping[str, object], where: str) -> AclRule:
    """The reverse of `document_of`; permission, pattern and host may be left out. Raises ClientFailure."""
    texts = {name: value for name, value in document.items() if isinstance(value, str)}
    unknown = sorted(set(document) - set(_FIELDS))
    lacking = [name for name, default in _FIELDS.items() if default is None and name not in texts]
    if unknown or lacking or len(texts) < len(document):
        problem = f"{unknown[0]!r} is not a field of a rule" if unknown else "a field is not a text"
        if lacking and not unknown:
            problem = f"{lacking[0]!r} is missing"
        raise ClientFailure(f"{where}: {problem}", f"a rule has {', '.join(_FIELDS)}")
    values = {name: texts.get(name, default or "") for name, default in _FIELDS.items()}
    try:
        rule = AclRule(
            code_of(ResourceType, values["resource_type"], "resource type", at_least=ResourceType.TOPIC),
            values["name"],
            code_of(PatternType, values["pattern"], "pattern type", at_least=PatternType.LITERAL),
            principal_of(values["principal"]),
            values["host"],
            operation_of(values["operation"]),
            code_of(Permission, values["permission"], "permission", at_least=Permission.DENY),
        )
        check_rule(rule, operations=False)
    except click.BadParameter as error:
        raise ClientFailure(f"{where}: {error.message}") from None
    except InvalidRequest as error:
        raise ClientFailure(f"{where}: {error}") from None
    return rule


_FIELDS: Final[dict[str, str | None]] = {
    "principal": None,
    "operation": None,
    "resource_type": None,
    "name": None,
    "permission": "ALLOW",
    "pattern": "LITERAL",
    "host": WILDCARD,
}
