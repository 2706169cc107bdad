"""Certificates of listeners: loaded, looked at, replaced, and warned of before they expire."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.security.certificates import Certificates
from headrace.broker.security.listener_tls import ListenerTls
from headrace.config.broker import BrokerConfig
from headrace.core.errors import ConfigError
from headrace.metrics.registry import BrokerMetrics
from headrace.network.tls import TlsSettings
from tests.certificates import Authority

DAY = 86_400
NOW = datetime.now(UTC)


class Log:
    """Lines as (level, event, fields)."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict[str, Any]]] = []

    def __getattr__(self, level: str) -> Callable[..., None]:
        return lambda event, **fields: self.lines.append((level, event, fields))

    def take(self) -> list[str]:
        lines, self.lines = self.lines, []
        return [f"{level}: {event} {fields}" for level, event, fields in lines]


class Clock:
    def __init__(self) -> None:
        self.seconds = NOW.timestamp()

    def wall_ms(self) -> int:
        return int(self.seconds * 1000)


class Bench:
    """What a broker has, as far as certificates use it."""

    def __init__(self, tmp_path: Path, **settings: str) -> None:
        self.authority = Authority(tmp_path)
        self.file = self.authority.issue("broker1", file="broker.pem")
        self.settings = {
            "listeners": "SSL://127.0.0.1:0",
            "ssl.keystore.location": str(self.file),
            "ssl.truststore.location": str(self.authority.trust_store),
            **settings,
        }
        self.log, self.clock, self.metrics = Log(), Clock(), BrokerMetrics()
        self.tls: dict[str, TlsSettings] = {}
        self.loaded: list[str] = []
        self.turns = 0

    def runtime(self) -> Any:
        async def offload(call: Callable[[], None]) -> None:
            await asyncio.get_running_loop().run_in_executor(None, call)

        return SimpleNamespace(
            static_config=BrokerConfig.parse(self.settings),
            log=self.log,
            clock=self.clock,
            metrics=self.metrics,
            loop=asyncio.get_running_loop(),
            offload=offload,
        )

    def certificates(self) -> Certificates:
        def on_loaded(name: str, loaded: ListenerTls) -> None:
            assert loaded.client.verify_mode is ssl.CERT_REQUIRED
            self.loaded.append(name)

        certificates = Certificates(self.runtime(), SimpleNamespace(tls=self.tls), on_loaded)
        certificates.open()
        return certificates

    def replace_file(self, name: str = "broker1", *hosts: str, **times: datetime) -> None:
        self.authority.issue(name, *hosts, file="broker.pem", **times)
        self.turns += 1
        os.utime(self.file, ns=(self.turns, self.turns))  # a coarse clock must not hide the change


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(test)


def test_a_changed_file_is_taken_and_an_unchanged_one_is_not_touched(tmp_path: Path) -> None:
    async def scenario() -> None:
        bench = Bench(tmp_path)
        certificates = bench.certificates()
        first = bench.tls["SSL"]
        await certificates.look()
        assert bench.tls["SSL"] is first
        bench.replace_file()
        await certificates.look()
        assert bench.tls["SSL"].context is not first.context
        assert bench.loaded == ["SSL", "SSL"]
        assert [line for line in bench.log.take() if "certificate reloaded" in line]
        second = bench.tls["SSL"]
        await certificates.look(is_asked=True)
        assert bench.tls["SSL"] is not second

    run(scenario())


def test_a_changed_trust_store_is_taken_as_well(tmp_path: Path) -> None:
    async def scenario() -> None:
        bench = Bench(tmp_path)
        certificates = bench.certificates()
        first = bench.tls["SSL"]
        trusted = bench.authority.trust_store
        trusted.write_bytes(trusted.read_bytes() + Authority(tmp_path / ".").pem)
        await certificates.look()
        assert bench.tls["SSL"] is not first

    run(scenario())


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda bench: bench.file.write_text("half a file"), "is not PEM"),
        (lambda bench: bench.file.unlink(), "No such file"),
        (
            lambda bench: bench.replace_file(expires=NOW - timedelta(days=1), begins=NOW - timedelta(days=9)),
            "has expired",
        ),
        (
            lambda bench: bench.replace_file(begins=NOW + timedelta(days=1), expires=NOW + timedelta(days=9)),
            "not valid yet",
        ),
        (lambda bench: bench.replace_file("broker2"), "ssl.allow.dn.changes"),
        (lambda bench: bench.replace_file("broker1", "localhost"), "does not name 127.0.0.1 any more"),
    ],
)
def test_a_bad_file_keeps_the_old_and_is_told_of_once(
    tmp_path: Path, spoil: Callable[[Bench], object], complaint: str
) -> None:
    async def scenario() -> None:
        bench = Bench(tmp_path)
        certificates = bench.certificates()
        first = bench.tls["SSL"]
        spoil(bench)
        for _ in range(3):
            await certificates.look()
        (line,) = bench.log.take()
        assert "the old one stays" in line
        assert complaint in line
        assert bench.tls["SSL"] is first
        bench.replace_file()
        await certificates.look()
        assert bench.tls["SSL"] is not first

    run(scenario())


def test_another_subject_is_taken_where_that_is_allowed(tmp_path: Path) -> None:
    async def scenario() -> None:
        bench = Bench(
            tmp_path, **{"ssl.allow.dn.changes": "true", "listener.name.ssl.ssl.allow.san.changes": "true"}
        )
        certificates = bench.certificates()
        first = bench.tls["SSL"]
        bench.replace_file("broker2", "localhost")
        await certificates.look()
        assert bench.tls["SSL"] is not first

    run(scenario())


def test_a_broker_does_not_start_with_an_expired_certificate(tmp_path: Path) -> None:
    async def scenario() -> None:
        bench = Bench(tmp_path)
        bench.replace_file(expires=NOW + timedelta(days=1), begins=NOW - timedelta(days=1))
        bench.clock.seconds += 2 * DAY
        with pytest.raises(ConfigError, match=r"the listener SSL: .*CN=broker1.* has expired: renew it"):
            bench.certificates()

    run(scenario())


def test_a_wrong_rule_stops_the_start(tmp_path: Path) -> None:
    async def scenario() -> None:
        bench = Bench(tmp_path, **{"ssl.principal.mapping.rules": "RULE:CN=(.*"})
        with pytest.raises(ConfigError, match=r"ssl\.principal\.mapping\.rules"):
            bench.certificates()

    run(scenario())


def test_an_expiry_is_warned_of_once_for_each_term(tmp_path: Path) -> None:
    async def scenario() -> None:
        bench = Bench(tmp_path)
        bench.replace_file(expires=NOW + timedelta(days=40), begins=NOW - timedelta(days=1))
        certificates = bench.certificates()
        said = []
        for days_left in (40, 31, 29, 20, 8, 6, 5, 0.9, 0.5, -0.1, -1):
            bench.clock.seconds = NOW.timestamp() + (40 - days_left) * DAY
            await certificates.look()
            said.append((days_left, len(bench.log.take())))
        assert [days for days, lines in said if lines == 1] == [29, 6, 0.9, -0.1]
        assert [lines for _, lines in said if lines not in (0, 1)] == []
        ((listener, seconds),) = bench.metrics.read_certificates()
        assert listener == "SSL"
        assert seconds == pytest.approx(-DAY, abs=2)

    run(scenario())


def test_what_zookeeper_is_shown_is_warned_of_too(tmp_path: Path) -> None:
    async def scenario() -> None:
        bench = Bench(tmp_path)
        shown = {"expires": NOW + timedelta(days=6), "begins": NOW - timedelta(days=1)}
        identity = bench.authority.issue("brokers", file="brokers.pem", **shown)
        bench.settings |= {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "zookeeper.connect": "zk1:2182",
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.ssl.keystore.location": str(identity),
            "zookeeper.ssl.truststore.location": str(bench.authority.trust_store),
        }
        certificates = bench.certificates()
        (warned,) = bench.log.take()
        assert "zookeeper" in warned
        identity.write_bytes(b"")  # being written: what was known stays
        await certificates.look()
        assert bench.log.take() == []
        bench.authority.issue("brokers", file="brokers.pem")
        await certificates.look()
        assert bench.log.take() == []
        ((name, seconds),) = bench.metrics.read_certificates()
        assert name == "zookeeper"
        assert seconds > 30 * DAY

    run(scenario())


def test_the_watch_reloads_when_it_is_asked_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.broker.security.certificates.LOOK_SECONDS", 3600.0)

    async def scenario() -> None:
        bench = Bench(tmp_path)
        certificates = bench.certificates()
        certificates.start()
        bench.replace_file()
        certificates.reload()
        async with asyncio.timeout(10):
            while len(bench.loaded) < 2:
                await asyncio.sleep(0.01)
        certificates.stop()

    run(scenario())


def test_the_watch_looks_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.broker.security.certificates.LOOK_SECONDS", 0.01)

    async def scenario() -> None:
        bench = Bench(tmp_path)
        certificates = bench.certificates()
        certificates.start()
        bench.replace_file()
        async with asyncio.timeout(10):
            while len(bench.loaded) < 2:
                await asyncio.sleep(0.01)
        certificates.stop()

    run(scenario())
