"""What to type to add or to remove a rule."""

from __future__ import annotations

from typing import Final

from headrace.client.shell_words import word
from headrace.security.acl import WILDCARD, AclRule, PatternType, Permission, ResourceType

OPTIONS: Final = {
    ResourceType.TOPIC: "--topic",
    ResourceType.GROUP: "--group",
    ResourceType.TRANSACTIONAL_ID: "--transactional-id",
    ResourceType.DELEGATION_TOKEN: "--delegation-token",
    ResourceType.USER: "--user-principal",
}


def command_of(verb: str, rule: AclRule) -> str:
    """What to type to add or to remove this rule."""
    kind = "allow" if rule.permission == Permission.ALLOW else "deny"
    words = ["headrace", "acl", verb, f"--{kind}-principal", rule.principal]
    if rule.host != WILDCARD:
        words += [f"--{kind}-host", rule.host]
    words += ["--operation", rule.operation.name.lower().replace("_", "-")]
    words += (
        ["--cluster"]
        if rule.resource_type == ResourceType.CLUSTER
        else [OPTIONS[rule.resource_type], rule.name]
    )
    if rule.pattern == PatternType.PREFIXED:
        words += ["--resource-pattern-type", "prefixed"]
    return " ".join(map(word, words))
