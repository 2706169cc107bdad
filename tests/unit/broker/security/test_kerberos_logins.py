"""GSSAPI on a listener: its keytab in the file, and its library, which not every installation has."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import AsyncExitStack

import pytest

from headrace.broker.security import kerberos_logins as module
from headrace.broker.security.kerberos_logins import kerberos_logins, own_key
from headrace.config.broker import BrokerConfig
from headrace.config.listener_security import ListenerSecurity
from headrace.core.errors import ConfigError

MODULE = "com.sun.security.auth.module.Krb5LoginModule required"
GOOD = 'keyTab="/etc/kafka.keytab" principal="kafka/h.example@X"'


def listener(options: str = GOOD, mechanism: str = "GSSAPI", **more: str) -> ListenerSecurity:
    config = BrokerConfig.parse(
        {
            "listeners": "SASL_PLAINTEXT://:9092",
            "sasl.enabled.mechanisms": mechanism,
            "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": f"{MODULE} {options};",
            **more,
        }
    )
    return config.security_of("SASL_PLAINTEXT")


@pytest.mark.parametrize(
    "options",
    [
        GOOD,
        f"useKeyTab=true storeKey=true {GOOD}",
        f'serviceName="kafka" useTicketCache=false {GOOD}',
        'keyTab="file:/etc/kafka.keytab" principal="kafka/h.example@X"',
        'keyTab="FILE:/etc/kafka.keytab" principal="kafka/h.example@X"',
    ],
)
def test_the_options_of_javas_module_are_understood(options: str) -> None:
    assert own_key(listener(options)) == ("/etc/kafka.keytab", "kafka/h.example@X")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("", "it needs keyTab="),
        ('keyTab="/etc/kafka.keytab"', "it needs keyTab="),
        ('principal="kafka/h@X"', "it needs keyTab="),
        (f"useKeyTab=false {GOOD}", "useKeyTab has to be true"),
        ('keyTab="kafka.keytab" principal="kafka/h@X"', "the whole path of a file"),
        ('keyTab="MEMORY:x" principal="kafka/h@X"', "the whole path of a file"),
        ('keyTab="/k" principal="http/h@X"', "has to begin with sasl.kerberos.service.name, which is kafka"),
        (f'serviceName="other" {GOOD}', "serviceName is not sasl.kerberos.service.name"),
    ],
)
def test_what_cannot_be_is_refused(options: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=rf"listener.name.sasl_plaintext.gssapi.*{complaint}"):
        own_key(listener(options))


def test_the_service_may_have_another_name() -> None:
    made = listener('keyTab="/k" principal="broker/h@X"', **{"sasl.kerberos.service.name": "broker"})
    assert own_key(made).principal == "broker/h@X"


async def test_a_listener_without_it_has_none() -> None:
    async with AsyncExitStack() as stops:
        made = listener(mechanism="SCRAM-SHA-512")
        assert kerberos_logins(asyncio.get_running_loop(), made, stops) is None


async def test_without_the_library_the_broker_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    async with AsyncExitStack() as stops:
        with pytest.raises(ConfigError, match=r"SASL_PLAINTEXT has GSSAPI.*install headrace\[gssapi\]"):
            kerberos_logins(asyncio.get_running_loop(), listener(), stops)


async def test_without_the_systems_library_it_does_not_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _: True)
    monkeypatch.setitem(sys.modules, "gssapi", None)
    monkeypatch.delitem(sys.modules, "headrace.broker.kerberos.acceptor", raising=False)
    async with AsyncExitStack() as stops:
        with pytest.raises(
            ConfigError, match=r"SASL_PLAINTEXT has GSSAPI, and the library .* cannot be loaded"
        ):
            kerberos_logins(asyncio.get_running_loop(), listener(), stops)


def test_a_broker_without_it_does_not_load_the_library() -> None:
    code = (
        "import sys, headrace.broker.process.main, headrace.broker.security.kerberos_logins;"
        "print('gssapi' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "False"
