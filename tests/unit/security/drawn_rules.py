"""Rules and questions for Hypothesis, of so few words that they meet."""

from __future__ import annotations

from hypothesis import strategies as st

from headrace.security.acl import AclRule, Operation, PatternType, Permission, ResourceType

PRINCIPALS = ("User:alice", "User:bob", "Group:alice")
HOSTS = ("10.0.0.1", "0:0:0:0:0:0:0:1")
NAMES = ("a", "ab", "abc", "b", "ba", "*", "*a")
TYPES = (ResourceType.TOPIC, ResourceType.GROUP)
OPERATIONS = tuple(operation for operation in Operation if operation >= Operation.ALL)
FEW_OPERATIONS = (
    Operation.ALL,
    Operation.READ,
    Operation.WRITE,
    Operation.DESCRIBE,
    Operation.ALTER_CONFIGS,
    Operation.DESCRIBE_CONFIGS,
    Operation.TWO_PHASE_COMMIT,
)

RULES = st.builds(
    AclRule,
    st.sampled_from(TYPES),
    st.sampled_from(NAMES),
    st.sampled_from((PatternType.LITERAL, PatternType.PREFIXED)),
    st.sampled_from((*PRINCIPALS, "User:*")),
    st.sampled_from((*HOSTS, "*")),
    st.sampled_from(FEW_OPERATIONS),
    st.sampled_from((Permission.ALLOW, Permission.DENY)),
)
RULE_SETS = st.sets(RULES, max_size=12)


def topic_rule(
    name: str,
    operation: Operation = Operation.READ,
    *,
    principal: str = "User:alice",
    host: str = "*",
    prefixed: bool = False,
    deny: bool = False,
) -> AclRule:
    return AclRule(
        ResourceType.TOPIC,
        name,
        PatternType.PREFIXED if prefixed else PatternType.LITERAL,
        principal,
        host,
        operation,
        Permission.DENY if deny else Permission.ALLOW,
    )
