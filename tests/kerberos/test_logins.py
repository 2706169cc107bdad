"""GSSAPI by hand, against a real KDC: who comes in as whom, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation

from headrace.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from headrace.security.gssapi import OFFER, REFUSED
from tests.kerberos.conftest import SERVICE, KerberosBroker
from tests.kerberos.initiator import Initiator, Session
from tests.kerberos.realm import NAME, Realm

FAILED = 58


@pytest.fixture(scope="module")
def alice(realm: Realm) -> Path:
    return realm.add("alice")


@pytest.fixture(scope="module", autouse=True)
def topics(broker: KerberosBroker) -> None:
    """One for each user that is met here."""
    for user in ("alice", "reports", "bob"):
        broker.create_topic(f"of-{user}")
        broker.allow(f"User:{user}", f"of-{user}", AclOperation.DESCRIBE)


@pytest.fixture
def session(broker: KerberosBroker) -> Iterator[Session]:
    with Session(broker.port) as made:
        yield made


@pytest.mark.parametrize("is_mutual", [False, True])
@pytest.mark.parametrize("authorization_id", ["", f"alice@{NAME}"])
def test_a_ticket_says_who_comes(
    session: Session, alice: Path, is_mutual: bool, authorization_id: str
) -> None:
    done = session.log_in(Initiator(alice, "alice", is_mutual=is_mutual), authorization_id)
    assert (done.error_code, bytes(done.auth_bytes)) == (0, b"")
    assert session.topics() == ["of-alice"]


def test_the_broker_offers_no_security_layer(session: Session, alice: Path) -> None:
    assert session.offered(Initiator(alice, "alice")) == OFFER


def test_rules_say_which_user_a_principal_is(session: Session, realm: Realm) -> None:
    keytab = realm.add("App.Reports")
    assert session.log_in(Initiator(keytab, "App.Reports")).error_code == 0
    assert session.topics() == ["of-reports"]


def test_by_default_a_user_is_the_first_part_of_a_name(session: Session, realm: Realm) -> None:
    keytab = realm.add("bob/laptop")
    assert session.log_in(Initiator(keytab, "bob/laptop")).error_code == 0
    assert session.topics() == ["of-bob"]


def _is_refused(session: Session, answer: SaslAuthenticateResponse) -> None:
    assert (answer.error_code, answer.error_message) == (FAILED, REFUSED)
    assert bytes(answer.auth_bytes) == b"", "no token of the library says why"
    assert not session.is_served()


@pytest.mark.parametrize("authorization_id", ["alice", "bob", f"bob@{NAME}", "admin", f"alice@{NAME}\0"])
def test_nobody_comes_as_another(session: Session, alice: Path, authorization_id: str) -> None:
    _is_refused(session, session.log_in(Initiator(alice, "alice"), authorization_id))


@pytest.mark.parametrize("layer", [0, 2, 4, 7])
def test_a_layer_that_is_not_offered_is_refused(session: Session, alice: Path, layer: int) -> None:
    initiator = Initiator(alice, "alice")
    session.offered(initiator)
    _is_refused(session, session.send_token(initiator.choice(layer=layer)))


def test_a_choice_that_somebody_changed_is_refused(session: Session, alice: Path) -> None:
    initiator = Initiator(alice, "alice")
    session.offered(initiator)
    changed = bytearray(initiator.choice(f"alice@{NAME}"))
    changed[-1] ^= 1
    _is_refused(session, session.send_token(bytes(changed)))


def test_a_context_alone_is_no_login(session: Session, alice: Path) -> None:
    session.offered(Initiator(alice, "alice"))
    assert not session.is_served()


def test_a_ticket_that_somebody_overheard_logs_nobody_in(
    session: Session, broker: KerberosBroker, alice: Path
) -> None:
    token = Initiator(alice, "alice").token()
    session.handshake()
    assert session.send_token(token).error_code == 0
    with Session(broker.port) as thief:
        thief.handshake()
        _is_refused(thief, thief.send_token(token))


def test_a_ticket_for_another_service_is_refused(session: Session, realm: Realm, alice: Path) -> None:
    realm.add("other/localhost")
    session.handshake()
    _is_refused(session, session.send_token(Initiator(alice, "alice", "other/localhost").token()))


@pytest.mark.parametrize("token", [b"", b"\0", b"x" * 60_000, b"`\x82\xff\xff\x06\x09" + b"\0" * 100])
def test_what_is_no_ticket_is_refused(session: Session, token: bytes) -> None:
    session.handshake()
    _is_refused(session, session.send_token(token))


def test_a_ticket_that_is_cut_or_changed_is_refused(broker: KerberosBroker, alice: Path) -> None:
    """Changed where it is encrypted: at its beginning there are names and numbers that nobody relies on."""
    token = Initiator(alice, "alice").token()
    cut = [token[:at] for at in range(0, len(token), 97)]
    changed = [_changed(token, at) for at in range(len(token) - 150, len(token), 31)]
    for wrong in (*cut, *changed):
        with Session(broker.port) as session:
            session.handshake()
            _is_refused(session, session.send_token(wrong))
    with Session(broker.port) as session:
        session.handshake()
        assert session.send_token(token).error_code == 0


def _changed(token: bytes, at: int) -> bytes:
    return token[:at] + bytes([token[at] ^ 0x20]) + token[at + 1 :]


@pytest.mark.parametrize(("again", "error"), [("alice", 0), ("carol", FAILED)])
def test_a_session_goes_on_as_the_same_user_alone(
    session: Session, realm: Realm, alice: Path, again: str, error: int
) -> None:
    first = session.log_in(Initiator(alice, "alice"))
    assert 0 < first.session_lifetime_ms <= 3_600_000, "connections.max.reauth.ms, not the ticket's life"
    keytab = alice if again == "alice" else realm.add(again)
    assert session.log_in(Initiator(keytab, again)).error_code == error
    assert session.is_served() == (error == 0)


def test_a_new_key_of_the_broker_counts_without_a_restart(
    broker: KerberosBroker, realm: Realm, keytab: Path, alice: Path
) -> None:
    old = Initiator(alice, "alice")
    realm.change_key(SERVICE)
    with Session(broker.port) as session:
        session.handshake()
        _is_refused(session, session.send_token(Initiator(alice, "alice").token()))
    assert realm.export(SERVICE) == keytab
    for initiator in (Initiator(alice, "alice"), old):
        with Session(broker.port) as session:
            assert session.log_in(initiator).error_code == 0
