"""Explanations are true, and their cures work and are no larger than needed."""

from __future__ import annotations

from itertools import chain, combinations

from hypothesis import given
from hypothesis import strategies as st

from headrace.security.acl import AclRule, Operation, PatternType, ResourceType, check_rule
from headrace.security.acl_advice import Cure, Explanation, explain
from headrace.security.acl_index import AclIndex, Reason
from tests.unit.security.drawn_rules import (
    FEW_OPERATIONS,
    HOSTS,
    NAMES,
    PRINCIPALS,
    RULE_SETS,
    TYPES,
    topic_rule,
)

ALICE, HOST, TOPIC, READ = "User:alice", "10.0.0.1", ResourceType.TOPIC, Operation.READ


def why(*rules: AclRule, allow_everyone: bool = False, super_users: tuple[str, ...] = ()) -> Explanation:
    index = AclIndex(rules, allow_everyone_if_no_acl_found=allow_everyone)
    return explain(index, super_users, ALICE, HOST, READ, TOPIC, "abc")


def test_a_super_user_needs_no_rule() -> None:
    found = why(topic_rule("abc", deny=True), super_users=(ALICE,))
    assert found.verdict == (True, None, Reason.SUPER_USER)
    assert found.cure is None


def test_the_allowing_rule_is_named() -> None:
    rule = topic_rule("ab", prefixed=True)
    assert why(rule) == Explanation(verdict=why(rule).verdict, cure=None)
    assert why(rule).verdict == (True, rule, Reason.RULE)


def test_what_no_rule_allows_needs_one_for_this_name_and_operation() -> None:
    assert why().verdict == (False, None, Reason.NO_RULE)
    assert why().cure == Cure((), (topic_rule("abc"),))
    other = why(topic_rule("abc", principal="User:bob"))
    assert other.verdict == (False, None, Reason.NONE_MATCHES)
    assert other.cure == Cure((), (topic_rule("abc"),))


def test_a_denial_is_removed_and_nothing_added_where_an_allow_remains() -> None:
    denial = topic_rule("a", Operation.ALL, prefixed=True, deny=True, principal="User:*")
    assert why(denial, topic_rule("abc")).cure == Cure((denial,), ())
    assert why(denial).cure == Cure((denial,), (topic_rule("abc"),))
    assert why(denial, allow_everyone=True).cure == Cure((denial,), ())


def test_every_denial_has_to_go() -> None:
    denials = (topic_rule("*", deny=True), topic_rule("abc", deny=True))
    cure = why(*denials, topic_rule("abc")).cure
    assert cure is not None
    assert set(cure.remove) == set(denials)


def test_a_resource_named_star_gets_no_rule_for_everything() -> None:
    found = explain(AclIndex(), (), ALICE, HOST, READ, ResourceType.GROUP, "*")
    assert found.cure is not None
    assert [rule.pattern for rule in found.cure.add] == [PatternType.PREFIXED]


@given(
    rules=RULE_SETS,
    allow_everyone=st.booleans(),
    principal=st.sampled_from(PRINCIPALS),
    host=st.sampled_from(HOSTS),
    operation=st.sampled_from(FEW_OPERATIONS),
    resource_type=st.sampled_from(TYPES),
    name=st.sampled_from(NAMES),
)
def test_a_cure_helps_and_no_smaller_one_does(
    rules: set[AclRule],
    allow_everyone: bool,
    principal: str,
    host: str,
    operation: Operation,
    resource_type: ResourceType,
    name: str,
) -> None:
    def allowed(kept: set[AclRule]) -> bool:
        index = AclIndex(kept, allow_everyone_if_no_acl_found=allow_everyone)
        return index.decide(principal, host, operation, resource_type, name).allowed

    index = AclIndex(rules, allow_everyone_if_no_acl_found=allow_everyone)
    found = explain(index, (), principal, host, operation, resource_type, name)
    assert found.verdict.allowed == allowed(rules)
    assert (found.cure is None) == found.verdict.allowed
    if found.cure is None:
        return
    remove, add = found.cure
    assert set(remove) <= rules
    assert allowed((rules - set(remove)) | set(add))
    for rule in add:
        check_rule(rule, operations=False)
    changes = [*((rule, False) for rule in remove), *((rule, True) for rule in add)]
    for some in chain.from_iterable(combinations(changes, size) for size in range(len(changes))):
        without = {rule for rule, adds in some if not adds}
        assert not allowed((rules - without) | {rule for rule, adds in some if adds})


def test_who_may_create_on_the_cluster_may_create_every_topic() -> None:
    """Brokers ask for either, so a denial for one topic is none."""
    of_all = topic_rule("kafka-cluster", Operation.CREATE)._replace(resource_type=ResourceType.CLUSTER)
    denial = topic_rule("abc", Operation.CREATE, deny=True)
    for rules in ((of_all,), (of_all, denial)):
        found = explain(AclIndex(rules), (), ALICE, HOST, Operation.CREATE, TOPIC, "abc")
        assert found.verdict == (True, of_all, Reason.RULE)
        assert found.cure is None
    alone = explain(AclIndex([denial]), (), ALICE, HOST, Operation.CREATE, TOPIC, "abc")
    assert alone.verdict == (False, denial, Reason.RULE)


def test_who_may_write_some_topic_may_write_idempotently() -> None:
    wanted = (Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, "kafka-cluster")
    index = AclIndex([topic_rule("abc", Operation.WRITE)])
    assert explain(index, (), ALICE, HOST, *wanted).verdict == (True, None, Reason.WRITES_SOME_TOPIC)
    assert not explain(AclIndex([topic_rule("abc")]), (), ALICE, HOST, *wanted).verdict.allowed
