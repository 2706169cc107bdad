"""Principals in text and in Envelope's bytes; addresses as Java writes them."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.security.forwarded_principal import MAX_PRINCIPAL_BYTES, decode_principal, encode_principal
from headrace.security.hosts import decode_host, encode_host, java_host
from headrace.security.principal import ANONYMOUS, InvalidPrincipal, Principal, parse_principal, super_users

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)


def test_a_principal_is_written_with_its_type() -> None:
    assert str(Principal("User", "alice")) == "User:alice"
    assert str(ANONYMOUS) == "User:ANONYMOUS"


def test_only_the_first_colon_separates() -> None:
    assert parse_principal("User:CN=a:b,O=c") == Principal("User", "CN=a:b,O=c")


@given(NAMES)
def test_text_of_a_principal_is_read_back(name: str) -> None:
    assert parse_principal(str(Principal("User", name))) == Principal("User", name)


@pytest.mark.parametrize("text", ["", "alice", ":", "User:", ":alice"])
def test_what_has_no_type_or_name_is_refused(text: str) -> None:
    with pytest.raises(InvalidPrincipal):
        parse_principal(text)


def test_semicolons_separate_super_users() -> None:
    assert super_users(" User:a ; User:CN=b,O=c;; ") == {
        Principal("User", "a"),
        Principal("User", "CN=b,O=c"),
    }
    assert super_users("") == frozenset()
    with pytest.raises(InvalidPrincipal):
        super_users("User:a;b")


def test_the_bytes_of_a_principal_are_kafkas() -> None:
    raw = encode_principal(Principal("User", "alice"), token_authenticated=True)
    assert raw.hex() == "0000" + "0555736572" + "06616c696365" + "01" + "00"


@given(NAMES, NAMES, st.booleans())
def test_a_forwarded_principal_is_read_back(kind: str, name: str, by_token: bool) -> None:
    principal = Principal(kind, name)
    assert decode_principal(encode_principal(principal, by_token)) == (principal, by_token)


@given(st.binary(max_size=64))
def test_other_bytes_are_a_principal_or_refused(raw: bytes) -> None:
    try:
        principal, _ = decode_principal(raw)
    except InvalidPrincipal:
        return
    assert principal.type
    assert principal.name


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\0\0",
        bytes.fromhex("0001" + "0555736572" + "0261" + "00" + "00"),
        bytes.fromhex("ffff" + "0555736572" + "0261" + "00" + "00"),
        bytes.fromhex("0000" + "0555736572" + "0261" + "00" + "00" + "00"),
        bytes.fromhex("0000" + "0555736572" + "01" + "00" + "00"),
        bytes(MAX_PRINCIPAL_BYTES + 1),
    ],
    ids=["nothing", "version only", "version 1", "version -1", "a byte too many", "no name", "too long"],
)
def test_bytes_that_are_no_principal_are_refused(raw: bytes) -> None:
    with pytest.raises(InvalidPrincipal):
        decode_principal(raw)


def test_a_principal_that_nobody_would_take_is_not_forwarded() -> None:
    for name in ("", "x" * MAX_PRINCIPAL_BYTES, "x" * 40000, "\ud800"):
        with pytest.raises(InvalidPrincipal):
            encode_principal(Principal("User", name))


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:db8::00a1:0", "2001:db8:0:0:0:0:a1:0"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
    ],
)
def test_an_address_is_written_as_java_writes_it(address: str, expected: str) -> None:
    assert java_host(address) == expected


@given(st.ip_addresses())
def test_an_address_is_read_back(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    raw = encode_host(str(address))
    assert len(raw) in (4, 16)
    assert decode_host(raw) == java_host(str(address))


def test_a_mapped_address_has_four_bytes() -> None:
    assert encode_host("::ffff:10.0.0.1") == bytes([10, 0, 0, 1])
    assert decode_host(bytes(10) + b"\xff\xff" + bytes([10, 0, 0, 1])) == "10.0.0.1"


@pytest.mark.parametrize("size", [0, 3, 5, 15, 17])
def test_an_address_of_another_size_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="4 or 16"):
        decode_host(bytes(size))
