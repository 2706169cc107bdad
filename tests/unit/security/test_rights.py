"""Kept decisions: never older than the rules, bounded, shared; and what is reported in which mode."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.security import rights as module
from headrace.security.acl import AclRule, Operation, ResourceType
from headrace.security.acl_index import AclIndex
from headrace.security.acl_rule_scope import ALL_OPERATIONS
from headrace.security.rights import SUPER_USER_CLASS, Authorizer, Rights
from tests.unit.security.drawn_rules import HOSTS, NAMES, PRINCIPALS, RULES, TYPES, topic_rule

ALICE, HOST, TOPIC, CLUSTER = "User:alice", "10.0.0.1", ResourceType.TOPIC, ResourceType.CLUSTER
READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE
Denial = tuple[str, str, Operation, ResourceType, str]


class Reports:
    def __init__(self) -> None:
        self.denied: list[Denial] = []
        self.shadow: list[Denial] = []
        self.used: list[Denial] = []

    def authorizer(
        self, *rules: AclRule, shadow: bool = False, super_users: tuple[str, ...] = ()
    ) -> Authorizer:
        return Authorizer(
            AclIndex(rules),
            super_users=super_users,
            mode="shadow" if shadow else "enforce",
            on_denial=lambda *denial: self.denied.append(denial),
            on_shadow_denial=lambda *denial: self.shadow.append(denial),
            on_use=lambda *use: self.used.append(use),
        )


@pytest.fixture
def reports() -> Reports:
    return Reports()


def test_a_denial_is_reported_each_time(reports: Reports) -> None:
    rights = reports.authorizer(topic_rule("a")).rights_of(ALICE, HOST)
    assert rights.allows(READ, TOPIC, "a")
    assert not rights.allows(WRITE, TOPIC, "a")
    assert not rights.allows(WRITE, TOPIC, "a")
    assert reports.denied == [(ALICE, HOST, WRITE, TOPIC, "a")] * 2
    assert reports.shadow == []


@pytest.mark.parametrize("shadow", [False, True])
def test_a_use_is_reported_once_for_each_change_of_rules(reports: Reports, shadow: bool) -> None:
    authorizer = reports.authorizer(topic_rule("a"), topic_rule("a", WRITE), shadow=shadow)
    rights = authorizer.rights_of(ALICE, HOST)
    for _ in range(3):
        assert rights.allows(READ, TOPIC, "a")
        assert rights.allows_by_type(WRITE, TOPIC)
        assert rights.allows_any((READ, TOPIC, "b"), (WRITE, TOPIC, "a"))
        assert rights.allows(WRITE, TOPIC, "b") is shadow
    once = [
        (ALICE, HOST, READ, TOPIC, "a"),
        (ALICE, HOST, WRITE, TOPIC, "*"),
        (ALICE, HOST, WRITE, TOPIC, "a"),
    ]
    assert reports.used == once
    assert len(reports.shadow if shadow else reports.denied) == 3, "and what is denied each time"
    authorizer.add(topic_rule("c"))
    assert rights.allows(READ, TOPIC, "a")
    assert reports.used == [*once, once[0]]


def test_a_right_on_any_one_resource_is_none_on_a_resource_of_that_name(reports: Reports) -> None:
    rights = reports.authorizer(topic_rule("a", WRITE)).rights_of(ALICE, HOST)
    assert rights.allows_by_type(WRITE, TOPIC)
    assert not rights.allows(WRITE, TOPIC, "*")


def test_super_users_are_not_reported(reports: Reports) -> None:
    rights = reports.authorizer(super_users=(ALICE,)).rights_of(ALICE, HOST)
    assert rights.allows(READ, TOPIC, "a")
    assert rights.allows_any((WRITE, TOPIC, None))
    assert reports.used == []


def test_lists_and_masks_are_silent(reports: Reports) -> None:
    rights = reports.authorizer(topic_rule("a")).rights_of(ALICE, HOST)
    assert not rights.allows_silently(READ, TOPIC, "b")
    assert rights.allows_silently(READ, TOPIC, "a")
    assert rights.mask(TOPIC, "a") == 1 << READ | 1 << DESCRIBE
    assert reports.denied == []


def test_shadow_allows_and_reports_what_would_be_denied(reports: Reports) -> None:
    rights = reports.authorizer(topic_rule("a"), shadow=True).rights_of(ALICE, HOST)
    assert rights.allows(READ, TOPIC, "a")
    assert reports.shadow == []
    assert rights.allows(WRITE, TOPIC, "a")
    assert rights.allows_by_type(WRITE, TOPIC)
    assert rights.allows_silently(WRITE, TOPIC, "a")
    assert rights.mask(TOPIC, "a") == ALL_OPERATIONS
    assert reports.shadow == [(ALICE, HOST, WRITE, TOPIC, "a"), (ALICE, HOST, WRITE, TOPIC, "*")]
    assert reports.denied == []


@pytest.mark.parametrize("shadow", [False, True])
def test_one_of_two_rights_is_enough_and_only_the_last_is_reported(reports: Reports, shadow: bool) -> None:
    rights = reports.authorizer(topic_rule("a", Operation.CREATE), shadow=shadow).rights_of(ALICE, HOST)
    on_cluster = (Operation.CREATE, CLUSTER, "kafka-cluster")
    assert rights.allows_any(on_cluster, (Operation.CREATE, TOPIC, "a"))
    assert rights.allows_any((Operation.CREATE, TOPIC, "a"), on_cluster)
    assert reports.denied == reports.shadow == []
    assert rights.allows_any(on_cluster, (Operation.CREATE, TOPIC, "b")) is shadow
    assert reports.denied + reports.shadow == [(ALICE, HOST, Operation.CREATE, TOPIC, "b")]


def test_by_type_follows_the_rules(reports: Reports) -> None:
    authorizer = reports.authorizer()
    rights = authorizer.rights_of(ALICE, HOST)
    assert not rights.allows_by_type(WRITE, TOPIC)
    assert reports.denied == [(ALICE, HOST, WRITE, TOPIC, "*")]
    authorizer.add(topic_rule("a", WRITE))
    assert rights.allows_by_type(WRITE, TOPIC)
    authorizer.remove(topic_rule("a", WRITE))
    assert not rights.allows_by_type(WRITE, TOPIC)


def test_super_users_may_do_everything_against_any_denial(reports: Reports) -> None:
    denial = topic_rule("*", Operation.ALL, deny=True, principal="User:*")
    authorizer = reports.authorizer(denial, super_users=(ALICE,))
    rights = authorizer.rights_of(ALICE, HOST)
    assert rights.allows(READ, TOPIC, "a")
    assert rights.allows_by_type(WRITE, TOPIC)
    assert rights.mask(TOPIC, "a") == ALL_OPERATIONS
    assert not authorizer.rights_of("User:bob", HOST).allows(READ, TOPIC, "a")
    authorizer.set_super_users(())
    assert not rights.allows(READ, TOPIC, "a")


def test_the_epoch_moves_with_changes_only(reports: Reports) -> None:
    authorizer = reports.authorizer()
    epochs = [authorizer.epoch]

    def moved() -> bool:
        epochs.append(authorizer.epoch)
        return epochs[-1] > epochs[-2]

    authorizer.add(topic_rule("a"))
    assert moved()
    authorizer.add(topic_rule("a"))
    assert not moved()
    authorizer.remove(topic_rule("b"))
    assert not moved()
    authorizer.remove(topic_rule("a"))
    assert moved()
    authorizer.replace_index(AclIndex())
    assert moved()
    authorizer.set_mode("shadow")
    assert moved()
    authorizer.set_super_users((ALICE,))
    assert moved()


def test_kept_decisions_end_with_every_kind_of_change(reports: Reports) -> None:
    authorizer = reports.authorizer(topic_rule("a"))
    rights = authorizer.rights_of(ALICE, HOST)
    assert rights.allows(READ, TOPIC, "a")
    authorizer.add(topic_rule("a", deny=True))
    assert not rights.allows(READ, TOPIC, "a")
    authorizer.remove(topic_rule("a", deny=True))
    assert rights.allows(READ, TOPIC, "a")
    authorizer.replace_index(AclIndex())
    assert not rights.allows(READ, TOPIC, "a")
    assert rights.mask(TOPIC, "a") == 0
    authorizer.set_mode("shadow")
    assert rights.allows(READ, TOPIC, "a")


def test_the_index_is_not_asked_twice(reports: Reports, monkeypatch: pytest.MonkeyPatch) -> None:
    authorizer = reports.authorizer(topic_rule("a"))
    rights = authorizer.rights_of(ALICE, HOST)
    assert rights.allows(READ, TOPIC, "a")
    assert not rights.allows_by_type(WRITE, TOPIC)
    for question in ("mask", "allows_by_type"):
        monkeypatch.delattr(AclIndex, question)
    assert rights.allows(READ, TOPIC, "a")
    assert not rights.allows(WRITE, TOPIC, "a")
    assert not rights.allows_by_type(WRITE, TOPIC)


def test_a_class_is_of_one_principal_host_and_epoch(reports: Reports) -> None:
    authorizer = reports.authorizer(super_users=("User:root", "User:admin"))
    alice, elsewhere, bob = (
        authorizer.rights_of(*client) for client in ((ALICE, HOST), (ALICE, "10.0.0.2"), ("User:bob", HOST))
    )
    first = {alice.class_id, elsewhere.class_id, bob.class_id}
    assert len(first) == 3
    assert alice.class_id == authorizer.rights_of(ALICE, HOST).class_id
    authorizer.add(topic_rule("a"))
    second = {alice.class_id, elsewhere.class_id, bob.class_id}
    assert len(second) == 3
    assert not first & second
    supers = {authorizer.rights_of(user, HOST).class_id for user in ("User:root", "User:admin")}
    assert supers == {SUPER_USER_CLASS}
    assert SUPER_USER_CLASS not in first | second
    authorizer.set_super_users((ALICE,))
    assert alice.class_id == SUPER_USER_CLASS
    assert authorizer.rights_of("User:root", HOST).class_id not in first | second | {SUPER_USER_CLASS}


def test_rights_are_shared_and_bounded(reports: Reports, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_RIGHTS", 2)
    authorizer = reports.authorizer(topic_rule("a"))
    first, second = (authorizer.rights_of(ALICE, host) for host in ("1", "2"))
    assert authorizer.rights_of(ALICE, "1") is first
    authorizer.rights_of(ALICE, "3")
    assert authorizer.rights_of(ALICE, "1") is first, "used later than the second"
    assert authorizer.rights_of(ALICE, "2") is not second
    authorizer.add(topic_rule("a", deny=True))
    assert not second.allows(READ, TOPIC, "a"), "who still holds it is told of changes"


def test_kept_names_are_bounded_in_number_and_length(
    reports: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_NAMES", 10)
    rights = reports.authorizer(topic_rule("n", prefixed=True)).rights_of(ALICE, HOST)
    most = 0
    for number in range(100):
        assert rights.allows(READ, TOPIC, f"n{number}")
        most = max(most, len(rights._masks), len(rights._used))
    assert most == 10
    before = len(rights._masks)
    assert rights.allows(READ, TOPIC, "n" * 300)
    assert len(rights._masks) == before


STEPS = st.lists(st.tuples(st.booleans(), RULES), max_size=8)


@settings(max_examples=60)
@given(steps=STEPS, super_users=st.sets(st.sampled_from(PRINCIPALS), max_size=1))
def test_kept_decisions_are_those_of_the_index(
    steps: list[tuple[bool, AclRule]], super_users: set[str]
) -> None:
    authorizer = Authorizer(AclIndex(), super_users=super_users)
    clients: list[Rights] = [authorizer.rights_of(*client) for client in product(PRINCIPALS, HOSTS)]
    for adds, rule in steps:
        (authorizer.add if adds else authorizer.remove)(rule)
        for rights, (resource_type, name) in product(clients, product(TYPES, NAMES)):
            expected = (
                ALL_OPERATIONS
                if rights.principal in super_users
                else authorizer.index.mask(rights.principal, rights.host, resource_type, name)
            )
            assert rights.mask(resource_type, name) == expected
            assert rights.allows(READ, resource_type, name) == bool(expected >> READ & 1)
            assert rights.allows_silently(READ, resource_type, name) == bool(expected >> READ & 1)


@pytest.mark.parametrize("shadow", [False, True])
def test_what_outlasts_shadow_mode_is_decided_by_rules(reports: Reports, shadow: bool) -> None:
    """Who made rules for themselves in that mode had them when everything was denied."""
    authorizer = reports.authorizer(topic_rule("a"), shadow=shadow)
    rights = authorizer.rights_of(ALICE, HOST)
    assert rights.enforces(READ, TOPIC, "a")
    assert not rights.enforces(WRITE, TOPIC, "a")
    assert reports.denied == [(ALICE, HOST, WRITE, TOPIC, "a")]
    assert reports.shadow == []
    assert reports.used == [(ALICE, HOST, READ, TOPIC, "a")]
