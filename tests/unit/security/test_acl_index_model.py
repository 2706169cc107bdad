"""Random histories of rules: after each step the index decides as a loop over the rules does."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headrace.security.acl import AclRule, Operation, PatternType, Permission, ResourceType
from headrace.security.acl_index import AclIndex
from headrace.security.acl_rule_scope import ALL_OPERATIONS
from tests.unit.security import naive_acls
from tests.unit.security.drawn_rules import HOSTS, NAMES, OPERATIONS, PRINCIPALS, RULE_SETS, RULES, TYPES

CLIENTS = st.tuples(st.sampled_from(PRINCIPALS), st.sampled_from(HOSTS))
RESOURCES = st.tuples(st.sampled_from(TYPES), st.sampled_from((*NAMES, "c", "abcd", "**")))


class IndexModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.index = AclIndex()
        self.kept: set[AclRule] = set()

    @initialize(allow_everyone=st.booleans(), rules=RULE_SETS)
    def build(self, allow_everyone: bool, rules: set[AclRule]) -> None:
        self.index = AclIndex(rules, allow_everyone_if_no_acl_found=allow_everyone)
        self.kept = set(rules)

    @rule(drawn=RULES)
    def add(self, drawn: AclRule) -> None:
        self.index.add(drawn)
        self.kept.add(drawn)

    @rule(drawn=RULES)
    def remove_what_may_be_absent(self, drawn: AclRule) -> None:
        self.index.remove(drawn)
        self.kept.discard(drawn)

    @precondition(lambda self: self.kept)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        drawn = data.draw(st.sampled_from(sorted(self.kept)))
        self.index.remove(drawn)
        self.kept.remove(drawn)

    @rule(client=CLIENTS, resource=RESOURCES)
    def ask(self, client: tuple[str, str], resource: tuple[ResourceType, str]) -> None:
        everyone = self.index.allow_everyone_if_no_acl_found
        mask = self.index.mask(*client, *resource)
        assert mask & ~ALL_OPERATIONS == 0
        for operation in OPERATIONS:
            expected = naive_acls.allows(self.kept, everyone, *client, operation, *resource)
            decision = self.index.decide(*client, operation, *resource)
            assert bool(mask >> operation & 1) == decision.allowed == expected
            if decision.rule is not None:
                assert decision.rule in self.kept
                assert naive_acls.is_about(decision.rule, *resource)
                assert naive_acls.is_for(decision.rule, *client, operation)

    @rule(client=CLIENTS, resource_type=st.sampled_from(TYPES))
    def ask_by_type(self, client: tuple[str, str], resource_type: ResourceType) -> None:
        everyone = self.index.allow_everyone_if_no_acl_found
        for operation in OPERATIONS:
            expected = naive_acls.allows_by_type(self.kept, everyone, *client, operation, resource_type)
            assert self.index.allows_by_type(*client, operation, resource_type) == expected

    @invariant()
    def holds_the_rules(self) -> None:
        assert set(self.index) == self.kept
        assert len(self.index) == len(self.kept)


TestIndexModel = IndexModel.TestCase
TestIndexModel.settings = settings(max_examples=150, stateful_step_count=25, deadline=None)


@given(rules=RULE_SETS, extra=RULES, allow_everyone=st.booleans())
def test_a_rule_that_came_and_went_leaves_every_decision(
    rules: set[AclRule], extra: AclRule, allow_everyone: bool
) -> None:
    """CVE-2024-27309."""
    rules.discard(extra)
    untouched = AclIndex(rules, allow_everyone_if_no_acl_found=allow_everyone)
    index = AclIndex(rules, allow_everyone_if_no_acl_found=allow_everyone)
    index.add(extra)
    index.remove(extra)
    for question in product(PRINCIPALS, HOSTS, TYPES, (*NAMES, "c")):
        assert index.mask(*question) == untouched.mask(*question)


@pytest.mark.parametrize("permission", [Permission.ALLOW, Permission.DENY])
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
def test_of_two_rules_about_the_same_the_other_stays(operation: Operation, permission: Permission) -> None:
    """CVE-2024-27309, for rules that differ in nothing but what they say: drawn ones seldom meet."""

    def rule_of(operation: Operation, permission: Permission) -> AclRule:
        return AclRule(ResourceType.TOPIC, "a", PatternType.LITERAL, "User:alice", "*", operation, permission)

    stays = rule_of(operation, permission)
    question = ("User:alice", "10.0.0.1", ResourceType.TOPIC, "a")
    for gone in (rule_of(*each) for each in product(OPERATIONS, (Permission.ALLOW, Permission.DENY))):
        if gone != stays:
            index = AclIndex([stays, gone])
            index.remove(gone)
            assert index.mask(*question) == AclIndex([stays]).mask(*question), gone


@given(rules=st.sets(RULES, min_size=1, max_size=12), data=st.data())
def test_removing_everything_in_any_order_leaves_nothing_behind(
    rules: set[AclRule], data: st.DataObject
) -> None:
    index = AclIndex(rules)
    for each in data.draw(st.permutations(sorted(rules))):
        index.remove(each)
    assert index._tables == {}
    assert all(not table and table.lengths == [] for table in index._all.values())
