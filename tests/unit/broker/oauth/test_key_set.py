"""Keys while a broker runs: when they are fetched, and that a stranger cannot have them fetched at will."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.oauth.fetching import KeysUnavailable
from headrace.broker.oauth.key_set import LOOK_FOR_KEY_MS, KeySet
from headrace.config.bearer_properties import BearerProperties
from headrace.core.errors import ConfigError
from headrace.core.timers import TimerQueue
from headrace.security.mechanism import Authenticated, Step
from headrace.security.oauth import INVALID_TOKEN
from headrace.security.principal import user
from tests.token_issuer import AUDIENCE, ISSUER, KEYS, issuers_keys, key_set, public_jwk, token

NOW = 1_800_000_000
GOOD = Step(b"", Authenticated(user("alice"), 300_000))
REFUSED = Step(INVALID_TOKEN.encode())


class Broker:
    def __init__(self, url: str = "https://issuer.example/keys", refresh_ms: int = 3_600_000) -> None:
        self.now_ms = 0
        self.fetches = 0
        self.content: Callable[[], bytes] = issuers_keys
        self.events: list[str] = []

        def note(event: str, **_: Any) -> None:
            self.events.append(event)

        loop = asyncio.get_running_loop()
        runtime: Any = SimpleNamespace(
            loop=loop,
            timers=TimerQueue(loop),
            clock=SimpleNamespace(wall_ms=lambda: 1000 * NOW),
            monotonic_ms=lambda: self.now_ms,
            log=SimpleNamespace(info=note, warning=note),
        )
        properties = BearerProperties(
            url, "/etc/headrace", ISSUER, (AUDIENCE,), "sub", 0, refresh_ms, retry_ms=1, retry_max_ms=4
        )
        self.keys = KeySet(runtime, "SASL_SSL", properties, self._fetch)

    def _fetch(self) -> bytes:
        self.fetches += 1
        return self.content()

    def fail(self) -> bytes:
        raise KeysUnavailable("it is down")

    async def log_in(self, text: str) -> Step:
        exchange = self.keys.exchange()
        message = f"n,,\x01auth=Bearer {text}\x01\x01".encode()
        preparation = exchange.prepare(message)
        if preparation is not None:
            await preparation
        return exchange.step(message)


Make = Callable[..., Broker]


@pytest.fixture
def broker() -> Iterator[Make]:
    """Makes one in the loop of the test."""
    made: list[Broker] = []

    def make(**settings: Any) -> Broker:
        made.append(Broker(**settings))
        return made[-1]

    yield make
    for each in made:
        each.keys.stop()


async def test_who_comes_before_the_keys_waits_for_them(broker: Make) -> None:
    made = broker()
    made.keys.open()
    outcomes = await asyncio.gather(*(made.log_in(token(now=NOW)) for _ in range(5)))
    assert outcomes == [GOOD] * 5
    assert made.fetches == 1
    assert made.events == ["keys of OAUTHBEARER fetched"]


async def test_a_key_that_is_not_known_is_looked_for_once_a_minute(broker: Make) -> None:
    made = broker()
    made.keys.open()
    assert await made.log_in(token(now=NOW)) == GOOD
    for number in range(20):
        assert await made.log_in(token(now=NOW, headers={"kid": f"strange-{number}"})) == REFUSED
    assert made.fetches == 2
    made.content = lambda: key_set(public_jwk(KEYS["RS256"], "new"))
    new = token(now=NOW, headers={"kid": "new"})
    assert await made.log_in(new) == REFUSED, "not yet"
    made.now_ms += LOOK_FOR_KEY_MS
    assert await made.log_in(new) == GOOD
    assert made.fetches == 3
    assert await made.log_in(token(now=NOW)) == REFUSED, "the old key is gone"


async def test_tokens_that_name_no_key_cause_no_fetch(broker: Make) -> None:
    made = broker()
    made.keys.open()
    await made.log_in(token(now=NOW))
    for text in ("x", "a.b.c", token(now=NOW, headers={"kid": None})):
        assert await made.log_in(text) == REFUSED
    assert made.fetches == 1


async def test_without_keys_nobody_logs_in_and_they_are_tried_again(broker: Make) -> None:
    made = broker()
    made.content = made.fail
    made.keys.open()
    assert await made.log_in(token(now=NOW)) == REFUSED
    assert made.events[0] == "keys of OAUTHBEARER not fetched"
    made.content = issuers_keys
    async with asyncio.timeout(10):
        while "keys of OAUTHBEARER fetched" not in made.events:
            await asyncio.sleep(0.001)
    assert await made.log_in(token(now=NOW)) == GOOD


@pytest.mark.parametrize("content", [b"", b'{"keys":[]}'])
async def test_an_issuer_that_is_down_locks_nobody_out(broker: Make, content: bytes) -> None:
    made = broker(refresh_ms=1)
    made.keys.open()
    await made.log_in(token(now=NOW))
    made.content = lambda: content
    async with asyncio.timeout(10):
        while "keys of OAUTHBEARER not fetched" not in made.events:
            await asyncio.sleep(0.001)
    assert await made.log_in(token(now=NOW)) == GOOD


async def test_keys_are_fetched_again_and_again(broker: Make) -> None:
    made = broker(refresh_ms=1)
    made.keys.open()
    async with asyncio.timeout(10):
        while made.fetches < 3:
            await asyncio.sleep(0.001)
    made.keys.stop()
    await asyncio.sleep(0.02)
    fetches = made.fetches
    await asyncio.sleep(0.02)
    assert made.fetches == fetches, "not after the stop"


async def test_a_file_has_to_be_there_at_the_start(broker: Make, tmp_path: Path) -> None:
    made = broker(url=f"file://{tmp_path}/keys.json")
    made.content = made.fail
    with pytest.raises(ConfigError, match="SASL_SSL: OAUTHBEARER: it is down"):
        made.keys.open()
    made.content = lambda: b'{"keys":[]}'
    with pytest.raises(ConfigError, match="no key of the set"):
        made.keys.open()
    made.content = issuers_keys
    made.keys.open()
    assert await made.log_in(token(now=NOW)) == GOOD
