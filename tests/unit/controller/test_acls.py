from __future__ import annotations

from uuid import UUID

import pytest

from headrace.controller.acls import refusal_of
from headrace.security.acl import (
    AclRule,
    InvalidAcl,
    InvalidAclRequest,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from tests.unit.controller.cluster import Cluster
from tests.unit.security.drawn_rules import topic_rule


def test_a_rule_is_stored_once() -> None:
    cluster, rule = Cluster(), topic_rule("orders")
    first = cluster.machine.create_acls([rule, rule])
    assert len(first.records) == 1
    assert [outcome.error for outcome in cluster.do(first)] == [None, None]
    again = cluster.machine.create_acls([rule, topic_rule("orders", deny=True)])
    assert len(again.records) == 1, "the other rule is new"
    assert [outcome.error for outcome in cluster.do(again)] == [None, None]
    assert set(cluster.image.acls.by_id.values()) == {rule, topic_rule("orders", deny=True)}


def test_a_decision_changes_nothing() -> None:
    cluster = Cluster()
    cluster.machine.create_acls([topic_rule("orders")])
    assert len(cluster.image.acls) == cluster.image.acls.epoch == 0


def test_what_is_created_together_is_committed_together() -> None:
    result = Cluster().machine.create_acls([topic_rule("a"), topic_rule("b")])
    assert [len(group) for group in result.groups] == [2]


@pytest.mark.parametrize(
    "wrong",
    [
        topic_rule(""),
        topic_rule("t", principal="alice"),
        AclRule(
            ResourceType.CLUSTER,
            "other",
            PatternType.LITERAL,
            "User:a",
            "*",
            Operation.ALTER,
            Permission.ALLOW,
        ),
    ],
)
def test_a_rule_that_cannot_be_is_refused_alone(wrong: AclRule) -> None:
    cluster = Cluster()
    refused, stored = cluster.do(cluster.machine.create_acls([wrong, topic_rule("t")]))
    assert isinstance(refused.error, InvalidAcl)
    assert stored.error is None
    assert list(cluster.image.acls.by_id.values()) == [topic_rule("t")]
    assert refusal_of(wrong) is None


def test_an_operation_that_the_type_does_not_have_is_stored() -> None:
    cluster = Cluster()
    rule = topic_rule("t", Operation.CLUSTER_ACTION)
    cluster.do(cluster.machine.create_acls([rule]))
    assert rule in cluster.image.acls


@pytest.mark.parametrize(
    "change",
    [
        {"resource_type": ResourceType.ANY},
        {"pattern": PatternType.MATCH},
        {"operation": Operation.ANY},
        {"permission": Permission.ANY},
    ],
)
def test_what_only_a_filter_may_say_refuses_the_whole_request(change: dict[str, object]) -> None:
    rule = topic_rule("t")._replace(**change)  # type: ignore[arg-type]  # one field or the other
    assert isinstance(refusal_of(rule), InvalidAclRequest)
    assert Cluster().machine.create_acls([rule]).records == []
    assert refusal_of(topic_rule("t")) is None


def test_rules_are_removed_by_id_and_those_that_are_gone_are_not_missed() -> None:
    cluster = Cluster()
    cluster.do(cluster.machine.create_acls([topic_rule("a"), topic_rule("b")]))
    first, second = cluster.image.acls.by_id
    result = cluster.machine.delete_acls([first, UUID(int=7), first])
    assert len(result.records) == 1
    assert cluster.do(result) == {first}
    assert list(cluster.image.acls.by_id) == [second]
    assert cluster.machine.delete_acls([first]).groups == []
