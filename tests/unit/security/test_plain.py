"""PLAIN: who gets in, and that all others get the same answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.security import plain
from headrace.security.jaas import parse_login_module
from headrace.security.mechanism import INVALID_CREDENTIALS, AuthenticationFailed
from headrace.security.plain import PlainExchange
from headrace.security.principal import user

PASSWORDS = {"alice": b"secret", "bob": "gehe\u00efm".encode(), "empty": b""}


def test_the_right_password_authenticates_with_an_empty_reply() -> None:
    step = PlainExchange(PASSWORDS).step(b"\0alice\0secret")
    assert step.reply == b""
    assert step.authenticated is not None
    assert step.authenticated.principal == user("alice")
    assert step.authenticated.lifetime_ms is None
    assert step.authenticated.token_id is None


def test_a_password_beyond_ascii_is_compared_as_utf8() -> None:
    assert PlainExchange(PASSWORDS).step("\0bob\0gehe\u00efm".encode()).authenticated is not None


def test_the_own_name_may_be_the_authorization_id() -> None:
    assert PlainExchange(PASSWORDS).step(b"alice\0alice\0secret").authenticated is not None


def test_another_authorization_id_is_refused() -> None:
    with pytest.raises(AuthenticationFailed, match="authorization id"):
        PlainExchange(PASSWORDS).step(b"bob\0alice\0secret")


@pytest.mark.parametrize(
    "token",
    [
        b"\0alice\0wrong",
        b"\0nobody\0secret",
        b"\0nobody\0" + plain._NOBODYS_PASSWORD,
        b"\0alice\0secre",
        b"\0alice\0secret\0",
        b"\0alice\0secret\0more",
        b"bob\0alice\0wrong",
        b"\0alice\0",
        b"\0empty\0",
        b"\0\0secret",
        b"alice\0secret",
        b"",
        b"\0\xff\0secret",
        b"\0" + b"x" * 1025 + b"\0secret",
        b"\0alice\0" + b"x" * 9000,
    ],
)
def test_every_other_token_gets_the_same_answer(token: bytes) -> None:
    with pytest.raises(AuthenticationFailed) as raised:
        PlainExchange(PASSWORDS).step(token)
    assert str(raised.value) == INVALID_CREDENTIALS


@pytest.mark.parametrize("first", [b"\0alice\0secret", b"\0alice\0wrong"])
def test_an_exchange_takes_one_token(first: bytes) -> None:
    exchange = PlainExchange(PASSWORDS)
    try:
        exchange.step(first)
    except AuthenticationFailed:
        pass
    with pytest.raises(AuthenticationFailed):
        exchange.step(b"\0alice\0secret")


@given(st.binary(max_size=40))
def test_no_other_bytes_get_in(token: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        PlainExchange(PASSWORDS).step(token)


def test_both_kinds_of_users_cost_one_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[int, int]] = []

    def compare(left: bytes, right: bytes) -> bool:
        compared.append((len(left), len(right)))
        return left == right

    monkeypatch.setattr("hmac.compare_digest", compare)
    for name in (b"alice", b"nobody"):
        with pytest.raises(AuthenticationFailed):
            PlainExchange(PASSWORDS).step(b"\0" + name + b"\0wrong")
    assert compared == [(32, 32), (32, 32)]


def test_users_come_from_the_options_of_a_login_module() -> None:
    module = parse_login_module(
        'P required username="broker" user_alice="a" user_b.c="d=1" user_="x" user_e="";'
    )
    assert plain.passwords(module.options) == {"alice": b"a", "b.c": b"d=1"}


def test_no_password_is_in_a_text() -> None:
    exchange = PlainExchange({"alice": b"hunter2"})
    assert "hunter2" not in repr(exchange)
    with pytest.raises(AuthenticationFailed) as raised:
        exchange.step(b"\0alice\0hunter3")
    assert "hunter" not in repr(raised.value)
