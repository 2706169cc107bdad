"""What a context lets in: versions, suites, certificates of clients and of servers."""

from __future__ import annotations

import ssl
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headrace.config.tls_properties import KeyStore, TlsProperties, TrustStore
from headrace.core.errors import ConfigError
from headrace.tls.contexts import client_context, server_context
from headrace.tls.handshake import prove
from headrace.tls.stores import read_identity, read_trusted
from headrace.tls.suites import TLS_1_2, TLS_1_3, suites
from tests.certificates import Authority

BOTH = ("TLSv1.2", "TLSv1.3")


def properties(identity: Path | None, trusted: Path | None, client_auth: str = "none") -> TlsProperties:
    keys = KeyStore("PEM", None if identity is None else str(identity), None, None, None, None)
    trust = TrustStore("PEM", None if trusted is None else str(trusted), None, None)
    return TlsProperties(keys, trust, client_auth, BOTH, (), True, "DEFAULT", False, False)


def server(given: TlsProperties) -> ssl.SSLContext:
    trusted = read_trusted(given.trust_store) if given.trust_store.is_there else None
    return server_context(given, read_identity(given.key_store), trusted)


def shake(server_side: ssl.SSLContext, client_side: ssl.SSLContext, host: str = "127.0.0.1") -> ssl.SSLObject:
    """The server's end. Raises what either side raises."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_side.wrap_bio(down, up, server_hostname=host)
    served = server_side.wrap_bio(up, down, server_side=True)
    for _ in range(6):
        for side in (client, served):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                pass
    client.write(b"x")
    assert served.read(1) == b"x"
    return served


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def at_server(authority: Authority) -> TlsProperties:
    return properties(authority.issue("broker"), authority.trust_store)


def test_a_client_that_trusts_the_authority_connects(authority: Authority, at_server: TlsProperties) -> None:
    served = shake(server(at_server), client_context(properties(None, authority.trust_store)))
    assert served.version() == "TLSv1.3"
    assert served.getpeercert() is None


@pytest.mark.parametrize("version", BOTH)
def test_only_enabled_versions_are_spoken(
    authority: Authority, at_server: TlsProperties, version: str
) -> None:
    one = server(replace(at_server, versions=(version,)))
    assert shake(one, client_context(properties(None, authority.trust_store))).version() == version
    other = replace(
        properties(None, authority.trust_store), versions=tuple(each for each in BOTH if each != version)
    )
    with pytest.raises(ssl.SSLError):
        shake(one, client_context(other))


def test_a_client_of_another_host_name_notices(authority: Authority, at_server: TlsProperties) -> None:
    client = properties(None, authority.trust_store)
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shake(server(at_server), client_context(client), "other.example")
    shake(server(at_server), client_context(replace(client, checks_host=False)), "other.example")


def test_a_client_without_a_trust_store_does_not_trust_everybody(at_server: TlsProperties) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        shake(server(at_server), client_context(properties(None, None)))


@pytest.mark.parametrize(
    ("client_auth", "shown", "passes"),
    [
        ("none", "stranger", True),
        ("requested", None, True),
        ("requested", "known", True),
        ("requested", "stranger", False),
        ("required", None, False),
        ("required", "known", True),
        ("required", "stranger", False),
        ("required", "expired", False),
    ],
)
def test_certificates_of_clients(
    authority: Authority, tmp_path: Path, client_auth: str, shown: str | None, passes: bool
) -> None:
    at_server = properties(authority.issue("broker"), authority.trust_store, client_auth)
    (tmp_path / "elsewhere").mkdir()
    past = datetime.now(UTC) - timedelta(days=1)
    identity = {
        None: None,
        "known": authority.issue("alice"),
        "stranger": Authority(tmp_path / "elsewhere").issue("alice"),
        "expired": authority.issue("late", expires=past, begins=past - timedelta(days=9)),
    }[shown]
    client = client_context(properties(identity, authority.trust_store))
    if passes:
        served = shake(server(at_server), client)
        assert (served.getpeercert(binary_form=True) is not None) == (shown == "known")
    else:
        with pytest.raises(ssl.SSLError):
            shake(server(at_server), client)


def test_a_certificate_in_the_trust_store_is_trusted_as_it_is(
    authority: Authority, at_server: TlsProperties, tmp_path: Path
) -> None:
    leaf = tmp_path / "leaf.pem"
    content = Path(str(at_server.key_store.location)).read_text()
    leaf.write_text(content[content.index("-----BEGIN CERTIFICATE-----") :])
    shake(server(at_server), client_context(properties(None, leaf)))


def test_one_ticket_and_no_renegotiation(at_server: TlsProperties) -> None:
    context = server(at_server)
    assert context.num_tickets == 1
    assert context.options & ssl.OP_NO_RENEGOTIATION
    assert context.options & ssl.OP_NO_COMPRESSION


# --- suites ---


def test_every_suite_of_ours_is_known_to_openssl() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers(":".join(TLS_1_2.values()))
    offered = {each["name"] for each in context.get_ciphers()}
    assert offered == {*TLS_1_2.values(), *TLS_1_3}


def test_the_chosen_suite_is_used(authority: Authority, at_server: TlsProperties) -> None:
    name = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
    given = replace(at_server, cipher_suites=(name,), versions=("TLSv1.2",))
    served = shake(server(given), client_context(properties(None, authority.trust_store)))
    cipher = served.cipher()
    assert cipher is not None
    assert cipher[0] == TLS_1_2[name]


@pytest.mark.parametrize(
    ("named", "versions", "complaint"),
    [
        (("TLS_RSA_WITH_3DES_EDE_CBC_SHA",), BOTH, "is not offered here"),
        (("TLS_AES_128_GCM_SHA256",), BOTH, "leaves out TLS_AES_256_GCM_SHA384"),
        (tuple(TLS_1_2), BOTH, "leaves out"),
        (tuple(TLS_1_3), ("TLSv1.2",), "no suite of the versions"),
    ],
)
def test_suites_that_cannot_be_kept_are_refused(
    named: tuple[str, ...], versions: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        suites(named, versions)


def test_suites_of_the_newest_version_alone_leave_out_the_older() -> None:
    assert suites(tuple(TLS_1_3), BOTH) == ("", ("TLSv1.3",))
    assert suites((), BOTH) == ("", BOTH)


# --- proving ---


def test_a_good_certificate_is_proved_also_where_clients_need_one(at_server: TlsProperties) -> None:
    prove(replace(at_server, client_auth="required"), read_identity(at_server.key_store))


def test_an_expired_certificate_does_not_pass(authority: Authority) -> None:
    past = datetime.now(UTC) - timedelta(days=1)
    identity = authority.issue("broker", expires=past, begins=past - timedelta(days=9))
    given = properties(identity, None)
    with pytest.raises(ConfigError, match="certificate has expired"):
        prove(given, read_identity(given.key_store))
