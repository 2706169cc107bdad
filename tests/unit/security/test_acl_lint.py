"""Each finding, its absence beside it, and that what is called idle is idle."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.security.acl import AclRule, Operation, ResourceType
from headrace.security.acl_advice import Finding, Problem, lint
from headrace.security.acl_index import AclIndex
from tests.unit.security.drawn_rules import HOSTS, NAMES, OPERATIONS, PRINCIPALS, RULE_SETS, TYPES, topic_rule


def problems(*rules: AclRule) -> list[tuple[Problem, AclRule]]:
    return [(finding.problem, finding.rule) for finding in lint(rules)]


def only(*rules: AclRule) -> Finding:
    [finding] = lint(rules)
    return finding


@pytest.mark.parametrize(
    ("host", "cure"),
    [
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:DB8::7", "2001:db8:0:0:0:0:0:7"),
        ("0:0:0:0:0:0:0:01", "0:0:0:0:0:0:0:1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("10.0.0.0/8", "names and networks"),
        ("kafka.example", "names and networks"),
        ("10.0.0.01", "names and networks"),
        ("", "names and networks"),
    ],
)
def test_hosts_that_match_no_client(host: str, cure: str) -> None:
    finding = only(topic_rule("a", host=host))
    assert finding.problem == Problem.DEAD_HOST
    assert cure in finding.text


@pytest.mark.parametrize("host", ["*", "10.0.0.1", "0:0:0:0:0:0:0:1", "2001:db8:0:0:0:0:0:7"])
def test_hosts_that_match(host: str) -> None:
    assert lint([topic_rule("a", host=host)]) == []


def test_a_principal_without_type() -> None:
    finding = only(topic_rule("a", principal="alice"))
    assert finding.problem == Problem.UNTYPED_PRINCIPAL
    assert "User:alice" in finding.text


def test_open_to_everyone() -> None:
    everything = topic_rule("*", principal="User:*")
    assert problems(everything) == [(Problem.OPEN_TO_EVERYONE, everything)]
    assert problems(topic_rule("*", principal="User:*", deny=True)) == []
    assert problems(topic_rule("*", principal="User:*", prefixed=True)) == []
    assert problems(topic_rule("a", principal="User:*"), topic_rule("*")) == []


def test_shadowed_by_a_denial() -> None:
    rule, denial = topic_rule("abc"), topic_rule("a", Operation.ALL, prefixed=True, deny=True)
    finding = only(rule, denial)
    assert finding == (Problem.SHADOWED, rule, denial, f"denied by: {denial}")


def test_what_a_shadowed_rule_still_allows_is_said() -> None:
    finding = only(topic_rule("a"), topic_rule("a", deny=True))
    assert finding.problem == Problem.SHADOWED
    assert finding.text.endswith("it still allows DESCRIBE")


@pytest.mark.parametrize(
    "denial",
    [
        topic_rule("abc", Operation.WRITE, deny=True),
        topic_rule("abcd", Operation.ALL, deny=True),
        topic_rule("ab", Operation.ALL, deny=True),
        topic_rule("abc", Operation.ALL, deny=True, host="10.0.0.1"),
        topic_rule("abc", Operation.ALL, deny=True, principal="User:bob"),
    ],
)
def test_not_shadowed(denial: AclRule) -> None:
    assert problems(topic_rule("abc"), denial) == []
    assert problems(topic_rule("abc", prefixed=True), topic_rule("abc", deny=True)) == []


@pytest.mark.parametrize(
    "wider",
    [
        topic_rule("abc", Operation.ALL),
        topic_rule("abc", principal="User:*"),
        topic_rule("abc", prefixed=True),
        topic_rule("a", prefixed=True),
        topic_rule("*"),
    ],
)
def test_covered(wider: AclRule) -> None:
    rule = topic_rule("abc", host="10.0.0.1")
    finding = only(rule, wider)
    assert finding[:3] == (Problem.COVERED, rule, wider)


def test_describe_is_covered_by_read_only_where_both_allow() -> None:
    describe, read = topic_rule("a", Operation.DESCRIBE), topic_rule("a")
    assert problems(describe, read) == [(Problem.COVERED, describe)]
    assert problems(topic_rule("a", Operation.DESCRIBE, deny=True), topic_rule("a", deny=True)) == []


def test_a_rule_given_twice_does_not_cover_itself() -> None:
    assert problems(topic_rule("a"), topic_rule("a")) == []


def masks(rules: set[AclRule], allow_everyone: bool) -> list[int]:
    index = AclIndex(rules, allow_everyone_if_no_acl_found=allow_everyone)
    return [index.mask(*each) for each in product(PRINCIPALS, HOSTS, TYPES, (*NAMES, "c", "abcd"))] + [
        index.allows_by_type(principal, host, operation, resource_type)
        for principal, host, operation, resource_type in product(PRINCIPALS, HOSTS, OPERATIONS, TYPES)
    ]


@given(rules=RULE_SETS, allow_everyone=st.booleans())
def test_covered_and_wholly_shadowed_rules_change_no_decision(
    rules: set[AclRule], allow_everyone: bool
) -> None:
    idle = {
        finding.rule
        for finding in lint(rules)
        if finding.problem == Problem.COVERED
        or (finding.problem == Problem.SHADOWED and "still allows" not in finding.text)
    }
    assert masks(rules - idle, allow_everyone) == masks(rules, allow_everyone)


@given(rules=RULE_SETS)
def test_a_rule_that_one_other_makes_idle_is_found(rules: set[AclRule]) -> None:
    """By trying every pair, on resources that tell all patterns of the drawn names apart."""
    found = {finding.rule for finding in lint(rules) if finding.problem == Problem.COVERED}
    for rule, other in product(rules, rules):
        if rule != other and rule.permission == other.permission and _adds_nothing(rule, other):
            assert rule in found


def _adds_nothing(rule: AclRule, other: AclRule) -> bool:
    """A DENY is seen against an ALLOW of everything."""
    everything = {
        topic_rule("*", Operation.ALL, principal="User:*")._replace(resource_type=resource_type)
        for resource_type in TYPES
    }
    beside = everything if rule.permission.name == "DENY" else set()
    one, both = (AclIndex({*beside, *kept}) for kept in ({other}, {rule, other}))
    people, places = (*PRINCIPALS, "User:nobody"), (*HOSTS, "10.9.9.9")
    names = (*(name for name in NAMES if name != "*"), *(f"{name}~" for name in NAMES), "~")
    return all(one.mask(*each) == both.mask(*each) for each in product(people, places, TYPES, names))


@pytest.mark.parametrize("principal", ["user:fz", "Group:ops"])
def test_principals_of_a_type_that_no_client_has(principal: str) -> None:
    finding = only(topic_rule("a", principal=principal, deny=True))
    assert finding.problem == Problem.DEAD_PRINCIPAL
    assert f"write User:{principal.partition(':')[2]}" in finding.text


def test_a_star_that_stands_for_itself() -> None:
    assert only(topic_rule("a", principal="User:m*")).problem == Problem.NOT_A_WILDCARD
    found = only(topic_rule("mtop*", deny=True))
    assert found.problem == Problem.NOT_A_WILDCARD
    assert "write mtop as a prefix" in found.text
    assert problems(topic_rule("mtop*", prefixed=True))[0][0] == Problem.NOT_A_WILDCARD
    assert lint([topic_rule("*")]) == []


def test_no_rule_concerns_a_super_user() -> None:
    rule = topic_rule("a", deny=True)
    assert [found.problem for found in lint([rule], (rule.principal,))] == [Problem.SUPER_USER]
    assert lint([rule], ("User:another",)) == []


@pytest.mark.parametrize("operation", [Operation.CREATE, Operation.ALL])
def test_a_denial_of_one_topic_is_none_beside_create_on_the_cluster(operation: Operation) -> None:
    denial = topic_rule("a", Operation.CREATE, deny=True)
    of_all = topic_rule("kafka-cluster", operation)._replace(resource_type=ResourceType.CLUSTER)
    (found,) = lint([denial, of_all])
    assert (found.problem, found.rule, found.other) == (Problem.OUTVOTED, denial, of_all)
    assert lint([denial, of_all._replace(operation=Operation.DESCRIBE)]) == []
    assert lint([denial._replace(operation=Operation.READ), of_all]) == []
