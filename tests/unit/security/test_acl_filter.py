"""Which rules DescribeAcls and DeleteAcls mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.errors import InvalidRequest
from headrace.security.acl import AclRule, Operation, PatternType, Permission, ResourceType
from headrace.security.acl_filter import AclFilter, check_filter
from tests.unit.security import naive_acls
from tests.unit.security.drawn_rules import NAMES, RULES, topic_rule

RULES_OF_TOPICS = {
    "literal": topic_rule("orders"),
    "other": topic_rule("others"),
    "wild": topic_rule("*"),
    "prefix": topic_rule("ord", prefixed=True),
    "same prefix": topic_rule("orders", prefixed=True),
    "star prefix": topic_rule("*", prefixed=True),
}


def found(wanted: AclFilter) -> set[str]:
    return {key for key, rule in RULES_OF_TOPICS.items() if wanted.matches(rule)}


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        (PatternType.ANY, "orders", {"literal", "same prefix"}),
        (PatternType.ANY, "*", {"wild", "star prefix"}),
        (PatternType.LITERAL, "orders", {"literal"}),
        (PatternType.LITERAL, "*", {"wild"}),
        (PatternType.LITERAL, None, {"literal", "other", "wild"}),
        (PatternType.PREFIXED, "ord", {"prefix"}),
        (PatternType.PREFIXED, "orders", {"same prefix"}),
        (PatternType.PREFIXED, None, {"prefix", "same prefix", "star prefix"}),
        (PatternType.MATCH, "orders", {"literal", "wild", "prefix", "same prefix"}),
        (PatternType.MATCH, "order", {"wild", "prefix"}),
        (PatternType.MATCH, "*", {"wild", "star prefix"}),
        (PatternType.MATCH, None, set(RULES_OF_TOPICS)),
        (PatternType.ANY, None, set(RULES_OF_TOPICS)),
        (PatternType.ANY, "", set()),
        (PatternType.MATCH, "", {"wild"}),
        (PatternType.UNKNOWN, None, set()),
    ],
)
def test_patterns(pattern: PatternType, name: str | None, expected: set[str]) -> None:
    assert found(AclFilter(name=name, pattern=pattern)) == expected


RULE = topic_rule("a", Operation.READ, principal="User:alice", host="10.0.0.1")


@pytest.mark.parametrize(
    ("wanted", "matches"),
    [
        (AclFilter(), True),
        (AclFilter(resource_type=ResourceType.TOPIC), True),
        (AclFilter(resource_type=ResourceType.GROUP), False),
        (AclFilter(principal="User:alice"), True),
        (AclFilter(principal="User:*"), False),
        (AclFilter(principal=""), False),
        (AclFilter(host="10.0.0.1"), True),
        (AclFilter(host="*"), False),
        (AclFilter(operation=Operation.READ), True),
        (AclFilter(operation=Operation.ALL), False),
        (AclFilter(operation=Operation.DESCRIBE), False),
        (AclFilter(permission=Permission.ALLOW), True),
        (AclFilter(permission=Permission.DENY), False),
    ],
)
def test_entries_are_compared_and_imply_nothing(wanted: AclFilter, matches: bool) -> None:
    assert wanted.matches(RULE) is matches


@given(rule=RULES, name=st.sampled_from((*NAMES, "abcd")))
def test_match_finds_the_rules_that_an_authoriser_asks(rule: AclRule, name: str) -> None:
    wanted = AclFilter(rule.resource_type, name, PatternType.MATCH)
    assert wanted.matches(rule) == naive_acls.is_about(rule, rule.resource_type, name)


@given(rule=RULES)
def test_a_rule_s_own_words_find_it(rule: AclRule) -> None:
    assert AclFilter(*rule).matches(rule)


def test_unknown_codes_are_refused() -> None:
    check_filter(AclFilter())
    for wanted in (
        AclFilter(resource_type=ResourceType(99)),
        AclFilter(pattern=PatternType(0)),
        AclFilter(operation=Operation(99)),
        AclFilter(permission=Permission(0)),
    ):
        with pytest.raises(InvalidRequest):
            check_filter(wanted)
