from __future__ import annotations

import pytest

from headrace.broker.security.delegation_tokens import DelegationTokens, Identity
from headrace.broker.security.security import Security
from headrace.controller.security_operations import TokenLifetimes
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.messages.create_delegation_token_request import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from headrace.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from headrace.protocol.messages.describe_delegation_token_request import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from headrace.protocol.messages.describe_delegation_token_response import DescribeDelegationTokenResponse
from headrace.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from headrace.protocol.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from headrace.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from headrace.protocol.messages.renew_delegation_token_response import RenewDelegationTokenResponse
from headrace.security.acl import (
    WILDCARD,
    AclRule,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from headrace.security.acl_index import AclIndex
from headrace.security.principal import ANONYMOUS, Principal, user
from headrace.security.rights import Authorizer, Mode
from headrace.security.token_secret import TokenSecret
from tests.unit.broker.security.controller_context import Server

LIFETIMES = TokenLifetimes(max_lifetime_ms=1000, expiry_time_ms=100)
ALICE = user("alice")
NO_OWNER = {"owner_principal_type": None, "owner_principal_name": None}


class TokenServer(Server):
    """Whoever is `asks`, asks."""

    def __init__(self, asks: Principal = ALICE, key: bytes | None = b"CANARY-key") -> None:
        tokens = None if key is None else DelegationTokens(TokenSecret(key), LIFETIMES)
        security = Security("", tokens=tokens)
        assert "CANARY" not in repr(security)
        super().__init__(security, Identity(asks))

    async def create(self, *renewers: str, **fields: object) -> CreateDelegationTokenResponse:
        request = CreateDelegationTokenRequest(
            renewers=[CreatableRenewers(principal_type="User", principal_name=name) for name in renewers],
            max_lifetime_ms=-1,
        )
        for name, value in {**NO_OWNER, **fields}.items():
            setattr(request, name, value)
        return await self.ask(request, CreateDelegationTokenResponse)

    async def described(self, owners: list[str] | None = None) -> DescribeDelegationTokenResponse:
        named = None
        if owners is not None:
            named = [
                DescribeDelegationTokenOwner(principal_type="User", principal_name=name) for name in owners
            ]
        return await self.ask(DescribeDelegationTokenRequest(owners=named), DescribeDelegationTokenResponse)

    async def renew(self, hmac: bytes, period_ms: int = -1) -> RenewDelegationTokenResponse:
        request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
        return await self.ask(request, RenewDelegationTokenResponse)

    async def expire(self, hmac: bytes, period_ms: int = -1) -> ExpireDelegationTokenResponse:
        request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
        return await self.ask(request, ExpireDelegationTokenResponse)


async def test_a_token_lives() -> None:
    server = TokenServer()
    made = await server.create("bob")
    start = server.now_ms
    assert (made.error_code, made.principal_name, made.token_requester_principal_name) == (
        0,
        "alice",
        "alice",
    )
    assert (made.issue_timestamp_ms, made.expiry_timestamp_ms, made.max_timestamp_ms) == (
        start,
        start + 100,
        start + 1000,
    )
    assert len(made.hmac) == 64
    server.now_ms += 50
    assert (await server.renew(made.hmac)).expiry_timestamp_ms == start + 150
    (shown,) = (await server.described()).tokens
    assert (shown.token_id, shown.hmac, shown.expiry_timestamp) == (made.token_id, made.hmac, start + 150)
    assert [renewer.principal_name for renewer in shown.renewers] == ["bob"]
    assert (await server.expire(made.hmac, 10)).expiry_timestamp_ms == start + 60
    assert (await server.expire(made.hmac)).expiry_timestamp_ms == start + 50
    assert (await server.described()).tokens == []


async def test_the_hmac_is_the_one_that_every_broker_with_the_key_finds() -> None:
    made = await TokenServer().create()
    assert TokenSecret(b"CANARY-key").hmac_of(made.token_id) == made.hmac
    assert TokenSecret(b"other").hmac_of(made.token_id) != made.hmac


async def test_a_token_for_somebody_else() -> None:
    server = TokenServer()
    made = await server.create(owner_principal_type="User", owner_principal_name="carol")
    assert (made.principal_name, made.token_requester_principal_name) == ("carol", "alice")
    assert len((await server.described()).tokens) == 1, "who asked for it"
    assert len((await server.described(["alice"])).tokens) == 1
    refused = await server.renew(made.hmac)
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    server.asks = Identity(user("carol"))
    assert len((await server.described()).tokens) == 1
    assert (await server.renew(made.hmac)).error_code == 0


async def test_only_owners_and_renewers_see_and_change_a_token() -> None:
    server = TokenServer()
    made = await server.create("bob")
    server.asks = Identity(user("mallory"))
    assert (await server.described()).tokens == []
    assert (await server.renew(made.hmac)).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert (await server.expire(made.hmac)).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    server.asks = Identity(user("bob"))
    assert len((await server.described(["alice"])).tokens) == 1
    assert len((await server.described(["bob"])).tokens) == 1, "as a renewer"
    assert (await server.described(["carol"])).tokens == []
    assert (await server.described([])).tokens == []


async def test_what_is_no_token_is_not_found() -> None:
    server = TokenServer()
    await server.create()
    for hmac in (b"", b"\0" * 64, b"x" * 1000):
        assert (await server.renew(hmac)).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
        assert (await server.expire(hmac)).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


async def test_errors_of_a_token() -> None:
    server = TokenServer()
    made = await server.create()
    server.now_ms += 101
    assert (await server.renew(made.hmac)).error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED
    refused = await server.create(owner_principal_type="Group", owner_principal_name="g")
    assert (refused.error_code, refused.hmac) == (ErrorCode.INVALID_PRINCIPAL_TYPE, b"")
    server.controller.time_out()
    assert (await server.create()).error_code == ErrorCode.REQUEST_TIMED_OUT


async def codes(server: TokenServer) -> set[int]:
    answers: list[Message] = [
        await server.create(),
        await server.described(),
        await server.renew(b"\0" * 64),
        await server.expire(b"\0" * 64),
    ]
    return {getattr(answer, "error_code", -1) for answer in answers}


async def test_who_may_not_ask_is_told_before_what_is_switched_off() -> None:
    anonymous = TokenServer(ANONYMOUS, key=None)
    assert await codes(anonymous) == {ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED}
    with_token = TokenServer()
    with_token.asks = Identity(user("alice"), token_authenticated=True)
    assert await codes(with_token) == {ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED}
    assert await codes(TokenServer(key=None)) == {ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED}
    for server in (anonymous, with_token):
        assert len(server.cluster.image.tokens) == 0


async def test_no_secret_is_printed() -> None:
    server = TokenServer()
    made = await server.create()
    text = repr(made) + repr(await server.described()) + repr(RenewDelegationTokenRequest(hmac=made.hmac))
    assert repr(made.hmac) not in text
    assert "(hidden)" in text


DESCRIBE, TOKENS_OF = Operation.DESCRIBE, Operation.DESCRIBE_TOKENS


async def test_rights_show_tokens_of_others() -> None:
    server = TokenServer()
    made = await server.create()
    await server.create()
    server.asks = Identity(user("auditor"))

    async def shown(*rules: tuple[Operation, ResourceType, str], mode: Mode = "enforce") -> int:
        index = AclIndex(
            AclRule(kind, name, PatternType.LITERAL, "User:auditor", WILDCARD, operation, Permission.ALLOW)
            for operation, kind, name in rules
        )
        server.rights = Authorizer(index, mode=mode).rights_of("User:auditor", "10.0.0.1")
        return len((await server.described()).tokens)

    assert await shown() == 0
    assert await shown(mode="shadow") == 0, "no secret is shown because rules are only tried"
    assert await shown((TOKENS_OF, ResourceType.USER, "User:alice"), mode="shadow") == 2
    assert await shown((DESCRIBE, ResourceType.DELEGATION_TOKEN, made.token_id)) == 1
    assert await shown((TOKENS_OF, ResourceType.USER, "User:alice")) == 2
    assert await shown((TOKENS_OF, ResourceType.USER, "User:bob"), (DESCRIBE, ResourceType.TOPIC, "*")) == 0


async def test_older_versions_do_not_tell_who_asked() -> None:
    for key in (None, b"CANARY-key"):
        server = TokenServer(key=key)
        for version in (1, 2, 3):
            request = CreateDelegationTokenRequest(max_lifetime_ms=-1)
            answer = await server.ask(request, CreateDelegationTokenResponse, version)
            disabled = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
            assert answer.error_code == (disabled if key is None else ErrorCode.NONE)
            assert answer.principal_name == "alice"
            assert answer.token_requester_principal_name == ("alice" if version == 3 else "")


@pytest.mark.parametrize("has_authorizer", [False, True])
async def test_older_versions_do_not_tell_who_asked_for_a_token_of_another(has_authorizer: bool) -> None:
    """And yet who asked for it sees it."""
    server = TokenServer()
    await server.create(owner_principal_type="User", owner_principal_name="bob")
    if has_authorizer:
        server.rights = Authorizer(AclIndex()).rights_of("User:alice", "10.0.0.1")
    for version in (1, 2, 3):
        request = DescribeDelegationTokenRequest(owners=None)
        answer = await server.ask(request, DescribeDelegationTokenResponse, version)
        told = [(token.principal_name, token.token_requester_principal_name) for token in answer.tokens]
        assert told == [("bob", "alice" if version == 3 else "")]
