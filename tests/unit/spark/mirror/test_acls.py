"""Which rights go along: those to read, for mirrored topics, one rule for each."""

from __future__ import annotations

import pytest

from headrace.security.acl import AclRule, Operation, PatternType, Permission, ResourceType
from headrace.spark.mirror.acls import change, given_of, record_of, wanted
from headrace.spark.mirror.problems import MirrorRefused

_TARGETS = {"orders": "eu.orders", "orders-old": "eu.orders-old", "users": "eu.users"}


def _rule(
    name: str,
    operation: Operation = Operation.READ,
    pattern: PatternType = PatternType.LITERAL,
    kind: ResourceType = ResourceType.TOPIC,
    permission: Permission = Permission.ALLOW,
) -> AclRule:
    return AclRule(kind, name, pattern, "User:ada", "*", operation, permission)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (_rule("orders"), {("eu.orders", Operation.READ)}),
        (_rule("orders", Operation.WRITE), set()),
        (_rule("other"), set()),
        (_rule("orders", kind=ResourceType.GROUP), set()),
        (
            _rule("orders", pattern=PatternType.PREFIXED),
            {("eu.orders", Operation.READ), ("eu.orders-old", Operation.READ)},
        ),
        (_rule("*", Operation.DESCRIBE), {(name, Operation.DESCRIBE) for name in _TARGETS.values()}),
        (
            _rule("users", Operation.ALL),
            {("eu.users", each) for each in (Operation.READ, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS)},
        ),
    ],
)
def test_a_rule(rule: AclRule, expected: set[tuple[str, Operation]]) -> None:
    found = wanted([rule], _TARGETS)
    assert {(each.name, each.operation) for each in found} == expected
    assert {each.pattern for each in found} <= {PatternType.LITERAL}


def test_what_is_denied_is_denied_there_too() -> None:
    (found,) = wanted([_rule("orders", permission=Permission.DENY)], _TARGETS)
    assert found.permission is Permission.DENY


def test_only_what_the_mirror_has_given_is_taken_away() -> None:
    mine, theirs, new = _rule("a"), _rule("b"), _rule("c")
    found = change({theirs, new}, [mine, theirs], frozenset({mine}))
    assert (found.create, found.delete) == ([new], [mine])
    assert found.given == {new}, "what somebody else has given stays his"
    assert change({mine}, [mine], frozenset({mine})) == ([], [], frozenset({mine}))


def test_rights_are_remembered() -> None:
    given = {_rule("a"), _rule("b", Operation.DESCRIBE)}
    assert given_of(record_of(given, 7).value) == given
    assert given_of(None) == frozenset()
    with pytest.raises(MirrorRefused, match="rights that cannot be read"):
        given_of(b"[[1]]")
