"""Rights to read mirrored topics: given on the target as on the source. Pure.

A rule for many topics becomes one for each mirrored topic that it is about: on the target the same pattern
could be about topics of others. What the mirror has given is remembered in the topic of translations, so that
it takes away nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from headrace.protocol.records import NewRecord
from headrace.security.acl import WILDCARD, AclRule, Operation, PatternType, Permission, ResourceType
from headrace.spark.mirror.problems import MirrorRefused

KEY: Final = b'["acls"]'
_READING: Final = (Operation.READ, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS)


class Change(NamedTuple):
    create: list[AclRule]
    delete: list[AclRule]
    given: frozenset[AclRule]
    """What is the mirror's own afterwards."""


def wanted(rules: Iterable[AclRule], targets: Mapping[str, str]) -> set[AclRule]:
    """On the target; `targets` has the target's topic for each of the source's."""
    found = set()
    for rule in rules:
        if rule.resource_type is not ResourceType.TOPIC:
            continue
        operations = _READING if rule.operation is Operation.ALL else (rule.operation,)
        for topic, target in targets.items():
            if _is_about(rule, topic):
                found |= {
                    rule._replace(name=target, pattern=PatternType.LITERAL, operation=operation)
                    for operation in operations
                    if operation in _READING
                }
    return found


def _is_about(rule: AclRule, topic: str) -> bool:
    if rule.pattern is PatternType.PREFIXED:
        return topic.startswith(rule.name)
    return rule.pattern is PatternType.LITERAL and rule.name in (topic, WILDCARD)


def change(wanted: set[AclRule], there: Iterable[AclRule], given: frozenset[AclRule]) -> Change:
    """A rule that somebody else has given already is not the mirror's, and stays."""
    present = frozenset(there)
    create = wanted - present
    return Change(
        sorted(create), sorted((given - wanted) & present), frozenset((given & wanted & present) | create)
    )


def record_of(given: Iterable[AclRule], now_ms: int) -> NewRecord:
    rows = [[int(part) if isinstance(part, int) else part for part in rule] for rule in sorted(given)]
    return NewRecord(json.dumps(rows, separators=(",", ":")).encode(), KEY, now_ms)


def given_of(value: bytes | None) -> frozenset[AclRule]:
    try:
        return frozenset(
            AclRule(
                ResourceType(kind),
                name,
                PatternType(pattern),
                principal,
                host,
                Operation(operation),
                Permission(permission),
            )
            for kind, name, pattern, principal, host, operation, permission in json.loads(value or b"[]")
        )
    except (ValueError, TypeError) as error:
        raise MirrorRefused(
            f"the topic of translations holds rights that cannot be read: {error!r}; use the Headrace that "
            "wrote them, or a newer one"
        ) from None
