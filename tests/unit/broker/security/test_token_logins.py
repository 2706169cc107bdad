"""Who logs in with a delegation token: what is derived, when, how often, and for how long it counts."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.runtime.work_thread import Args, T, WorkThread
from headrace.broker.security import token_logins
from headrace.broker.security.delegation_tokens import DelegationTokens
from headrace.broker.security.sasl_mechanisms import ScramCredentials
from headrace.broker.security.token_logins import TokenLogins
from headrace.controller.scram_image import ScramTable
from headrace.controller.token_image import DelegationToken, TokenTable
from headrace.security.mechanism import Authenticated, AuthenticationFailed
from headrace.security.principal import user
from headrace.security.scram_client import ScramClient
from headrace.security.scram_credential import ScramMechanism
from headrace.security.token_secret import TokenSecret

ALICE = user("alice")
BOTH = pytest.mark.parametrize("mechanism", list(ScramMechanism))


class CountedThread(WorkThread):
    runs = 0

    async def run(self, work: Callable[[*Args], T], *args: *Args) -> T:
        self.runs += 1
        return await super().run(work, *args)


class Broker:
    def __init__(self) -> None:
        self.now_ms = 1_000
        self.image = SimpleNamespace(tokens=TokenTable(), scram=ScramTable())
        self.thread = CountedThread(asyncio.get_running_loop())
        self.secret = TokenSecret(b"CANARY-key")
        runtime: Any = SimpleNamespace(
            clock=SimpleNamespace(wall_ms=lambda: self.now_ms), work_thread=self.thread
        )
        metadata: Any = SimpleNamespace(image=self.image)
        self.logins = TokenLogins(runtime, metadata, DelegationTokens(self.secret))
        self.credentials = ScramCredentials(metadata, self.logins)
        self.add("id-1")

    def add(self, token_id: str, expiry_ms: int = 5_000, max_ms: int = 9_000) -> None:
        self.image.tokens.put(
            DelegationToken(token_id, ALICE, user("requester"), (user("renewer"),), 0, max_ms, expiry_ms)
        )

    def password(self, token_id: str) -> str:
        return base64.b64encode(self.secret.hmac_of(token_id)).decode()

    async def log_in(
        self, token_id: str, mechanism: ScramMechanism = ScramMechanism.SHA_256, password: str | None = None
    ) -> Authenticated | None:
        """As a connection does it: nothing is given to the exchange before what it needs is there."""
        exchange = self.credentials.exchange(mechanism)
        client = ScramClient(
            mechanism, token_id, password or self.password(token_id), "client", is_token=True
        )
        first = client.first()
        preparation = exchange.prepare(first)
        if preparation is not None:
            await preparation
        final = client.final(exchange.step(first).reply)
        assert exchange.prepare(final) is None
        last = exchange.step(final)
        client.verify(last.reply)
        return last.authenticated


@BOTH
async def test_a_token_is_its_owner_for_the_rest_of_its_life(mechanism: ScramMechanism) -> None:
    broker = Broker()
    assert await broker.log_in("id-1", mechanism) == Authenticated(ALICE, 4_000, "id-1")
    broker.now_ms = 4_900
    assert await broker.log_in("id-1", mechanism) == Authenticated(ALICE, 100, "id-1")
    broker.add("id-1", expiry_ms=100_000, max_ms=6_000)
    assert await broker.log_in("id-1", mechanism) == Authenticated(ALICE, 1_100, "id-1"), "renewed"
    assert broker.thread.runs == 1, "derived once"


@BOTH
async def test_a_token_that_is_expired_removed_or_unknown_does_not_log_in(mechanism: ScramMechanism) -> None:
    broker = Broker()
    await broker.log_in("id-1", mechanism)
    broker.now_ms = 5_001
    with pytest.raises(AuthenticationFailed):
        await broker.log_in("id-1", mechanism)
    broker.now_ms = 1_000
    broker.image.tokens.remove("id-1")
    for token_id in ("id-1", "id-2", "alice"):
        with pytest.raises(AuthenticationFailed):
            await broker.log_in(token_id, mechanism)
    assert broker.thread.runs == 1, "strangers cost no derivation"


async def test_a_wrong_secret_does_not_log_in() -> None:
    broker = Broker()
    broker.add("id-2")
    for wrong in (broker.password("id-2"), "x", broker.secret.hmac_of("id-1").hex()):
        with pytest.raises(AuthenticationFailed):
            await broker.log_in("id-1", password=wrong)


async def test_many_who_come_at_once_wait_for_one_derivation() -> None:
    broker = Broker()
    outcomes = await asyncio.gather(*(broker.log_in("id-1") for _ in range(20)))
    assert len(outcomes) == 20
    assert broker.thread.runs == 1


async def test_no_more_credentials_are_kept_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_logins, "MOST_KEPT", 2)
    broker = Broker()
    for token_id in ("id-2", "id-3"):
        broker.add(token_id)
    for token_id in ("id-1", "id-2", "id-1", "id-3", "id-1"):
        await broker.log_in(token_id)
    assert broker.thread.runs == 3, "the one that was not used for the longest time went"
    await broker.log_in("id-2")
    assert broker.thread.runs == 4


async def test_a_derivation_that_fails_lets_nobody_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker()
    reported: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reported.append(context))

    async def fail(*_: Any) -> None:
        raise RuntimeError("the thread is gone")

    monkeypatch.setattr(broker.thread, "run", fail)
    with pytest.raises(AuthenticationFailed):
        await asyncio.wait_for(broker.log_in("id-1"), 10)
    await asyncio.sleep(0)
    assert len(reported) == 1


async def test_every_broker_gives_the_same_salt_and_each_mechanism_another() -> None:
    secret, same = TokenSecret(b"key"), TokenSecret(b"key")
    salts = {secret.salt_of(token_id, each.value) for token_id in ("a", "b") for each in ScramMechanism}
    assert len(salts) == 4
    assert secret.salt_of("a", "SCRAM-SHA-256") == same.salt_of("a", "SCRAM-SHA-256")
    assert {len(salt) for salt in salts} == {16}
    assert not any(secret.hmac_of(each).startswith(tuple(salts)) for each in ("a", "b"))
