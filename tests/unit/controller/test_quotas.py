from __future__ import annotations

import math

import pytest

from headrace.controller.quota_filter import MatchType, QuotaComponent, QuotaFilter
from headrace.controller.quota_image import QuotaEntity, entity_of
from headrace.controller.quotas import MOST_CHANGES
from headrace.controller.security_operations import QuotaAlteration, QuotaChange
from headrace.core.errors import HeadraceError, InvalidRequest, UnsupportedVersion
from tests.unit.controller.cluster import Cluster

ALICE = entity_of([("user", "alice")])
BOTH = entity_of([("user", "alice"), ("client-id", "app")])
DEFAULT_CLIENT = entity_of([("user", "alice"), ("client-id", None)])
EVERY_USER = entity_of([("user", None)])
CLIENT = entity_of([("client-id", "app")])
HOST = entity_of([("ip", "10.0.0.1")])


def altered(cluster: Cluster, entity: QuotaEntity, **values: float | None) -> HeadraceError | None:
    changes = [QuotaChange(key, value) for key, value in values.items()]
    (outcome,) = cluster.do(cluster.machine.alter_client_quotas([QuotaAlteration(entity, changes)]))
    assert outcome.entity == entity
    return outcome.error


def test_quotas_are_set_changed_and_removed() -> None:
    cluster = Cluster()
    assert altered(cluster, BOTH, producer_byte_rate=1024.0, request_percentage=12.5) is None
    assert altered(cluster, BOTH, producer_byte_rate=2048.0) is None
    assert cluster.image.quotas.of(BOTH) == {"producer_byte_rate": 2048.0, "request_percentage": 12.5}
    assert altered(cluster, BOTH, producer_byte_rate=None, request_percentage=None) is None
    assert list(cluster.image.quotas) == []


def test_what_is_the_same_already_is_not_stored_again() -> None:
    cluster = Cluster()
    altered(cluster, ALICE, consumer_byte_rate=7.0)
    same = QuotaAlteration(ALICE, [QuotaChange("consumer_byte_rate", 7.0), QuotaChange("nonsense", None)])
    result = cluster.machine.alter_client_quotas([same])
    assert (result.groups, result.response[0].error) == ([], None)


@pytest.mark.parametrize("entity", [ALICE, BOTH, DEFAULT_CLIENT, EVERY_USER, CLIENT])
@pytest.mark.parametrize(
    "key", ["producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"]
)
def test_who_may_have_what(entity: QuotaEntity, key: str) -> None:
    assert altered(Cluster(), entity, **{key: 5.0}) is None
    assert isinstance(altered(Cluster(), HOST, **{key: 5.0}), InvalidRequest)


@pytest.mark.parametrize("name", ["10.0.0.1", "::1", None])
def test_connections_are_limited_by_address_alone(name: str | None) -> None:
    assert altered(Cluster(), (("ip", name),), connection_creation_rate=5.0) is None
    assert isinstance(altered(Cluster(), ALICE, connection_creation_rate=5.0), InvalidRequest)


@pytest.mark.parametrize(
    "entity",
    [
        (),
        (("group", "g"),),
        (("user", ""),),
        (("ip", "host.example"),),
        (("ip", "10.0.0.0/8"),),
        (("ip", "10.0.0.1"), ("user", "alice")),
        (("user", "alice"), ("user", "bob")),
        (("user", "alice"), ("client-id", "app"), ("ip", "10.0.0.1"), ("ip", "10.0.0.2")),
    ],
)
def test_an_entity_that_cannot_be_is_refused(entity: QuotaEntity) -> None:
    cluster = Cluster()
    assert isinstance(altered(cluster, entity, producer_byte_rate=1.0), InvalidRequest)
    assert list(cluster.image.quotas) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("producer_byte_rate", 0.0),
        ("producer_byte_rate", -1.0),
        ("producer_byte_rate", math.nan),
        ("producer_byte_rate", math.inf),
        ("producer_byte_rate", 1.5),
        ("producer_byte_rate", 1e19),
        ("request_percentage", 0.0),
        ("unknown_rate", 1.0),
    ],
)
def test_a_value_that_cannot_be_refuses_its_whole_entity(key: str, value: float) -> None:
    cluster = Cluster()
    assert isinstance(altered(cluster, ALICE, consumer_byte_rate=1.0, **{key: value}), InvalidRequest)
    assert list(cluster.image.quotas) == []


def test_an_entity_has_not_very_many_changes() -> None:
    removals: dict[str, float | None] = {f"unknown-{number}": None for number in range(MOST_CHANGES)}
    assert altered(Cluster(), ALICE, **removals) is None
    assert isinstance(altered(Cluster(), ALICE, **removals, more=None), InvalidRequest)


def test_the_rate_of_connections_is_an_int() -> None:
    assert altered(Cluster(), HOST, connection_creation_rate=2.0**31 - 1) is None
    assert isinstance(altered(Cluster(), HOST, connection_creation_rate=2.0**31), InvalidRequest)


def test_what_is_listed_twice_is_refused_once() -> None:
    cluster = Cluster()
    change = [QuotaChange("producer_byte_rate", 1.0)]
    result = cluster.machine.alter_client_quotas(
        [QuotaAlteration(ALICE, change), QuotaAlteration(ALICE, change), QuotaAlteration(CLIENT, change)]
    )
    outcomes = {outcome.entity: outcome.error for outcome in cluster.do(result)}
    assert len(result.response) == 2
    assert isinstance(outcomes[ALICE], InvalidRequest)
    assert list(cluster.image.quotas) == [CLIENT]
    twice = QuotaAlteration(EVERY_USER, change * 2)
    assert isinstance(cluster.machine.alter_client_quotas([twice]).response[0].error, InvalidRequest)


EXACT, DEFAULT, ANY = MatchType.EXACT, MatchType.DEFAULT, MatchType.ANY


@pytest.mark.parametrize(
    ("components", "strict", "matched"),
    [
        ([], False, {ALICE, BOTH, DEFAULT_CLIENT, EVERY_USER, CLIENT, HOST}),
        ([], True, set()),
        ([("user", EXACT, "alice")], False, {ALICE, BOTH, DEFAULT_CLIENT}),
        ([("user", EXACT, "alice")], True, {ALICE}),
        ([("user", DEFAULT, None)], False, {EVERY_USER}),
        ([("user", ANY, None)], False, {ALICE, BOTH, DEFAULT_CLIENT, EVERY_USER}),
        ([("user", ANY, None)], True, {ALICE, EVERY_USER}),
        ([("user", ANY, None), ("client-id", DEFAULT, None)], True, {DEFAULT_CLIENT}),
        ([("client-id", ANY, None)], False, {BOTH, DEFAULT_CLIENT, CLIENT}),
        ([("client-id", EXACT, "app"), ("user", EXACT, "alice")], True, {BOTH}),
        ([("ip", ANY, None)], True, {HOST}),
        ([("user", EXACT, "bob")], False, set()),
    ],
)
def test_which_entities_a_filter_matches(
    components: list[tuple[str, int, str | None]], strict: bool, matched: set[QuotaEntity]
) -> None:
    wanted = QuotaFilter.of([QuotaComponent(*each) for each in components], strict=strict)
    entities = {ALICE, BOTH, DEFAULT_CLIENT, EVERY_USER, CLIENT, HOST}
    assert {entity for entity in entities if wanted.matches(entity)} == matched


@pytest.mark.parametrize(
    ("components", "error"),
    [
        ([("", EXACT, "a")], InvalidRequest),
        ([("group", EXACT, "a")], UnsupportedVersion),
        ([("user", EXACT, None)], InvalidRequest),
        ([("user", DEFAULT, "a")], InvalidRequest),
        ([("user", ANY, "a")], InvalidRequest),
        ([("user", 3, None)], InvalidRequest),
        ([("user", ANY, None), ("user", EXACT, "a")], InvalidRequest),
        ([("ip", ANY, None), ("user", ANY, None)], InvalidRequest),
    ],
)
def test_a_filter_that_cannot_be_is_refused(
    components: list[tuple[str, int, str | None]], error: type[HeadraceError]
) -> None:
    with pytest.raises(error):
        QuotaFilter.of([QuotaComponent(*each) for each in components], strict=False)
