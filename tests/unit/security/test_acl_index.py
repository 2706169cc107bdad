"""The sentences of Kafka's authoriser, one by one, and how many probes a decision takes."""

from __future__ import annotations

import pytest

from headrace.security.acl import AclRule, Operation, ResourceType
from headrace.security.acl_index import AclIndex, Reason
from tests.unit.security.drawn_rules import topic_rule

HOST = "10.0.0.1"
TOPIC = ResourceType.TOPIC


def allowed(index: AclIndex, operation: Operation, name: str = "a", principal: str = "User:alice") -> bool:
    return index.decide(principal, HOST, operation, TOPIC, name).allowed


@pytest.mark.parametrize(
    "denial",
    [
        topic_rule("abc", deny=True),
        topic_rule("a", deny=True, prefixed=True),
        topic_rule("*", deny=True),
        topic_rule("abc", deny=True, principal="User:*"),
        topic_rule("abc", deny=True, host=HOST),
        topic_rule("abc", Operation.ALL, deny=True),
    ],
)
def test_any_denial_wins(denial: AclRule) -> None:
    allows = [
        topic_rule("abc", host=HOST),
        topic_rule("ab", Operation.ALL, prefixed=True),
        topic_rule("*", principal="User:*"),
    ]
    assert allowed(AclIndex(allows), Operation.READ, "abc")
    index = AclIndex([*allows, denial])
    mask = index.mask("User:alice", HOST, TOPIC, "abc")
    assert not mask >> Operation.READ & 1, "what requests are decided by"
    decision = index.decide("User:alice", HOST, Operation.READ, TOPIC, "abc")
    assert (decision.allowed, decision.rule, decision.reason) == (False, denial, Reason.RULE)


@pytest.mark.parametrize("operation", [Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER])
def test_allowing_implies_describe_and_denying_does_not(operation: Operation) -> None:
    assert allowed(AclIndex([topic_rule("a", operation)]), Operation.DESCRIBE)
    both = AclIndex([topic_rule("a", Operation.ALL), topic_rule("a", operation, deny=True)])
    assert not allowed(both, operation)
    assert allowed(both, Operation.DESCRIBE)


def test_alter_configs_implies_describe_configs_only() -> None:
    index = AclIndex([topic_rule("a", Operation.ALTER_CONFIGS)])
    assert allowed(index, Operation.DESCRIBE_CONFIGS)
    assert not allowed(index, Operation.DESCRIBE)


def test_denying_describe_leaves_read() -> None:
    index = AclIndex([topic_rule("a"), topic_rule("a", Operation.DESCRIBE, deny=True)])
    assert allowed(index, Operation.READ)
    assert not allowed(index, Operation.DESCRIBE)


def test_a_host_is_compared_as_text() -> None:
    for host in ("::1", "10.0.0.0/8", "localhost"):
        assert not allowed(AclIndex([topic_rule("a", host=host)]), Operation.READ)
    assert allowed(AclIndex([topic_rule("a", host=HOST)]), Operation.READ)


def test_a_prefix_star_is_no_wildcard() -> None:
    index = AclIndex([topic_rule("*", prefixed=True)])
    assert not allowed(index, Operation.READ)
    assert allowed(index, Operation.READ, "*a")


def test_everyone_is_also_who_is_no_user() -> None:
    index = AclIndex([topic_rule("a", principal="User:*")])
    assert allowed(index, Operation.READ, principal="Group:x")


def test_reasons_where_nothing_matches() -> None:
    index = AclIndex([topic_rule("a", principal="User:bob")])
    assert index.decide("User:alice", HOST, Operation.READ, TOPIC, "a") == (False, None, Reason.NONE_MATCHES)
    assert index.decide("User:alice", HOST, Operation.READ, TOPIC, "b") == (False, None, Reason.NO_RULE)


def test_the_default_is_for_resources_without_any_rule() -> None:
    index = AclIndex([topic_rule("a", principal="User:bob")], allow_everyone_if_no_acl_found=True)
    assert not allowed(index, Operation.READ, "a")
    assert index.decide("User:alice", HOST, Operation.READ, TOPIC, "b") == (True, None, Reason.NO_RULE)
    assert index.mask("User:alice", HOST, TOPIC, "a") == 0


def test_the_most_specific_rule_is_named() -> None:
    wild, short, long, literal = (
        topic_rule("*"),
        topic_rule("a", prefixed=True),
        topic_rule("abc", prefixed=True),
        topic_rule("abc"),
    )
    rules = [wild, short, long, literal]
    for expected in reversed(rules):
        index = AclIndex(rules)
        assert index.decide("User:alice", HOST, Operation.READ, TOPIC, "abc").rule == expected
        rules.remove(expected)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([], False),
        ([topic_rule("a", Operation.WRITE)], True),
        ([topic_rule("a", Operation.ALL)], True),
        ([topic_rule("a", Operation.READ)], False),
        ([topic_rule("a", Operation.WRITE, principal="User:bob")], False),
        ([topic_rule("a", Operation.WRITE), topic_rule("a", Operation.WRITE, deny=True)], False),
        (
            [topic_rule("ab", Operation.WRITE), topic_rule("a", Operation.WRITE, deny=True, prefixed=True)],
            False,
        ),
        ([topic_rule("a", Operation.WRITE), topic_rule("ab", Operation.WRITE, deny=True)], True),
        (
            [
                topic_rule("a", Operation.WRITE, prefixed=True),
                topic_rule("a", Operation.WRITE, deny=True),
            ],
            True,
        ),
        ([topic_rule("*", Operation.WRITE), topic_rule("a", Operation.ALL, deny=True, prefixed=True)], True),
        ([topic_rule("a", Operation.WRITE), topic_rule("*", Operation.ALL, deny=True)], False),
    ],
)
def test_some_resource_of_the_type(rules: list[AclRule], expected: bool) -> None:
    assert AclIndex(rules).allows_by_type("User:alice", HOST, Operation.WRITE, TOPIC) is expected


class CountingDict(dict[str, object]):
    probes = 0

    def get(self, key: str, default: object = None) -> object:
        self.probes += 1
        return super().get(key, default)


def test_probes_grow_with_the_lengths_of_prefixes_and_not_with_rules() -> None:
    index = AclIndex()
    for number in range(10_000):
        index.add(topic_rule(f"team{number:04}." + "x" * (number % 20), prefixed=number % 2 == 0))
    table = index._tables["User:alice", TOPIC]
    assert len(table.lengths) == 10
    table.prefixed = prefixed = CountingDict(table.prefixed)  # type: ignore[assignment]  # counts
    table.literal = literal = CountingDict(table.literal)  # type: ignore[assignment]  # counts
    assert allowed(index, Operation.READ, "team0004.xxxxxxxx")
    index.mask("User:alice", HOST, TOPIC, "team0004.xxxx")
    assert prefixed.probes == 5 + 3
    assert literal.probes == 2
    index.mask("User:alice", HOST, TOPIC, "short")
    assert prefixed.probes == 8, "no prefix is as short as that"
