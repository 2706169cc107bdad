"""Least rules from what was used, and rules that nothing used."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from headrace.security.acl import AclRule, Operation, PatternType, ResourceType
from headrace.security.acl_advice import Access, suggest, unused, without_any_one
from headrace.security.acl_index import AclIndex
from tests.unit.security import naive_acls
from tests.unit.security.drawn_rules import HOSTS, PRINCIPALS, RULE_SETS, TYPES, topic_rule

ALICE, TOPIC = "User:alice", ResourceType.TOPIC
READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE
NAMES = ("a", "ab", "s.a", "s.b", "s.c", "s.t-a", "s.t-b", "*", "-")
USED_OPERATIONS = [operation for operation in Operation if operation > Operation.ALL]
USES = st.sets(
    st.builds(
        Access,
        st.sampled_from(PRINCIPALS),
        st.sampled_from(USED_OPERATIONS),
        st.sampled_from(TYPES),
        st.sampled_from(NAMES),
    ),
    max_size=15,
)


def allows(rules: list[AclRule], use: Access) -> bool:
    principal, operation, resource_type, name = use
    return AclIndex(rules).decide(principal, "10.0.0.1", operation, resource_type, name).allowed


def test_implied_operations_need_no_rule() -> None:
    uses = [Access(ALICE, operation, TOPIC, "a") for operation in (DESCRIBE, READ, DESCRIBE)]
    assert suggest(uses) == [topic_rule("a", READ)]
    assert suggest(uses[:1]) == [topic_rule("a", DESCRIBE)]


def test_names_are_merged_only_when_asked() -> None:
    uses = [Access(ALICE, READ, TOPIC, f"orders.{name}") for name in "abc"]
    assert suggest(uses) == [topic_rule(f"orders.{name}") for name in "abc"]
    assert suggest(uses, merge_from=3) == [topic_rule("orders.", prefixed=True)]
    assert suggest(uses, merge_from=4) == suggest(uses)


def test_only_names_used_for_the_same_are_merged() -> None:
    uses = [Access(ALICE, READ, TOPIC, "orders.a"), Access(ALICE, WRITE, TOPIC, "orders.b")]
    assert suggest(uses, merge_from=2) == suggest(uses)
    uses = [Access(ALICE, READ, TOPIC, "orders.a"), Access("User:bob", READ, TOPIC, "orders.b")]
    assert suggest(uses, merge_from=2) == suggest(uses)


def test_names_without_a_separator_are_not_merged() -> None:
    uses = [Access(ALICE, READ, TOPIC, name) for name in ("aa", "ab", "ac")]
    assert suggest(uses, merge_from=2) == suggest(uses)


def test_a_resource_named_star_gets_no_rule_for_everything() -> None:
    [rule] = suggest([Access(ALICE, READ, ResourceType.GROUP, "*")])
    assert rule.pattern == PatternType.PREFIXED


def test_a_write_to_any_one_topic_needs_no_rule_about_all_of_them() -> None:
    some, any_one = Access(ALICE, Operation.WRITE, TOPIC, "a"), Access(ALICE, Operation.WRITE, TOPIC, "*")
    assert without_any_one([any_one, some]) == [some]
    [least] = without_any_one([any_one, some._replace(principal="User:bob")])[:1]
    assert least == Access(ALICE, Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, "kafka-cluster")
    group = Access(ALICE, READ, ResourceType.GROUP, "*")
    assert without_any_one([group]) == [group]


@given(uses=USES, merge_from=st.sampled_from((None, 1, 2, 3)))
def test_suggestions_allow_what_was_used(uses: set[Access], merge_from: int | None) -> None:
    rules = suggest(uses, merge_from=merge_from)
    assert all(allows(rules, use) for use in uses)
    assert unused(rules, uses) == []


@given(uses=USES)
def test_suggestions_are_the_least(uses: set[Access]) -> None:
    """None can be left out, and nothing is allowed on names that were not used."""
    rules = suggest(uses)
    for rule in rules:
        rest = [other for other in rules if other != rule]
        assert not all(allows(rest, use) for use in uses)
    index = AclIndex(rules)
    used = {(use.principal, use.resource_type, use.name) for use in uses}
    for principal, host, resource_type, name in product(PRINCIPALS, HOSTS, TYPES, (*NAMES, "abc", "s.")):
        if (principal, resource_type, name) not in used:
            assert index.mask(principal, host, resource_type, name) == 0


@given(rules=RULE_SETS, uses=USES)
def test_unused_rules_match_no_use(rules: set[AclRule], uses: set[Access]) -> None:
    expected = {
        rule
        for rule in rules
        if rule.permission.name == "ALLOW"
        and not any(
            naive_acls.is_about(rule, use.resource_type, use.name)
            and naive_acls.is_for(rule, use.principal, rule.host, use.operation)
            for use in uses
        )
    }
    assert set(unused(rules, uses)) == expected
