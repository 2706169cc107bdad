"""Any order of events, against the two rules of a session: who is authenticated, and what is served."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from headrace.security.mechanism import Authenticated, AuthenticationFailed, Step
from headrace.security.principal import Principal, user
from headrace.security.sasl_session import NONE, SaslSession, State


class Scripted:
    """Says what its token asks for, and writes down whom it has authenticated."""

    def __init__(self, said: list[Authenticated]) -> None:
        self._said = said

    def step(self, token: bytes) -> Step:
        if token == b"more":
            return Step(b"go on")
        if token == b"fail":
            raise AuthenticationFailed
        name, _, lifetime = token.decode().partition(":")
        self._said.append(Authenticated(user(name), int(lifetime) if lifetime else None))
        return Step(b"", self._said[-1])


TOKENS = st.sampled_from([b"more", b"fail", b"alice", b"alice", b"bob", b"alice:3000", b"alice:-1"])
VERSIONS = st.sampled_from([0, 1, 1, 1])
NAMES = st.sampled_from(["A", "A", "A", "B", "unknown"])


class Orders(RuleBasedStateMachine):
    reauth_ms = 0

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 0
        self.connect()

    def connect(self) -> None:
        self.said: list[Authenticated] = []
        self.first: Principal | None = None
        self.session = SaslSession(
            {"A": lambda: Scripted(self.said), "B": lambda: Scripted(self.said)}, reauth_ms=self.reauth_ms
        )

    @rule(passed_ms=st.sampled_from([0, 1, 500, 1000, 4000, 6000]))
    def time_passes(self, passed_ms: int) -> None:
        self.now_ms += passed_ms

    @rule(version=VERSIONS, mechanism=NAMES)
    def handshake(self, version: int, mechanism: str) -> None:
        before = self.session.state
        answer = self.session.on_handshake(version, mechanism, self.now_ms)
        if answer is not None and answer.error_code == NONE:
            assert before in (State.START, State.READY)
            assert mechanism != "unknown"
            assert before is State.START or self.session.expires_at_ms is not None
        self.closes(answer is None or answer.close_after)

    @rule(version=VERSIONS, token=TOKENS, is_raw=st.booleans())
    def handshake_and_token(self, version: int, token: bytes, is_raw: bool) -> None:
        """Chance alone seldom comes as far as a second authentication."""
        self.handshake(version, "A")
        if is_raw:
            self.raw_token(token)
        else:
            self.authenticate(1, token)

    @rule(version=VERSIONS, token=TOKENS)
    def authenticate(self, version: int, token: bytes) -> None:
        before, said = self.session.state, len(self.said)
        answer = self.session.on_authenticate(version, token, self.now_ms)
        if before is not State.TOKENS:
            assert len(self.said) == said, "no exchange takes a token that was not due"
        if answer is not None and answer.error_code == NONE and self.session.state is State.READY:
            assert len(self.said) == said + 1
        self.closes(answer is None or answer.close_after)

    @rule(token=TOKENS)
    def raw_token(self, token: bytes) -> None:
        before, said = self.session.state, len(self.said)
        answer = self.session.on_raw_token(token, self.now_ms)
        if before is not State.RAW_TOKENS:
            assert len(self.said) == said
            assert answer is None
        self.closes(answer is None)

    @rule()
    def api_versions(self) -> None:
        allowed = self.session.state is State.START or self.may_ask()
        assert self.session.on_api_versions(self.now_ms) is allowed
        self.closes(not allowed)

    @rule()
    def other_request(self) -> None:
        allowed = self.may_ask()
        assert self.session.on_other_request(self.now_ms) is allowed
        self.closes(not allowed)

    def may_ask(self) -> bool:
        """From what the exchanges said alone: somebody is authenticated, and the session has not ended."""
        ends = self.session.expires_at_ms
        return bool(self.said) and self.session.state is State.READY and (ends is None or self.now_ms <= ends)

    def closes(self, is_over: bool) -> None:
        """What is closed stays closed. Then somebody connects anew: no step is wasted."""
        assert (self.session.state is State.CLOSED) is is_over
        if is_over:
            said = len(self.said)
            assert self.session.on_handshake(1, "A", self.now_ms) is None
            assert self.session.on_authenticate(1, b"alice", self.now_ms) is None
            assert self.session.on_raw_token(b"alice", self.now_ms) is None
            assert not self.session.on_api_versions(self.now_ms)
            assert not self.session.on_other_request(self.now_ms)
            assert len(self.said) == said
            self.connect()

    @invariant()
    def nobody_is_authenticated_whom_no_exchange_named(self) -> None:
        who = self.session.authenticated
        assert who is None or who in self.said
        assert who is not None or self.session.state is not State.READY

    @invariant()
    def the_principal_never_changes(self) -> None:
        who = self.session.authenticated
        if who is not None:
            self.first = self.first or who.principal
            assert who.principal == self.first

    @invariant()
    def a_session_with_a_limit_has_an_end(self) -> None:
        if self.session.state is State.READY and self.reauth_ms:
            assert self.session.expires_at_ms is not None
            assert self.session.expires_at_ms <= self.now_ms + self.reauth_ms


class OrdersWithReauthentication(Orders):
    reauth_ms = 5000


Orders.TestCase.settings = settings(max_examples=60, stateful_step_count=20)
OrdersWithReauthentication.TestCase.settings = settings(max_examples=60, stateful_step_count=20)
TestOrders = Orders.TestCase
TestOrdersWithReauthentication = OrdersWithReauthentication.TestCase
