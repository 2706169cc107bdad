"""The library behind a listener: what it accepts, and the words that it has for the broker's log."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from headrace.broker.security.kerberos_logins import kerberos_logins
from headrace.broker.security.threaded_exchange import ThreadedExchange
from headrace.config.broker import BrokerConfig
from headrace.core.errors import ConfigError
from headrace.security.gssapi import OFFER, ContextRefused
from headrace.security.mechanism import Authenticated
from headrace.security.principal import user
from tests.kerberos.conftest import MODULE, SERVICE
from tests.kerberos.initiator import Initiator
from tests.kerberos.realm import NAME, Realm

OWN = f"{SERVICE}@{NAME}"


@pytest.fixture(scope="module")
def alice(realm: Realm) -> Path:
    return realm.add("alice")


def test_the_default_realm_is_that_of_the_file(realm: Realm) -> None:
    from headrace.broker.kerberos.acceptor import default_realm

    assert default_realm() == NAME


@pytest.mark.parametrize("is_mutual", [False, True])
def test_a_context_has_the_peers_whole_name_once_it_is_established(
    keytab: Path, alice: Path, is_mutual: bool
) -> None:
    from headrace.broker.kerberos.acceptor import Acceptor

    context, initiator = Acceptor(str(keytab), OWN).context(), Initiator(alice, "alice", is_mutual=is_mutual)
    assert not context.peer
    answer = context.accept(initiator.token())
    assert bool(answer) == is_mutual
    assert context.peer == f"alice@{NAME}"
    if is_mutual:
        assert initiator.token(answer) == b""
    assert initiator.unwrap(context.wrap(b"offer")) == b"offer"
    assert context.unwrap(initiator.choice("x")) == b"\x01\0\0\0x"


def test_why_a_token_is_refused(realm: Realm, keytab: Path, alice: Path) -> None:
    from headrace.broker.kerberos.acceptor import Acceptor

    acceptor = Acceptor(str(keytab), OWN)
    token = Initiator(alice, "alice").token()
    acceptor.context().accept(token)
    with pytest.raises(ContextRefused, match=r"(?i)replay"):
        acceptor.context().accept(token)
    with pytest.raises(ContextRefused):
        acceptor.context().accept(b"no token")
    with pytest.raises(ContextRefused, match="a token that is no ticket"):
        acceptor.context().accept(_of_another_kind(Initiator(alice, "alice").token()))
    realm.add("other/localhost")
    with pytest.raises(ContextRefused, match="other/localhost"):
        acceptor.context().accept(Initiator(alice, "alice", "other/localhost").token())


def test_without_a_replay_cache_nobody_comes_in(
    keytab: Path, alice: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headrace.broker.kerberos.acceptor import Acceptor

    monkeypatch.setenv("KRB5RCACHENAME", f"file2:{tmp_path}/missing/replay-cache")
    with pytest.raises(ContextRefused):
        Acceptor(str(keytab), OWN).context().accept(Initiator(alice, "alice").token())


async def test_a_listener_makes_its_steps_in_a_thread(keytab: Path, alice: Path) -> None:
    config = BrokerConfig.parse(
        {
            "listeners": "SASL_PLAINTEXT://:9092",
            "sasl.enabled.mechanisms": "GSSAPI",
            "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": (
                f'{MODULE} keyTab="{keytab}" principal="{OWN}";'
            ),
        }
    )
    loop, initiator = asyncio.get_running_loop(), Initiator(alice, "alice")
    async with AsyncExitStack() as stops:
        make = kerberos_logins(loop, config.security_of("SASL_PLAINTEXT"), stops)
        assert make is not None
        exchange = make()
        assert isinstance(exchange, ThreadedExchange)
        token = initiator.token()
        await exchange.prepare(token)
        assert initiator.unwrap(exchange.step(token).reply) == OFFER
        choice = initiator.choice()
        await exchange.prepare(choice)
        assert exchange.step(choice).authenticated == Authenticated(user("alice"))


def _of_another_kind(token: bytes) -> bytes:
    """The two bytes behind the mechanism's OID say what a token is (RFC 4121)."""
    at = token.index(b"\x01\x00n\x82")
    return token[:at] + b"\x02" + token[at + 1 :]


def test_a_ticket_is_for_the_brokers_principal_whatever_else_the_keytab_has(
    realm: Realm, keytab: Path, alice: Path, tmp_path: Path
) -> None:
    from headrace.broker.kerberos.acceptor import Acceptor

    both = tmp_path / "both.keytab"
    realm.add("http/localhost")
    for principal in (SERVICE, "http/localhost"):
        realm.export(principal, both)
    context = Acceptor(str(both), OWN).context()
    with pytest.raises(ContextRefused, match="http/localhost"):
        context.accept(Initiator(alice, "alice", "http/localhost").token())
    assert context.peer is None
    Acceptor(str(both), f"http/localhost@{NAME}").context().accept(
        Initiator(alice, "alice", "http/localhost").token()
    )


def test_a_wrapped_message_that_was_changed_is_refused(keytab: Path, alice: Path) -> None:
    from headrace.broker.kerberos.acceptor import Acceptor

    context, initiator = Acceptor(str(keytab), OWN).context(), Initiator(alice, "alice")
    context.accept(initiator.token())
    choice = initiator.choice()
    with pytest.raises(ContextRefused):
        context.unwrap(choice[:-1] + bytes([choice[-1] ^ 1]))
    with pytest.raises(ContextRefused):
        context.unwrap(b"")


def test_a_keytab_without_the_key_is_refused(realm: Realm, alice: Path) -> None:
    from headrace.broker.kerberos.acceptor import Acceptor

    with pytest.raises(ConfigError, match=f"no key of {OWN} in the keytab {alice}: "):
        Acceptor(str(alice), OWN)
