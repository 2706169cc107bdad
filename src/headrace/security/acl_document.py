"""Rules and grants in a file: fields by name, read and written."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, TypeVar, cast

from headrace.core.errors import InvalidRequest
from headrace.security.acl import (
    WILDCARD,
    AclRule,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    check_rule,
)
from headrace.security.acl_intent import intent

C = TypeVar("C", bound=IntEnum)

GRANT_FIELDS: Final = ("principal", "grant", "topic", "group", "transactional_id", "prefix", "host")
RULE_FIELDS: Final[dict[str, str | None]] = {
    "principal": None,
    "operation": None,
    "resource_type": None,
    "name": None,
    "permission": "ALLOW",
    "pattern": "LITERAL",
    "host": WILDCARD,
}
"""With the values of those that may be left out."""
_KINDS: Final = ("produce", "consume", "admin")
_OPERATIONS: Final = {"produce": Operation.WRITE, "consume": Operation.READ}


class NotARule(InvalidRequest):
    """`fields` are those that there are, if that is what was wrong."""

    def __init__(self, text: str, fields: str = "") -> None:
        super().__init__(text)
        self.fields = fields


def principal_of(text: str) -> str:
    """alice is User:alice: no other type can log in."""
    return text if ":" in text or not text else f"User:{text}"


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
    raise NotARule(f"{text!r} is not {'an' if what[0] in 'aeiou' else 'a'} {what}; there are {names}")


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


def rules_of_entry(entry: Mapping[str, object]) -> list[AclRule]:
    """Of one rule or one grant. Raises InvalidRequest."""
    return _granted(entry) if "grant" in entry else [rule_of_entry(entry)]


def rule_of_entry(document: Mapping[str, object]) -> AclRule:
    """The reverse of `document_of`; permission, pattern and host may be left out. Raises InvalidRequest."""
    texts = {name: value for name, value in document.items() if isinstance(value, str)}
    unknown = sorted(set(document) - set(RULE_FIELDS))
    lacking = [name for name, default in RULE_FIELDS.items() if default is None and name not in texts]
    if unknown or lacking or len(texts) < len(document):
        problem = f"{unknown[0]!r} is not a field of a rule" if unknown else "a field is not a text"
        if lacking and not unknown:
            problem = f"{lacking[0]!r} is missing"
        raise NotARule(problem, f"a rule has {', '.join(RULE_FIELDS)}")
    values = {name: texts.get(name, default or "") for name, default in RULE_FIELDS.items()}
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
    return rule


def _granted(entry: Mapping[str, object]) -> list[AclRule]:
    unknown = sorted(set(entry) - set(GRANT_FIELDS))
    if unknown:
        raise NotARule(f"{unknown[0]!r} is not a field of a grant", f"a grant has {', '.join(GRANT_FIELDS)}")
    prefix, kind = entry.get("prefix", False), entry["grant"]
    texts = {name: entry.get(name) for name in GRANT_FIELDS if name != "prefix"}
    if not isinstance(prefix, bool) or not all(
        each is None or isinstance(each, str) for each in texts.values()
    ):
        raise NotARule("prefix is true or false, and every other field is a text")
    if kind not in _KINDS or not texts["principal"]:
        raise NotARule(f"a grant needs a principal, and is one of {', '.join(_KINDS)}")
    named = cast("dict[str, str | None]", texts)
    return intent(
        kind,
        principal_of(named["principal"] or ""),
        topic=named["topic"],
        group=named["group"],
        transactional_id=named["transactional_id"],
        prefixed=prefix,
        host=named["host"] or WILDCARD,
    )
