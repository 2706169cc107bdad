"""Key stores and trust stores in every form, and what is said of those that cannot be used."""

from __future__ import annotations

import ssl
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.config.secret import Secret
from headrace.config.tls_properties import KeyStore, TrustStore
from headrace.core.errors import ConfigError
from headrace.tls import pem
from headrace.tls.contexts import load_identity, load_trusted
from headrace.tls.stores import Identity, read_identity, read_trusted
from tests.certificates import Authority, chain, encrypted_key

CANARY = "canary-77c1"
NO_KEYS = KeyStore("JKS", None, None, None, None, None)
NO_TRUST = TrustStore("JKS", None, None, None)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def loads(identity: Identity) -> None:
    load_identity(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), identity)


def anchors(trusted: bytes) -> int:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    load_trusted(context, trusted)
    return len(context.get_ca_certs())


@pytest.mark.parametrize("type", ["PEM", "JKS"])
def test_a_pem_file(authority: Authority, type: str) -> None:
    path = authority.issue("broker")
    loads(read_identity(replace(NO_KEYS, type=type, location=str(path))))


@pytest.mark.parametrize("type", ["PKCS12", "JKS"])
def test_a_pkcs12_file(authority: Authority, type: str) -> None:
    path = authority.as_pkcs12(authority.issue("broker"), CANARY)
    identity = read_identity(replace(NO_KEYS, type=type, location=str(path), password=Secret(CANARY)))
    loads(identity)
    assert CANARY not in repr(identity)


@pytest.mark.parametrize("joint", ["\n", " ", ""])
def test_texts_with_an_encrypted_key_however_their_lines_are_joined(authority: Authority, joint: str) -> None:
    path = authority.issue("broker")
    key, certificates = encrypted_key(path, CANARY), chain(path)
    store = replace(
        NO_KEYS,
        key=Secret(key.replace("\n", joint)),
        certificate_chain=Secret(certificates.replace("\n", joint)),
        key_password=Secret(CANARY),
    )
    loads(read_identity(store))


def test_trusted_certificates_in_every_form(authority: Authority) -> None:
    text = Secret(authority.pem.decode())
    assert anchors(read_trusted(replace(NO_TRUST, certificates=text))) == 1
    assert anchors(read_trusted(replace(NO_TRUST, location=str(authority.trust_store)))) == 1
    java = authority.as_trusted_pkcs12(CANARY)
    store = TrustStore("PKCS12", str(java), Secret(CANARY), None)
    assert anchors(read_trusted(store)) == 1


def test_every_certificate_of_a_file_is_trusted(tmp_path: Path) -> None:
    both = tmp_path / "both.pem"
    both.write_bytes(Authority(tmp_path).pem + b"# another\n" + Authority(tmp_path).pem)
    assert anchors(read_trusted(replace(NO_TRUST, location=str(both)))) == 2


@pytest.mark.parametrize(
    ("content", "type", "complaint"),
    [
        (b"\xfe\xed\xfe\xed rest", "JKS", r"keytool -importkeystore -srckeystore .*-deststoretype PKCS12"),
        (b"\xfe\xed\xfe\xed rest", "PKCS12", "JKS store"),
        (b"hello", "JKS", "is not PEM or PKCS12"),
        (b"", "JKS", "is not PEM or PKCS12"),
        (b"\x30\x82", "PEM", r"is not PEM but PKCS12: set ssl\.keystore\.type"),
        (b"\x30\x82", "PKCS12", r"ssl\.keystore\.password is wrong, or the file is"),
        (b"-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----", "PEM", "no private key"),
        (b"-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----", "PEM", "no certificate"),
        (b"-----BEGIN PRIVATE KEY-----\nAA==\n", "PEM", "no private key"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path: Path, content: bytes, type: str, complaint: str) -> None:
    path = tmp_path / "store"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=complaint):
        read_identity(replace(NO_KEYS, type=type, location=str(path)))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_identity(replace(NO_KEYS, location=str(tmp_path / "none")))


def test_a_file_without_an_end_is_not_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "huge"
    path.write_bytes(b"x" * 100)
    monkeypatch.setattr("headrace.tls.stores.MAX_STORE_BYTES", 99)
    with pytest.raises(ConfigError, match="more than 99 bytes"):
        read_identity(replace(NO_KEYS, location=str(path)))


def test_a_trust_store_is_no_key_store_and_the_reverse(authority: Authority) -> None:
    java = authority.as_trusted_pkcs12(CANARY)
    with pytest.raises(ConfigError, match="is it a trust store"):
        read_identity(KeyStore("PKCS12", str(java), Secret(CANARY), None, None, None))
    with pytest.raises(ConfigError, match="no certificate to trust"):
        read_trusted(replace(NO_TRUST, certificates=Secret("nothing")))


@pytest.mark.parametrize(("password", "problem"), [(None, "not set"), ("wrong", "wrong")])
def test_a_key_that_cannot_be_decrypted(authority: Authority, password: str | None, problem: str) -> None:
    path = authority.issue("broker")
    store = replace(
        NO_KEYS,
        key=Secret(encrypted_key(path, CANARY)),
        certificate_chain=Secret(chain(path)),
        key_password=None if password is None else Secret(password),
    )
    with pytest.raises(ConfigError, match=f"ssl.key.password is {problem}") as caught:
        loads(read_identity(store))
    assert CANARY not in str(caught.value)


def test_the_password_of_a_pkcs12_store_is_not_repeated(authority: Authority) -> None:
    path = authority.as_pkcs12(authority.issue("broker"), "right")
    with pytest.raises(ConfigError, match="password is wrong") as caught:
        read_identity(KeyStore("PKCS12", str(path), Secret(CANARY), None, None, None))
    assert CANARY not in str(caught.value)


def test_a_key_of_another_certificate(authority: Authority) -> None:
    mine, others = authority.issue("mine"), authority.issue("others")
    store = replace(NO_KEYS, key=Secret(encrypted_key(mine, "")), certificate_chain=Secret(chain(others)))
    with pytest.raises(ConfigError, match="not that of the first certificate"):
        loads(read_identity(store))


def test_certificates_that_are_none() -> None:
    broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    with pytest.raises(ConfigError, match="cannot be used"):
        load_trusted(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), broken.encode())


def test_an_old_encrypted_key_keeps_its_headers() -> None:
    body = b"\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n"
    text = b"-----BEGIN EC PRIVATE KEY-----" + body + b"-----END EC PRIVATE KEY-----\n"
    assert pem.private_key(b"junk\n" + text) == text
    assert "AAAA" not in repr(pem.blocks(text))
