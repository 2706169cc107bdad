"""What protects the listeners and the dialer, from the file."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.security.transport import protect
from headrace.client.link import SocketDialer
from headrace.client.link_security import SecureLinks
from headrace.config.broker import BrokerConfig
from headrace.core.errors import ConfigError
from headrace.metrics.registry import BrokerMetrics
from tests.certificates import Authority

CANARY = "canary-e8d3"
JAAS = (
    f'org.apache.kafka.common.security.scram.ScramLoginModule required username="broker" password="{CANARY}";'
)


class Bench:
    def __init__(self, settings: dict[str, str]) -> None:
        self.dialer = SocketDialer()
        self.network = SimpleNamespace(tls={}, handshakes=SimpleNamespace(max_seconds=None))
        self.runtime: Any = SimpleNamespace(
            static_config=BrokerConfig.parse(settings),
            environment=SimpleNamespace(dialer=self.dialer),
            metrics=BrokerMetrics(),
            clock=SimpleNamespace(wall_ms=lambda: 1_800_000_000_000),
            log=None,
            reload_files=None,
        )

    async def protect(self) -> None:
        self.runtime.loop = asyncio.get_running_loop()
        async with AsyncExitStack() as stops:
            protect(self.runtime, self.network, stops)

    @property
    def security(self) -> SecureLinks:
        assert isinstance(self.dialer.security, SecureLinks)
        return self.dialer.security


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(test)


def tls(tmp_path: Path) -> dict[str, str]:
    authority = Authority(tmp_path)
    return {
        "ssl.keystore.location": str(authority.issue("broker")),
        "ssl.truststore.location": str(authority.trust_store),
    }


def test_without_tls_nothing_is_done() -> None:
    bench = Bench({})
    run(bench.protect())
    assert bench.dialer.security is None
    assert bench.runtime.reload_files is None
    assert bench.network.tls == {}


def test_the_listener_and_the_dialer_get_the_brokers_certificate(tmp_path: Path) -> None:
    bench = Bench({"listeners": "SSL://:0", "headrace.authentication.timeout.ms": "3000", **tls(tmp_path)})
    run(bench.protect())
    assert list(bench.network.tls) == ["SSL"]
    assert bench.network.handshakes.max_seconds == 3
    assert bench.security.context is not None
    assert bench.security.credentials is None
    assert bench.runtime.reload_files is not None


def test_brokers_that_speak_plaintext_among_themselves_dial_so(tmp_path: Path) -> None:
    bench = Bench({"listeners": "PLAINTEXT://:0,SSL://:0", **tls(tmp_path)})
    run(bench.protect())
    assert list(bench.network.tls) == ["SSL"]
    assert bench.dialer.security is None


@pytest.mark.parametrize("protocol", ["SASL_SSL", "SASL_PLAINTEXT"])
def test_a_broker_authenticates_as_its_user(tmp_path: Path, protocol: str) -> None:
    settings = {
        "listeners": f"{protocol}://:0",
        "zookeeper.connect": "zk:2181",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        f"listener.name.{protocol.lower()}.scram-sha-512.sasl.jaas.config": JAAS,
        **tls(tmp_path),
    }
    bench = Bench(settings)
    run(bench.protect())
    assert (bench.security.context is not None) == (protocol == "SASL_SSL")
    credentials = bench.security.credentials
    assert credentials is not None
    assert (credentials.mechanism, credentials.username) == ("SCRAM-SHA-512", "broker")
    assert CANARY not in repr(bench.security)


def test_a_text_without_a_user_stops_the_start() -> None:
    bench = Bench(
        {
            "listeners": "SASL_PLAINTEXT://:0",
            "zookeeper.connect": "zk:2181",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
            "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": JAAS.replace("username", "user"),
        }
    )
    with pytest.raises(ConfigError, match="are needed") as caught:
        run(bench.protect())
    assert CANARY not in str(caught.value)


def test_a_broker_without_tls_does_not_load_the_library() -> None:
    """The half second and the memory are for those who need it."""
    code = "import sys, headrace.broker.process.main; print('cryptography' in sys.modules)"

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "False"
