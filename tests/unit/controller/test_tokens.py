from __future__ import annotations

import pytest

from headrace.controller.security_operations import NewToken, TokenLifetimes
from headrace.controller.token_image import DelegationToken
from headrace.controller.tokens import MAX_RENEWERS, SWEPT_AT_ONCE
from headrace.core.errors import InvalidRequest
from headrace.security.errors import (
    DelegationTokenExpired,
    DelegationTokenNotFound,
    DelegationTokenOwnerMismatch,
    InvalidPrincipalType,
)
from headrace.security.principal import Principal, user
from tests.unit.controller.cluster import Cluster

ALICE, BOB, CAROL = user("alice"), user("bob"), user("carol")
LIFETIMES = TokenLifetimes(max_lifetime_ms=1000, expiry_time_ms=100)
NOW = 50_000


def created(cluster: Cluster, new: NewToken | None = None, now_ms: int = NOW) -> DelegationToken:
    new = NewToken(ALICE, renewers=[BOB]) if new is None else new
    return cluster.do(cluster.machine.create_token(new, LIFETIMES, now_ms))


def test_a_token_is_stored_for_its_owner() -> None:
    cluster = Cluster()
    token = created(cluster, NewToken(ALICE, owner=CAROL, renewers=[BOB, BOB]))
    assert (token.owner, token.requester, token.renewers) == (CAROL, ALICE, (BOB,))
    assert (token.issue_ms, token.expiry_ms, token.max_ms) == (NOW, NOW + 100, NOW + 1000)
    assert cluster.image.tokens.find(token.token_id) == token
    assert created(cluster).token_id != token.token_id


@pytest.mark.parametrize(
    ("asked", "expiry", "most"), [(-1, 100, 1000), (0, 100, 1000), (60, 60, 60), (5000, 100, 1000)]
)
def test_a_token_lives_as_long_as_is_asked_for_and_allowed(asked: int, expiry: int, most: int) -> None:
    token = created(Cluster(), NewToken(ALICE, max_lifetime_ms=asked))
    assert (token.expiry_ms - NOW, token.max_ms - NOW) == (expiry, most)


@pytest.mark.parametrize(
    ("new", "error"),
    [
        (NewToken(ALICE, renewers=[Principal("Group", "g")]), InvalidPrincipalType),
        (NewToken(ALICE, owner=Principal("Group", "g")), InvalidPrincipalType),
        (NewToken(ALICE, renewers=[user("")]), InvalidRequest),
        (NewToken(ALICE, owner=user("n" * 1025)), InvalidRequest),
        (NewToken(ALICE, renewers=[user(str(n)) for n in range(MAX_RENEWERS + 1)]), InvalidRequest),
    ],
)
def test_who_cannot_have_a_token(new: NewToken, error: type[Exception]) -> None:
    with pytest.raises(error):
        Cluster().machine.create_token(new, LIFETIMES, NOW)


@pytest.mark.parametrize("by", [ALICE, BOB])
def test_the_owner_and_renewers_renew_it_up_to_its_end(by: Principal) -> None:
    cluster = Cluster()
    token = created(cluster)

    def renew(period_ms: int, now_ms: int) -> int:
        return cluster.do(cluster.machine.renew_token(token.token_id, by, period_ms, LIFETIMES, now_ms))

    assert renew(-1, NOW + 50) == NOW + 150
    assert renew(20, NOW + 60) == NOW + 80
    assert renew(5000, NOW + 70) == NOW + 170, "no longer than the setting"
    for step in range(9):
        renew(100, NOW + 100 + step * 95)
    assert renew(100, NOW + 950) == NOW + 1000, "not beyond the end"
    found = cluster.image.tokens.find(token.token_id)
    assert found is not None
    assert (found.expiry_ms, found.renewers) == (NOW + 1000, (BOB,))


def test_others_may_not_change_it_and_what_expired_is_not_renewed() -> None:
    cluster = Cluster()
    token = created(cluster)
    with pytest.raises(DelegationTokenOwnerMismatch):
        cluster.machine.renew_token(token.token_id, CAROL, -1, LIFETIMES, NOW)
    with pytest.raises(DelegationTokenOwnerMismatch):
        cluster.machine.expire_token(token.token_id, CAROL, -1, NOW)
    assert cluster.machine.renew_token(token.token_id, ALICE, -1, LIFETIMES, NOW + 100).records
    with pytest.raises(DelegationTokenExpired):
        cluster.machine.renew_token(token.token_id, ALICE, -1, LIFETIMES, NOW + 101)
    with pytest.raises(DelegationTokenExpired):
        cluster.machine.expire_token(token.token_id, ALICE, 10, NOW + 101)
    for missing in (None, "nothing"):
        with pytest.raises(DelegationTokenNotFound):
            cluster.machine.renew_token(missing, ALICE, -1, LIFETIMES, NOW)
        with pytest.raises(DelegationTokenNotFound):
            cluster.machine.expire_token(missing, ALICE, -1, NOW)


def test_a_token_is_expired_later_or_at_once() -> None:
    cluster = Cluster()
    token = created(cluster)
    assert cluster.do(cluster.machine.expire_token(token.token_id, BOB, 30, NOW + 1)) == NOW + 31
    assert cluster.do(cluster.machine.expire_token(token.token_id, ALICE, 2**62, NOW + 2)) == NOW + 1000
    assert cluster.do(cluster.machine.expire_token(token.token_id, ALICE, -1, NOW + 5000)) == NOW + 5000
    assert len(cluster.image.tokens) == 0


def test_what_has_expired_is_swept_in_steps() -> None:
    cluster = Cluster()
    for _ in range(SWEPT_AT_ONCE + 1):
        created(cluster)
    kept = created(cluster, now_ms=NOW + 10)
    assert cluster.machine.remove_expired_tokens(NOW + 100).groups == []
    assert cluster.do(cluster.machine.remove_expired_tokens(NOW + 101)) == SWEPT_AT_ONCE
    assert cluster.do(cluster.machine.remove_expired_tokens(NOW + 101)) == 1
    assert list(cluster.image.tokens.by_id) == [kept.token_id]
