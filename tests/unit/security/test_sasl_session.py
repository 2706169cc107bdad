"""The session of a connection, case by case as Kafka answers."""

from __future__ import annotations

import pytest

from headrace.core.completion import Completion
from headrace.protocol.error_codes import ErrorCode
from headrace.security import sasl_session
from headrace.security.mechanism import Authenticated, AuthenticationFailed, Step
from headrace.security.plain import PlainExchange
from headrace.security.principal import user
from headrace.security.sasl_session import AuthenticateReply, Handshake, SaslSession, State

RIGHT, WRONG, BOB = b"\0alice\0secret", b"\0alice\0wrong", b"\0bob\0secret"
ALICE = Authenticated(user("alice"))
MECHANISMS = ("PLAIN", "OTHER", "EXPIRING", "CHATTY", "BROKEN")


class Expiring:
    """Authenticates with what the token says is left of it."""

    def step(self, token: bytes) -> Step:
        return Step(b"done", Authenticated(user("alice"), int(token)))


class Chatty:
    """Never comes to an end."""

    def step(self, token: bytes) -> Step:
        return Step(token)


class Broken:
    def step(self, token: bytes) -> Step:
        raise RuntimeError("ours")


def session(reauth_ms: int = 0) -> SaslSession:
    def plain() -> PlainExchange:
        return PlainExchange({"alice": b"secret", "bob": b"secret"})

    return SaslSession(
        {"PLAIN": plain, "OTHER": plain, "EXPIRING": Expiring, "CHATTY": Chatty, "BROKEN": Broken},
        reauth_ms=reauth_ms,
    )


def ready(reauth_ms: int = 0, now_ms: int = 0) -> SaslSession:
    made = session(reauth_ms)
    made.on_handshake(1, "PLAIN", now_ms)
    made.on_authenticate(1, RIGHT, now_ms)
    assert made.authenticated == ALICE
    return made


def is_closed(closed: SaslSession, now_ms: int = 0) -> bool:
    """Takes nothing more, of any kind."""
    return (
        closed.state is State.CLOSED
        and not closed.on_api_versions(now_ms)
        and not closed.on_other_request(now_ms)
        and closed.on_handshake(1, "PLAIN", now_ms) is None
        and closed.on_authenticate(1, RIGHT, now_ms) is None
        and closed.on_raw_token(RIGHT, now_ms) is None
    )


def test_the_codes_are_those_of_the_wire() -> None:
    assert [
        sasl_session.NONE,
        sasl_session.UNSUPPORTED_SASL_MECHANISM,
        sasl_session.ILLEGAL_SASL_STATE,
        sasl_session.SASL_AUTHENTICATION_FAILED,
    ] == [
        ErrorCode.NONE,
        ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        ErrorCode.ILLEGAL_SASL_STATE,
        ErrorCode.SASL_AUTHENTICATION_FAILED,
    ]


def test_versions_handshake_token_requests() -> None:
    made = session()
    assert made.on_api_versions(0)
    assert made.on_handshake(1, "PLAIN", 0) == Handshake(0, MECHANISMS)
    assert made.state is State.TOKENS
    assert made.on_authenticate(2, RIGHT, 5) == AuthenticateReply(0, None, b"", 0)
    assert made.authenticated == ALICE
    assert made.expires_at_ms is None
    assert made.on_api_versions(6)
    assert made.on_other_request(10**12)


def test_an_unknown_mechanism_gets_the_list_and_is_closed() -> None:
    made = session()
    assert made.on_handshake(1, "plain", 0) == Handshake(33, MECHANISMS, close_after=True)
    assert is_closed(made)


def test_after_a_handshake_of_version_0_tokens_have_no_header() -> None:
    made = session()
    assert made.on_handshake(0, "PLAIN", 0) == Handshake(0, MECHANISMS)
    assert made.state is State.RAW_TOKENS
    assert made.on_raw_token(RIGHT, 0) == b""
    assert made.authenticated == ALICE
    assert made.on_other_request(1)


def test_a_wrong_raw_token_is_closed_without_an_answer() -> None:
    made = session()
    made.on_handshake(0, "PLAIN", 0)
    assert made.on_raw_token(WRONG, 0) is None
    assert made.failure is not None
    assert is_closed(made)


@pytest.mark.parametrize("version", [0, 1])
def test_tokens_of_the_other_kind_are_closed(version: int) -> None:
    made = session()
    made.on_handshake(version, "PLAIN", 0)
    assert (made.on_raw_token(RIGHT, 0) if version else made.on_authenticate(1, RIGHT, 0)) is None
    assert is_closed(made)
    assert made.failure is None


def test_a_wrong_password_is_answered_and_closed() -> None:
    made = session()
    made.on_handshake(1, "PLAIN", 0)
    text = str(AuthenticationFailed())
    assert made.on_authenticate(1, WRONG, 0) == AuthenticateReply(58, text, close_after=True)
    assert made.failure is not None
    assert is_closed(made)


def test_another_request_first_is_closed() -> None:
    made = session()
    assert not made.on_other_request(0)
    assert is_closed(made)


def test_a_token_before_the_handshake_is_closed() -> None:
    made = session()
    assert made.on_authenticate(1, RIGHT, 0) is None
    assert is_closed(made)


@pytest.mark.parametrize("ask", [SaslSession.on_api_versions, SaslSession.on_other_request])
@pytest.mark.parametrize("version", [0, 1])
def test_nothing_else_is_taken_between_handshake_and_token(ask: object, version: int) -> None:
    made = session()
    made.on_handshake(version, "PLAIN", 0)
    assert callable(ask)
    assert ask(made, 0) is False
    assert is_closed(made)


def test_a_second_handshake_before_the_token_is_answered_and_closed() -> None:
    made = session()
    made.on_handshake(1, "PLAIN", 0)
    assert made.on_handshake(1, "PLAIN", 0) == Handshake(34, (), close_after=True)
    assert is_closed(made)


def test_without_reauthentication_another_handshake_or_token_is_an_error_and_the_session_goes_on() -> None:
    made = ready()
    assert made.on_handshake(1, "PLAIN", 10**6) == Handshake(34)
    answer = made.on_authenticate(1, RIGHT, 10**6)
    assert answer is not None
    assert (answer.error_code, answer.close_after) == (34, False)
    assert made.on_other_request(10**6)


def test_tokens_are_bounded_in_size() -> None:
    made = session()
    made.on_handshake(1, "CHATTY", 0)
    assert made.on_authenticate(1, bytes(65536), 0) == AuthenticateReply(0, None, bytes(65536))
    answer = made.on_authenticate(1, bytes(65537), 0)
    assert answer is not None
    assert answer.error_code == 58
    assert is_closed(made)


def test_tokens_are_bounded_in_number() -> None:
    made = session()
    made.on_handshake(1, "CHATTY", 0)
    answers = [made.on_authenticate(1, b"", 0) for _ in range(17)]
    assert [each.error_code for each in answers if each is not None] == [0] * 16 + [58]
    assert is_closed(made)


def test_an_error_of_ours_leaves_a_closed_session() -> None:
    made = session()
    made.on_handshake(1, "BROKEN", 0)
    with pytest.raises(RuntimeError):
        made.on_authenticate(1, b"", 0)
    assert is_closed(made)


def test_a_session_ends_after_its_time() -> None:
    made = session(reauth_ms=5000)
    made.on_handshake(1, "PLAIN", 100)
    assert made.on_authenticate(1, RIGHT, 200) == AuthenticateReply(0, None, b"", 5000)
    assert made.expires_at_ms == 5200
    assert made.on_other_request(5200)
    assert not made.on_other_request(5201)
    assert is_closed(made, 5201)


def test_a_client_of_version_0_is_not_told_and_its_session_ends_all_the_same() -> None:
    made = session(reauth_ms=5000)
    made.on_handshake(1, "PLAIN", 0)
    assert made.on_authenticate(0, RIGHT, 0) == AuthenticateReply(0, None, b"", 0)
    assert not made.on_other_request(5001)


@pytest.mark.parametrize(
    ("reauth_ms", "left_ms", "ends_ms"), [(0, 700, 1700), (500, 700, 1600), (5000, 700, 1700)]
)
def test_a_session_does_not_outlive_its_credential(reauth_ms: int, left_ms: int, ends_ms: int) -> None:
    made = session(reauth_ms)
    made.on_handshake(1, "EXPIRING", 1000)
    answer = made.on_authenticate(1, str(left_ms).encode(), 1100)
    assert answer is not None
    assert made.expires_at_ms == ends_ms
    assert answer.session_lifetime_ms == ends_ms - 1100


@pytest.mark.parametrize("left_ms", [-5, 0, 100])
def test_a_credential_that_has_expired_authenticates_nobody(left_ms: int) -> None:
    made = session()
    made.on_handshake(1, "EXPIRING", 1000)
    answer = made.on_authenticate(1, str(left_ms).encode(), 1100)
    assert answer is not None
    assert answer.error_code == 58
    assert made.authenticated is None
    assert is_closed(made)


@pytest.mark.parametrize("now_ms", [10, 5000, 6000])
def test_a_session_is_prolonged_in_place_also_after_its_end(now_ms: int) -> None:
    made = ready(reauth_ms=5000)
    assert made.on_handshake(1, "PLAIN", now_ms) == Handshake(0, MECHANISMS)
    assert made.authenticated == ALICE, "requests that came before are answered with it"
    assert made.on_authenticate(1, RIGHT, now_ms) == AuthenticateReply(0, None, b"", 5000)
    assert made.state is State.READY
    assert made.expires_at_ms == now_ms + 5000
    assert made.on_other_request(now_ms + 5000)


def test_only_the_second_authentication_is_one_again() -> None:
    made = session(reauth_ms=5000)
    seen = [made.is_reauthenticating]
    for now_ms in (0, 10):
        made.on_handshake(1, "PLAIN", now_ms)
        seen.append(made.is_reauthenticating)
        made.on_authenticate(1, RIGHT, now_ms)
        seen.append(made.is_reauthenticating)
    assert seen == [False, False, False, True, False]


def test_requests_wait_until_the_session_is_prolonged() -> None:
    made = ready(reauth_ms=5000)
    made.on_handshake(1, "PLAIN", 10)
    assert not made.on_other_request(11)
    assert is_closed(made)


def test_a_session_is_prolonged_once_a_second() -> None:
    made = ready(reauth_ms=5000)
    made.on_handshake(1, "PLAIN", 10)
    made.on_authenticate(1, RIGHT, 20)
    assert made.on_handshake(1, "PLAIN", 1009) == Handshake(34)
    assert made.on_other_request(1009)
    assert made.on_handshake(1, "PLAIN", 1010) == Handshake(0, MECHANISMS)


def test_a_handshake_that_is_too_early_and_after_the_end_is_closed() -> None:
    made = ready(reauth_ms=100)
    made.on_handshake(1, "PLAIN", 10)
    made.on_authenticate(1, RIGHT, 20)
    assert made.on_handshake(1, "PLAIN", 121) is None
    assert is_closed(made, 121)


def test_a_token_without_a_handshake_after_the_end_is_closed() -> None:
    made = ready(reauth_ms=100)
    assert made.on_authenticate(1, RIGHT, 101) is None
    assert is_closed(made, 101)


@pytest.mark.parametrize(
    ("mechanism", "token", "why"),
    [("OTHER", RIGHT, "mechanism"), ("PLAIN", BOB, "principal"), ("PLAIN", WRONG, "password")],
)
def test_mechanism_and_principal_stay(mechanism: str, token: bytes, why: str) -> None:
    made = ready(reauth_ms=5000)
    assert made.on_handshake(1, mechanism, 10) == Handshake(0, MECHANISMS)
    answer = made.on_authenticate(1, token, 10)
    assert answer is not None
    assert (answer.error_code, answer.close_after) == (58, True)
    assert why in (answer.error_message or "")
    assert made.authenticated == ALICE
    assert made.failure is not None
    assert is_closed(made, 10)


def test_an_unknown_mechanism_closes_a_session_that_would_be_prolonged() -> None:
    made = ready(reauth_ms=5000)
    assert made.on_handshake(1, "NONE", 10) == Handshake(33, MECHANISMS, close_after=True)
    assert is_closed(made, 10)


def test_no_token_is_in_a_text() -> None:
    assert "canary" not in repr(AuthenticateReply(0, None, b"canary"))


class Prepared:
    """Notes what it was asked to prepare."""

    def __init__(self) -> None:
        self.tokens: list[bytes] = []

    def prepare(self, token: bytes) -> Completion[None]:
        self.tokens.append(token)
        return Completion()

    def step(self, token: bytes) -> Step:
        return Step(b"", Authenticated(user("alice")))


@pytest.mark.parametrize("version", [0, 1])
def test_only_a_token_that_is_due_is_prepared(version: int) -> None:
    exchange = Prepared()
    made = SaslSession({"SLOW": lambda: exchange})
    assert made.preparation(b"early") is None
    made.on_handshake(version, "SLOW", 0)
    assert made.preparation(bytes(sasl_session.MAX_TOKEN_BYTES + 1)) is None
    assert made.preparation(b"due") is not None
    if version:
        made.on_authenticate(1, b"due", 0)
    else:
        made.on_raw_token(b"due", 0)
    assert made.state is State.READY
    assert made.preparation(b"late") is None
    assert exchange.tokens == [b"due"]


def test_most_mechanisms_prepare_nothing() -> None:
    made = session()
    made.on_handshake(1, "PLAIN", 0)
    assert made.preparation(RIGHT) is None
