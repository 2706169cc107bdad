"""The sets of rules for what clients are meant to do."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.core.errors import InvalidRequest
from headrace.security.acl import AclRule, PatternType, Permission
from headrace.security.acl_advice import Intent, intent

ALICE = "User:alice"


def said(rules: list[AclRule]) -> list[str]:
    return [f"{rule.operation.name} {rule.resource_type.name} {rule.name}" for rule in rules]


def test_produce() -> None:
    assert said(intent("produce", ALICE, topic="t")) == ["WRITE TOPIC t", "DESCRIBE TOPIC t"]
    assert said(intent("produce", ALICE, topic="t", transactional_id="x")) == [
        "WRITE TOPIC t",
        "DESCRIBE TOPIC t",
        "WRITE TRANSACTIONAL_ID x",
        "DESCRIBE TRANSACTIONAL_ID x",
    ]


def test_consume() -> None:
    assert said(intent("consume", ALICE, topic="t")) == ["READ TOPIC t", "DESCRIBE TOPIC t"]
    assert said(intent("consume", ALICE, topic="t", group="g")) == [
        "READ TOPIC t",
        "DESCRIBE TOPIC t",
        "READ GROUP g",
        "DESCRIBE GROUP g",
    ]


def test_admin() -> None:
    assert said(intent("admin", ALICE)) == ["ALL CLUSTER kafka-cluster", "ALL TOPIC *", "ALL GROUP *"]


def test_rules_are_for_the_principal_and_host_and_of_the_pattern() -> None:
    rules = intent("consume", ALICE, topic="t.", group="g.", prefixed=True, host="10.0.0.1")
    assert {each[2:5] + each[6:] for each in rules} == {
        (PatternType.PREFIXED, ALICE, "10.0.0.1", Permission.ALLOW)
    }
    assert {each.pattern for each in intent("consume", ALICE, topic="*")} == {PatternType.LITERAL}


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("produce", {}),
        ("consume", {"group": "g"}),
        ("produce", {"topic": "t", "group": "g"}),
        ("consume", {"topic": "t", "transactional_id": "x"}),
        ("admin", {"topic": "t"}),
        ("admin", {"prefixed": True}),
        ("consume", {"topic": "*", "prefixed": True}),
        ("consume", {"topic": "t", "group": "*", "prefixed": True}),
        ("produce", {"topic": ""}),
    ],
)
def test_names_that_do_not_fit_are_refused(kind: Intent, names: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        intent(kind, ALICE, **names)


def test_a_principal_without_type_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="User:"):
        intent("admin", "alice")
