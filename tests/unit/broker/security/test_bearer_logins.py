"""OAUTHBEARER on a listener, and its library, which not every installation has."""

from __future__ import annotations

import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.security import bearer_logins as module
from headrace.broker.security.bearer_logins import bearer_logins
from headrace.config.broker import BrokerConfig
from headrace.config.listener_security import ListenerSecurity
from headrace.core.errors import ConfigError
from headrace.security.oauth import OAuthExchange
from tests.token_issuer import issuers_keys


def listener(directory: Path, mechanism: str = "OAUTHBEARER") -> ListenerSecurity:
    config = BrokerConfig.parse(
        {
            "listeners": "SASL_PLAINTEXT://:9092",
            "listener.name.sasl_plaintext.sasl.enabled.mechanisms": mechanism,
            "sasl.oauthbearer.jwks.endpoint.url": f"file://{directory}/keys.json",
            "sasl.oauthbearer.expected.issuer": "issuer",
            "sasl.oauthbearer.expected.audience": "kafka",
            "headrace.oauthbearer.allowed.directory": str(directory),
        }
    )
    return config.security_of("SASL_PLAINTEXT")


class Timers:
    def __init__(self) -> None:
        self.running = 0

    def after(self, *_: Any) -> Any:
        self.running += 1
        return SimpleNamespace(cancel=self._cancel)

    def _cancel(self) -> None:
        self.running -= 1


async def test_a_listener_with_it_makes_exchanges_until_the_stop(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_bytes(issuers_keys())
    timers = Timers()
    runtime: Any = SimpleNamespace(timers=timers)
    async with AsyncExitStack() as stops:
        make = bearer_logins(runtime, listener(tmp_path), stops)
        assert make is not None
        assert isinstance(make(), OAuthExchange)
        assert timers.running == 1
    assert timers.running == 0


async def test_a_listener_without_it_has_none(tmp_path: Path) -> None:
    runtime: Any = SimpleNamespace()
    async with AsyncExitStack() as stops:
        assert bearer_logins(runtime, listener(tmp_path, "SCRAM-SHA-512"), stops) is None


async def test_without_the_library_the_broker_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    runtime: Any = SimpleNamespace()
    async with AsyncExitStack() as stops:
        with pytest.raises(ConfigError, match=r"SASL_PLAINTEXT has OAUTHBEARER.*install headrace\[oauth\]"):
            bearer_logins(runtime, listener(tmp_path), stops)


def test_a_broker_without_it_does_not_load_the_library() -> None:
    code = "import sys, headrace.broker.process.main; print('jwt' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "False"
