"""What a viewer may see: the rest is gone from the snapshot before a page is made."""

from __future__ import annotations

from headrace.console.http.sights import Sight
from headrace.console.pages.now import word_of
from headrace.doctor.model import Unknown
from headrace.security.acl import AclRule, Operation, PatternType, Permission, ResourceType
from headrace.security.acl_index import AclIndex
from headrace.security.rights import Authorizer
from tests.unit.observe.made_up import broken_look, small_look, snapshot_of
from tests.unit.observe.made_up_tiers import outage_look, tiered_look

SEEN = snapshot_of(small_look(0), small_look(1))


def rule(operation: Operation, kind: ResourceType, name: str) -> AclRule:
    return AclRule(kind, name, PatternType.LITERAL, "User:alice", "*", operation, Permission.ALLOW)


def sight(*rules: AclRule) -> Sight:
    return Sight(Authorizer(AclIndex(rules)).rights_of("User:alice", "127.0.0.1"), f"alice {len(rules)}")


def test_without_an_authorizer_everything_is_seen() -> None:
    assert Sight.unlimited().of(SEEN) is SEEN
    assert Sight.unlimited().may_read("orders")


def test_who_may_nothing_sees_nothing() -> None:
    found = sight().of(SEEN)
    assert found.topics == {}
    assert found.groups == {}
    assert found.brokers == {}
    assert found.audit == {}
    assert found.totals.records == 0
    assert not isinstance(found.health, Unknown)
    assert found.health.partitions == 0
    assert word_of(found).sentence.startswith("Of what you may see.")
    assert word_of(SEEN).sentence.startswith("Every partition")


def test_one_topic_and_no_group() -> None:
    mine = sight(rule(Operation.DESCRIBE, ResourceType.TOPIC, "orders"))
    found = mine.of(SEEN)
    assert list(found.topics) == ["orders"]
    assert found.topics["orders"].groups == []
    assert isinstance(found.audit, dict)
    assert list(found.audit) == ["orders"]
    assert not mine.may_read("orders")
    assert mine.of(SEEN) is found, "made once for each look"


def test_a_group_without_the_partitions_of_hidden_topics() -> None:
    group = rule(Operation.DESCRIBE, ResourceType.GROUP, "reports")
    found = sight(group).of(SEEN)
    assert not isinstance(found.groups, Unknown)
    reports = found.groups["reports"]
    assert reports.rails == []
    assert (reports.lag, reports.late_ms) == (0, 0)
    both = sight(group, rule(Operation.READ, ResourceType.TOPIC, "orders")).of(SEEN)
    assert not isinstance(both.groups, Unknown)
    assert both.groups["reports"].lag == 3900
    assert both.topics["orders"].groups == ["reports"]


def test_what_is_wrong_elsewhere_is_not_told() -> None:
    broken = snapshot_of(broken_look())
    found = sight(rule(Operation.DESCRIBE, ResourceType.TOPIC, "orders")).of(broken)
    assert not isinstance(found.health, Unknown)
    assert found.health.offline == []
    assert {place.topic for place in found.health.under_min_isr} == {"orders"}
    assert found.silent == {}
    whole = sight(rule(Operation.DESCRIBE, ResourceType.CLUSTER, "kafka-cluster")).of(broken)
    assert set(whole.brokers) == {1, 2, 3}


def test_tiers_of_topics_that_are_seen_and_no_name_of_another() -> None:
    fork = rule(Operation.DESCRIBE, ResourceType.TOPIC, "ledger-test")
    seen = snapshot_of(tiered_look(1))
    found = sight(fork).of(seen)
    assert isinstance(found.tiers, dict)
    assert [(name, each.is_fork, each.origin) for name, each in found.tiers.items()] == [
        ("ledger-test", True, "")
    ]
    both = sight(fork, rule(Operation.DESCRIBE, ResourceType.TOPIC, "ledger")).of(seen)
    assert isinstance(both.tiers, dict)
    assert both.tiers["ledger-test"].origin == "ledger"


def test_why_tiers_are_not_known_names_nothing_that_is_hidden() -> None:
    reason = "settings of topics denied: topic secret"
    tiers = snapshot_of(outage_look(1)._replace(tiers=Unknown(reason)))
    found = sight(rule(Operation.DESCRIBE, ResourceType.TOPIC, "orders")).of(tiers)
    assert isinstance(found.tiers, Unknown)
    assert "secret" not in found.tiers.reason
    cluster = sight(rule(Operation.DESCRIBE, ResourceType.CLUSTER, "kafka-cluster")).of(tiers)
    assert cluster.tiers == Unknown(reason)
