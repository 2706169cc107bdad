"""The words of ACLs, and which rules cannot be created."""

from __future__ import annotations

import pytest

from headrace.broker.requests import allowed_operations
from headrace.security.acl import (
    AclRule,
    InvalidAcl,
    InvalidAclRequest,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    check_rule,
    operations_of,
)
from tests.unit.security.drawn_rules import topic_rule


def test_codes_are_kafkas() -> None:
    assert [each.name for each in Operation][3:] == [
        "READ",
        "WRITE",
        "CREATE",
        "DELETE",
        "ALTER",
        "DESCRIBE",
        "CLUSTER_ACTION",
        "DESCRIBE_CONFIGS",
        "ALTER_CONFIGS",
        "IDEMPOTENT_WRITE",
        "CREATE_TOKENS",
        "DESCRIBE_TOKENS",
        "TWO_PHASE_COMMIT",
    ]
    assert [int(each) for each in Operation] == list(range(16))
    assert (PatternType.LITERAL, PatternType.PREFIXED) == (3, 4)
    assert (Permission.DENY, Permission.ALLOW) == (2, 3)
    assert (ResourceType.TOPIC, ResourceType.CLUSTER, ResourceType.USER) == (2, 4, 7)


@pytest.mark.parametrize("code", [0, 99, -1, 127])
def test_a_number_without_a_name_is_unknown(code: int) -> None:
    assert ResourceType(code) is ResourceType.UNKNOWN
    assert PatternType(code) is PatternType.UNKNOWN
    assert Operation(code) is Operation.UNKNOWN
    assert Permission(code) is Permission.UNKNOWN


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError):
        Operation("READ")  # type: ignore[arg-type]  # what is refused


def test_an_enum_is_found_by_its_number() -> None:
    rule = topic_rule("a")
    by_number = AclRule(*(int(each) if isinstance(each, int) else each for each in rule))  # type: ignore[arg-type]  # what a record holds
    assert by_number in {rule}
    assert {ResourceType.TOPIC: 1}[ResourceType(2)] == {2: 1}[ResourceType.TOPIC] == 1


@pytest.mark.parametrize(
    ("resource_type", "bits"),
    [
        (ResourceType.TOPIC, allowed_operations.ON_TOPIC),
        (ResourceType.GROUP, allowed_operations.ON_GROUP),
        (ResourceType.CLUSTER, allowed_operations.ON_CLUSTER),
        (ResourceType.ANY, 0),
        (ResourceType.UNKNOWN, 0),
    ],
)
def test_operations_are_those_that_answers_report(resource_type: ResourceType, bits: int) -> None:
    assert sum(1 << operation for operation in operations_of(resource_type)) == bits


GOOD = topic_rule("orders")
CLUSTER = GOOD._replace(resource_type=ResourceType.CLUSTER, name="kafka-cluster", operation=Operation.ALTER)


@pytest.mark.parametrize(
    "rule",
    [
        GOOD,
        CLUSTER,
        GOOD._replace(name="*", operation=Operation.ALL),
        GOOD._replace(host="no-address.example", principal="Group:"),
        GOOD._replace(principal="User:CN=a:b,O=c"),
    ],
)
def test_kafka_accepts(rule: AclRule) -> None:
    check_rule(rule)


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (GOOD._replace(name=""), "empty"),
        (CLUSTER._replace(name="other"), "kafka-cluster"),
        (CLUSTER._replace(name="*"), "kafka-cluster"),
        (GOOD._replace(principal="alice"), "User:alice"),
        (GOOD._replace(operation=Operation.CLUSTER_ACTION), "CLUSTER_ACTION"),
    ],
)
def test_an_entry_is_refused_with_the_reason(rule: AclRule, reason: str) -> None:
    with pytest.raises(InvalidAcl, match=reason) as caught:
        check_rule(rule)
    assert not isinstance(caught.value, InvalidAclRequest)


@pytest.mark.parametrize(
    "rule",
    [
        GOOD._replace(resource_type=ResourceType.ANY),
        GOOD._replace(pattern=PatternType.ANY),
        GOOD._replace(pattern=PatternType.MATCH),
        GOOD._replace(operation=Operation.ANY),
        GOOD._replace(permission=Permission.ANY),
    ],
)
def test_what_only_a_filter_may_say_refuses_the_request(rule: AclRule) -> None:
    with pytest.raises(InvalidAclRequest):
        check_rule(rule)


@pytest.mark.parametrize(
    "rule",
    [
        GOOD._replace(resource_type=ResourceType.UNKNOWN),
        GOOD._replace(pattern=PatternType.UNKNOWN),
        GOOD._replace(operation=Operation.UNKNOWN),
        GOOD._replace(permission=Permission.UNKNOWN),
    ],
)
def test_a_code_that_nobody_knows_refuses_the_rule_alone(rule: AclRule) -> None:
    with pytest.raises(InvalidAcl) as refused:
        check_rule(rule)
    assert not isinstance(refused.value, InvalidAclRequest)


def test_operations_of_other_types_are_accepted_where_asked() -> None:
    rule = CLUSTER._replace(operation=Operation.DELETE)
    check_rule(rule, operations=False)
    with pytest.raises(InvalidAcl):
        check_rule(rule)


def test_a_rule_reads_like_a_sentence() -> None:
    rule = topic_rule("orders.", prefixed=True, deny=True)
    assert str(rule) == "DENY User:alice READ on TOPIC PREFIXED:orders.* from *"
