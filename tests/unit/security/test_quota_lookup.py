"""Whose quota holds."""

from __future__ import annotations

import pytest

from headrace.security.quota_lookup import Entity, Quota, quota_of

KEY = "producer_byte_rate"
ORDER: list[Entity] = [
    (("client-id", "app"), ("user", "alice")),
    (("client-id", None), ("user", "alice")),
    (("user", "alice"),),
    (("client-id", "app"), ("user", None)),
    (("client-id", None), ("user", None)),
    (("user", None),),
    (("client-id", "app"),),
    (("client-id", None),),
]


@pytest.mark.parametrize("place", range(len(ORDER)))
def test_the_first_that_is_set_holds(place: int) -> None:
    values = {entity: {KEY: float(at)} for at, entity in enumerate(ORDER) if at >= place}
    found = quota_of(lambda entity: values.get(entity, {}), KEY, "alice", "app")
    assert found is not None
    assert found.bound == place


def test_nothing_holds_for_others() -> None:
    values = {entity: {KEY: 1.0} for entity in ORDER if all(name is not None for _, name in entity)}
    assert quota_of(lambda entity: values.get(entity, {}), KEY, "bob", "other") is None
    assert quota_of(lambda entity: values.get(entity, {}), "request_percentage", "alice", "app") is None


def test_each_client_of_a_default_has_its_own_share() -> None:
    values: dict[Entity, dict[str, float]] = {(("user", None),): {KEY: 5.0}}
    for user in ("alice", "bob"):
        found = quota_of(lambda entity: values.get(entity, {}), KEY, user, "app")
        assert found == Quota(5.0, (("user", user),))
