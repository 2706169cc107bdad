"""Tokens: those of one's own need no right."""

from __future__ import annotations

from typing import Any, cast

from headrace.broker.authorization.delegation_tokens import create_delegation_token
from headrace.broker.authorization.guard import ALLOWED
from headrace.broker.requests.api import Api, Call
from headrace.protocol.messages.create_delegation_token_request import CreateDelegationTokenRequest
from headrace.protocol.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from headrace.protocol.messages.describe_delegation_token_response import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenResponse,
)
from headrace.security.principal import ANONYMOUS, user
from tests.unit.broker.authorization import unwritten_handlers
from tests.unit.broker.authorization.realm import Realm, rights_by


def token(token_id: str, owner: str, requester: str = "x", renewer: str = "x") -> DescribedDelegationToken:
    return DescribedDelegationToken(
        principal_type="User",
        principal_name=owner,
        token_requester_principal_type="User",
        token_requester_principal_name=requester,
        token_id=token_id,
        renewers=[DescribedDelegationTokenRenewer(principal_type="User", principal_name=renewer)],
    )


def test_owner_requester_and_renewer_see_a_token(realm: Realm, monkeypatch: Any) -> None:
    answer = DescribeDelegationTokenResponse(
        tokens=[
            token("owned", "alice"),
            token("requested", "bob", requester="alice"),
            token("renewed", "bob", renewer="alice"),
            token("foreign", "bob"),
        ]
    )
    request = DescribeDelegationTokenRequest(owners=None)
    key = next(key for key in unwritten_handlers.APIS if key == request.API_KEY)
    api = Api(key, 1, 3, DescribeDelegationTokenRequest, lambda *_: answer)
    monkeypatch.setitem(unwritten_handlers.APIS, key, api)
    shown = realm.ask(request, 3, rights_by([])).tokens
    assert [each.token_id for each in shown] == ["owned", "requested", "renewed"]


def test_a_token_for_oneself_needs_no_right(realm: Realm) -> None:
    for kind, name in ((None, None), ("", ""), ("User", "alice")):
        request = CreateDelegationTokenRequest(owner_principal_type=kind, owner_principal_name=name)
        assert realm.ask(request, 3, rights_by([])).error_code == 0
    for version in (1, 2, 3):
        request = CreateDelegationTokenRequest(owner_principal_type="User", owner_principal_name="bob")
        refused = realm.ask(request, version, rights_by([]))
        assert (refused.error_code, refused.token_id, refused.hmac) == (65, "", b"")


def test_who_may_not_ask_at_all_is_not_told_about_rights(realm: Realm) -> None:
    """The handler refuses it with 64: a token session, or one that nobody has proved."""
    request = CreateDelegationTokenRequest(owner_principal_type="User", owner_principal_name="bob")
    rights = rights_by([])
    call = Call(3, None, cast(Any, None), user("alice"), rights=rights)
    context = cast(Any, None)
    assert create_delegation_token(context, rights, request, call) is not ALLOWED
    for other in (call._replace(came_by_token=True), call._replace(principal=ANONYMOUS)):
        assert create_delegation_token(context, rights, request, other) is ALLOWED
