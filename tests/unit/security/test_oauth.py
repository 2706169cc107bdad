"""OAUTHBEARER's messages and its exchange, without any token being read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.completion import Completion
from headrace.security.mechanism import Authenticated, AuthenticationFailed, PreparedExchange, Step
from headrace.security.oauth import (
    INVALID_TOKEN,
    MAX_MESSAGE_BYTES,
    MAX_PAIRS,
    BearerIdentity,
    ClientMessage,
    InvalidBearerToken,
    OAuthExchange,
)
from headrace.security.principal import user

CANARY = "CANARY.abc-_~+/.x=="
#: RFC 7628, section 4.1, with another token.
OF_THE_RFC = (
    f"n,a=user@example.com,\x01host=server.example.com\x01port=143\x01auth=Bearer {CANARY}\x01\x01".encode()
)
PLAIN = f"n,,\x01auth=Bearer {CANARY}\x01\x01".encode()


def believe(token: str) -> BearerIdentity:
    assert token == CANARY
    return BearerIdentity("user@example.com", 5_000)


def refuse(_token: str) -> BearerIdentity:
    raise InvalidBearerToken("it has expired")


@pytest.mark.parametrize(
    ("message", "authorization_id"),
    [
        (OF_THE_RFC, "user@example.com"),
        (PLAIN, ""),
        (PLAIN.replace(b"Bearer ", b"bEARER   "), ""),
        (PLAIN.replace(b"n,,", b"y,a=a=2Cb=3D2C,"), "a,b=2C"),
    ],
)
def test_messages(message: bytes, authorization_id: str) -> None:
    parsed = ClientMessage.parse(message)
    assert (parsed.authorization_id, parsed.token) == (authorization_id, CANARY)
    assert "CANARY" not in repr(parsed)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer x\x01",
        b"n,,\x01auth=Bearer x\x01\x01\x01",
        b"n,,auth=Bearer x\x01\x01",
        b"p=tls-unique,,\x01auth=Bearer x\x01\x01",
        b"n,alice,\x01auth=Bearer x\x01\x01",
        b"n,a=,\x01auth=Bearer x\x01\x01",
        b"n,a=x=y,\x01auth=Bearer x\x01\x01",
        b"n,,\x01host=h\x01\x01",
        b"n,,\x01auth=Basic x\x01\x01",
        b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01auth=Bearer x y\x01\x01",
        b"n,,\x01auth=Bearer x\x00\x01\x01",
        b"n,,\x01auth=Bearer x\x01auth=Bearer y\x01\x01",
        b"n,,\x01auth=Bearer x\x01host\x01\x01",
        b"n,,\x01auth=Bearer x\x01ho-st=h\x01\x01",
        b"n,,\x01auth=Bearer \xff\x01\x01",
        b"n,,\x01auth=Bearer x"
        + b"".join(b"\x01%s=1" % (b"a" * i) for i in range(1, MAX_PAIRS + 1))
        + b"\x01\x01",
        b"n,,\x01auth=Bearer " + b"x" * MAX_MESSAGE_BYTES + b"\x01\x01",
    ],
)
def test_what_is_no_message_is_refused_without_a_look_at_the_token(message: bytes) -> None:
    exchange = OAuthExchange(believe)
    assert exchange.prepare(message) is None
    with pytest.raises(AuthenticationFailed, match="malformed"):
        exchange.step(message)
    with pytest.raises(AuthenticationFailed):
        exchange.step(PLAIN)


@given(st.binary(max_size=200))
def test_no_bytes_do_more_than_fail(message: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        OAuthExchange(believe).step(message)


def test_a_token_that_is_believed_is_its_user_for_as_long_as_it_lasts() -> None:
    for message in (PLAIN, OF_THE_RFC):
        exchange = OAuthExchange(believe)
        assert exchange.step(message) == Step(b"", Authenticated(user("user@example.com"), 5_000))
        with pytest.raises(AuthenticationFailed):
            exchange.step(message)


def test_another_authorization_id_is_refused() -> None:
    with pytest.raises(AuthenticationFailed, match="authorization id"):
        OAuthExchange(believe).step(PLAIN.replace(b"n,,", b"n,a=bob,"))


@pytest.mark.parametrize("second", [b"\x01", b"", PLAIN])
def test_a_token_that_is_not_believed_fails_after_the_clients_next_message(second: bytes) -> None:
    exchange = OAuthExchange(refuse)
    assert exchange.step(PLAIN) == Step(INVALID_TOKEN.encode())
    with pytest.raises(AuthenticationFailed) as raised:
        exchange.step(second)
    assert str(raised.value) == INVALID_TOKEN, "the peer is not told why"
    assert raised.value.reason == "it has expired"
    with pytest.raises(AuthenticationFailed):
        exchange.step(PLAIN)


def test_only_a_token_is_prepared() -> None:
    asked: list[str] = []

    def need(token: str) -> Completion[None]:
        asked.append(token)
        return Completion()

    exchange = OAuthExchange(refuse, need)
    assert isinstance(exchange, PreparedExchange)
    assert exchange.prepare(b"nonsense") is None
    assert exchange.prepare(PLAIN) is not None
    exchange.step(PLAIN)
    assert exchange.prepare(PLAIN) is None
    assert asked == [CANARY]
    assert OAuthExchange(refuse).prepare(PLAIN) is None
