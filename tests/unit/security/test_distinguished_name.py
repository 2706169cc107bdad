"""Subjects of certificates, beside what `X500Principal.getName()` of OpenJDK 17 writes for the same bytes."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from headrace.security.distinguished_name import MAX_SUBJECT_BYTES, UnreadableName, rendered, subject_of

VECTORS: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parent / "distinguished_names.json").read_text()
)


@pytest.mark.parametrize("vector", VECTORS["rendered"], ids=lambda each: each["what"])
def test_a_subject_is_written_as_java_writes_it(vector: dict[str, str]) -> None:
    assert rendered(bytes.fromhex(vector["der"])) == vector["text"]


@pytest.mark.parametrize("vector", VECTORS["refused"], ids=lambda each: each["what"])
def test_a_subject_that_text_would_confuse_is_refused(vector: dict[str, str]) -> None:
    with pytest.raises(UnreadableName, match=vector["why"]):
        rendered(bytes.fromhex(vector["der"]))


@pytest.mark.parametrize("vector", VECTORS["rendered"], ids=lambda each: each["what"])
def test_a_subject_that_is_cut_off_is_refused(vector: dict[str, str]) -> None:
    whole = bytes.fromhex(vector["der"])
    for size in range(len(whole)):
        with pytest.raises(UnreadableName):
            rendered(whole[:size])


@given(st.sampled_from(VECTORS["rendered"]), st.data())
def test_damage_gives_a_name_or_an_error_of_ours(vector: dict[str, str], data: st.DataObject) -> None:
    damaged = bytearray.fromhex(vector["der"])
    damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        rendered(bytes(damaged))
    except UnreadableName:
        pass


@pytest.mark.parametrize(
    "oid", [b"", b"\x55\x84", b"\x55" + b"\xff" * 30 + b"\x01"], ids=["empty", "cut off", "huge"]
)
def test_an_object_identifier_that_is_none_is_refused(oid: bytes) -> None:
    attribute = bytes([6, len(oid)]) + oid + b"\x0c\x01x"
    for tag in (0x30, 0x31, 0x30):
        attribute = bytes([tag, len(attribute)]) + attribute
    with pytest.raises(UnreadableName, match="object identifier"):
        rendered(attribute)


def test_a_huge_subject_is_refused_before_it_is_read() -> None:
    with pytest.raises(UnreadableName, match=str(MAX_SUBJECT_BYTES)):
        rendered(bytes(MAX_SUBJECT_BYTES + 1))


def certificate(names: list[tuple[x509.ObjectIdentifier, str]]) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "issuer")])
    start = datetime.datetime(2026, 1, 1)
    built = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(oid, value) for oid, value in names]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=1))
    )
    return built.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)


def test_the_subject_is_found_in_a_certificate_and_not_the_issuer() -> None:
    raw = certificate([(NameOID.ORGANIZATION_NAME, "Acme, Inc."), (NameOID.COMMON_NAME, "kafka-1")])
    assert rendered(subject_of(raw)) == "CN=kafka-1,O=Acme\\, Inc."


def test_a_certificate_of_the_first_version_has_no_version_before_its_subject() -> None:
    fields = [
        b"\x02\x01\x01",
        b"\x30\x00",
        b"\x30\x00",
        b"\x30\x00",
        bytes.fromhex("300d310b300906035504030c026162"),
    ]
    signed = b"".join(fields)
    signed = bytes([0x30, len(signed)]) + signed
    assert rendered(subject_of(bytes([0x30, len(signed)]) + signed)) == "CN=ab"


@pytest.mark.parametrize("raw", [b"", b"\x30\x00", b"\x30\x02\x30\x00", b"\x30\x02\x02\x00", b"\x02\x01\x01"])
def test_what_is_no_certificate_is_refused(raw: bytes) -> None:
    with pytest.raises(UnreadableName):
        subject_of(raw)
