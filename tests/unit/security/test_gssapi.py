"""The exchange of GSSAPI, with a stand-in for Kerberos: what is due when, and who comes out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.security.gssapi import (
    MAX_CONTEXT_TOKENS,
    MAX_TOKEN_BYTES,
    MAX_WRAPPED_BYTES,
    OFFER,
    REFUSED,
    ContextRefused,
    GssapiExchange,
)
from headrace.security.kerberos_rules import KerberosRules
from headrace.security.mechanism import Authenticated, AuthenticationFailed
from headrace.security.principal import user

NAME = "alice@EXAMPLE.COM"
CANARY = "canary-5e1f"
LOCAL = KerberosRules.parse(["DEFAULT"], "EXAMPLE.COM").local_name


class Context:
    """Established by the token `last`; what it wraps begins with `W`."""

    def __init__(self, name: str = NAME, *, is_mutual: bool = False) -> None:
        self._name = name
        self._is_mutual = is_mutual
        self.peer: str | None = None
        self.calls = 0

    def accept(self, token: bytes) -> bytes:
        self.calls += 1
        if token == b"more":
            return b"go on"
        if token == b"silent":
            return b""
        if token != b"last":
            raise ContextRefused(CANARY)
        self.peer = self._name
        return b"mutual" if self._is_mutual else b""

    def wrap(self, message: bytes) -> bytes:
        return b"W" + message

    def unwrap(self, token: bytes) -> bytes:
        self.calls += 1
        if token[:1] != b"W":
            raise ContextRefused(CANARY)
        return token[1:]


def exchange(context: Context | None = None) -> GssapiExchange:
    return GssapiExchange(context or Context(), LOCAL)


def choice(authorization_id: bytes = b"", layer: int = 1, size: int = 0) -> bytes:
    return b"W" + bytes([layer]) + size.to_bytes(3, "big") + authorization_id


@pytest.mark.parametrize("authorization_id", [b"", NAME.encode()])
def test_whoever_has_no_answer_from_the_context_is_offered_no_layer_at_once(authorization_id: bytes) -> None:
    made = exchange()
    offered = made.step(b"last")
    assert (offered.reply, offered.authenticated) == (b"W" + OFFER, None)
    assert OFFER == b"\x01\0\0\0"
    done = made.step(choice(authorization_id))
    assert (done.reply, done.authenticated) == (b"", Authenticated(user("alice")))


def test_whoever_has_one_says_nothing_first() -> None:
    made = exchange(Context(is_mutual=True))
    replies = [made.step(each) for each in (b"more", b"last", b"", choice())]
    assert [each.reply for each in replies] == [b"go on", b"mutual", b"W" + OFFER, b""]
    assert [each.authenticated for each in replies] == [None, None, None, Authenticated(user("alice"))]


def test_the_size_that_a_peer_could_receive_in_a_layer_says_nothing() -> None:
    made = exchange()
    made.step(b"last")
    assert made.step(choice(size=65_536)).authenticated is not None


@pytest.mark.parametrize(
    "tokens",
    [
        [b"wrong"],
        [b""],
        [b"silent"],
        [b"x" * (MAX_TOKEN_BYTES + 1)],
        [b"more"] * (MAX_CONTEXT_TOKENS + 1),
        [b"last", b""],
        [b"last", b"not wrapped"],
        [b"last", b"W"],
        [b"last", b"W\x01\0\0"],
        [b"last", choice(layer=0)],
        [b"last", choice(layer=2)],
        [b"last", choice(layer=3)],
        [b"last", choice(layer=4)],
        [b"last", choice(b"bob@EXAMPLE.COM")],
        [b"last", choice(b"alice")],
        [b"last", choice(NAME.encode() + b"\0")],
        [b"last", choice(b"\xff")],
        [b"last", choice(b"x" * 1025)],
        [b"last", choice(b"x" * MAX_WRAPPED_BYTES)],
        [b"last", choice(), choice()],
    ],
)
def test_everything_else_is_refused_alike_and_ends_the_exchange(tokens: list[bytes]) -> None:
    made = exchange()
    for token in tokens[:-1]:
        made.step(token)
    for token in (tokens[-1], b"last", choice()):
        with pytest.raises(AuthenticationFailed) as refused:
            made.step(token)
        assert str(refused.value) == REFUSED


def test_a_token_after_the_context_is_refused() -> None:
    made = exchange(Context(is_mutual=True))
    made.step(b"last")
    with pytest.raises(AuthenticationFailed):
        made.step(choice())


@pytest.mark.parametrize("name", ["alice@OTHER.COM", "a/b/c@EXAMPLE.COM", "WELLKNOWN/ANONYMOUS@EXAMPLE.COM"])
def test_a_ticket_of_nobody_is_refused_before_anything_is_offered(name: str) -> None:
    with pytest.raises(AuthenticationFailed) as refused:
        exchange(Context(name)).step(b"last")
    assert str(refused.value) == REFUSED


def test_why_is_for_the_log_alone() -> None:
    with pytest.raises(AuthenticationFailed) as refused:
        exchange().step(b"wrong")
    assert refused.value.reason == f"Kerberos: {CANARY}"
    assert CANARY not in str(refused.value)
    assert refused.value.__cause__ is None


def test_what_is_too_large_does_not_reach_the_library() -> None:
    context = Context()
    with pytest.raises(AuthenticationFailed):
        exchange(context).step(b"x" * (MAX_TOKEN_BYTES + 1))
    assert context.calls == 0
    made = exchange(context)
    made.step(b"last")
    with pytest.raises(AuthenticationFailed):
        made.step(choice(b"x" * MAX_WRAPPED_BYTES))
    assert context.calls == 1


TOKENS = st.one_of(
    st.sampled_from([b"more", b"last", b"", choice(), choice(NAME.encode()), choice(b"bob@EXAMPLE.COM")]),
    st.binary(max_size=20),
)


@given(st.lists(TOKENS, max_size=8), st.booleans())
def test_nobody_comes_in_without_a_context_and_a_choice(tokens: list[bytes], is_mutual: bool) -> None:
    context = Context(is_mutual=is_mutual)
    made = exchange(context)
    taken = []
    for token in tokens:
        try:
            step = made.step(token)
        except AuthenticationFailed:
            return
        taken.append(token)
        if step.authenticated is not None:
            assert step.authenticated.principal == user("alice")
            start = [b"last", b""] if is_mutual else [b"last"]
            assert [each for each in taken[:-1] if each != b"more"] == start
            assert taken[-1][:2] == b"W\x01"
            assert taken[-1][5:] in (b"", NAME.encode())
