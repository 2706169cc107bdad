"""SASL on a connection: the handler of its frames until the peer has proved who it is.

The machine is pure (`security/sasl_session.py`). Here frames become its events, and its decisions become
answers. With re-authentication this stays before the dispatcher, and lets no session outlive its time.
Without it, a connection that is authenticated does not come back here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from struct import Struct
from typing import Final, NamedTuple

from headrace.broker.runtime.runtime import Runtime
from headrace.broker.security.security import Security
from headrace.config.listener_security import ListenerSecurity
from headrace.core.errors import AuthenticationRefused
from headrace.network.connection import Connection, FrameHandler
from headrace.network.response import DelayedResponse, Parts, Response
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.headers import RequestHeader, frame_response, read_request_header
from headrace.protocol.message import Message
from headrace.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from headrace.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from headrace.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from headrace.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from headrace.security.mechanism import Exchange
from headrace.security.sasl_session import SaslSession, State

_KEY: Final = Struct(">h")
_LENGTH: Final = Struct(">i")
_API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
_HANDSHAKE: Final = int(ApiKey.SASL_HANDSHAKE)
_AUTHENTICATE: Final = int(ApiKey.SASL_AUTHENTICATE)
_HANDSHAKE_VERSIONS: Final = range(2)
_AUTHENTICATE_VERSIONS: Final = range(3)


class _Answer(NamedTuple):
    parts: Parts
    is_last: bool = False
    """The peer is refused: its connection ends after this, and after a while."""


class SaslListener:
    """What the connections of one listener with SASL share."""

    def __init__(
        self,
        runtime: Runtime,
        security: Security,
        dispatcher: FrameHandler,
        mechanisms: Mapping[str, Callable[[], Exchange]],
        properties: ListenerSecurity,
    ) -> None:
        self.runtime = runtime
        self.security = security
        self.dispatcher = dispatcher
        self.mechanisms = mechanisms
        self._max_receive_bytes = properties.max_receive_bytes
        # Mechanisms may differ in it. A session begins before its mechanism is known: the strictest counts.
        self._reauth_ms = min((each for each in properties.reauth_ms.values() if each > 0), default=0)

    def begin(self, connection: Connection) -> None:
        config = self.runtime.config
        session = SaslSession(self.mechanisms, reauth_ms=self._reauth_ms)
        connection.handler = Authentication(self, session, connection.max_frame_bytes)
        connection.max_frame_bytes = self._max_receive_bytes
        self.runtime.timers.after(
            config.headrace_authentication_timeout_ms / 1000,
            "the time to authenticate",
            partial(_end_overdue, self, connection),
        )


def _end_overdue(listener: SaslListener, connection: Connection) -> None:
    if not connection.closed and isinstance(connection.handler, Authentication):
        if connection.handler.is_authenticated:
            return
        listener.runtime.peer_log.warning("authentication not finished in time", connection.peer_host)
        connection.close()


class Authentication:
    """The frames of one connection."""

    __slots__ = ("_listener", "_max_frame_bytes", "_session")

    def __init__(self, listener: SaslListener, session: SaslSession, max_frame_bytes: int) -> None:
        self._listener = listener
        self._session = session
        self._max_frame_bytes = max_frame_bytes
        """For requests of an authenticated peer."""

    @property
    def is_authenticated(self) -> bool:
        return self._session.authenticated is not None

    def __call__(self, connection: Connection, frame: memoryview) -> Response:
        session = self._session
        if session.state is State.RAW_TOKENS:
            return self._on_raw_token(connection, bytes(frame))
        if len(frame) < _KEY.size:
            raise AuthenticationRefused("a frame without a request")
        key = _KEY.unpack_from(frame)[0]
        if key == _HANDSHAKE:
            return self._on_handshake(connection, frame)
        if key == _AUTHENTICATE:
            return self._on_authenticate(connection, frame)
        now_ms = self._now_ms()
        is_served = (
            session.on_api_versions(now_ms) if key == _API_VERSIONS else session.on_other_request(now_ms)
        )
        if not is_served:
            why = "its session has expired" if self.is_authenticated else "it is not authenticated"
            self._listener.runtime.metrics.authentication.expired += self.is_authenticated
            raise AuthenticationRefused(f"the peer asks for API {key}, and {why}")
        return self._listener.dispatcher(connection, frame)

    def _now_ms(self) -> int:
        return self._listener.runtime.monotonic_ms()

    # --- the handshake ----------------------------------------------------------------------------------

    def _on_handshake(self, connection: Connection, frame: memoryview) -> Response:
        header, at = read_request_header(frame)
        if header.api_version not in _HANDSHAKE_VERSIONS:
            raise AuthenticationRefused(f"SaslHandshake {header.api_version} is not served: 0 and 1 are")
        request = SaslHandshakeRequest.from_bytes(bytes(frame[at:]), header.api_version)
        told = self._session.on_handshake(header.api_version, request.mechanism, self._now_ms())
        if told is None:
            raise AuthenticationRefused("a handshake that is not due")
        response = SaslHandshakeResponse(error_code=told.error_code, mechanisms=list(told.mechanisms))
        answer = _framed(response, header.api_version, header.correlation_id)
        if told.close_after:
            offered = ", ".join(told.mechanisms)
            self._refused(connection, f"{request.mechanism[:32]!r} is not a mechanism here: {offered} are")
            return self._last(connection, answer, 0.0)
        return answer

    # --- tokens -------------------------------------------------------------------------------------------

    def _on_authenticate(self, connection: Connection, frame: memoryview) -> Response:
        header, at = read_request_header(frame)
        if header.api_version not in _AUTHENTICATE_VERSIONS:
            raise AuthenticationRefused(f"SaslAuthenticate {header.api_version} is not served: 0 to 2 are")
        request = SaslAuthenticateRequest.from_bytes(bytes(frame[at:]), header.api_version)
        token = bytes(request.auth_bytes)
        return self._when_prepared(connection, token, partial(self._authenticate, connection, header, token))

    def _authenticate(self, connection: Connection, header: RequestHeader, token: bytes) -> _Answer:
        was_authenticated = self.is_authenticated
        told = self._session.on_authenticate(header.api_version, token, self._now_ms())
        if told is None:
            raise AuthenticationRefused("a token that is not due")
        response = SaslAuthenticateResponse(
            error_code=told.error_code,
            error_message=told.error_message,
            auth_bytes=told.token,
            session_lifetime_ms=told.session_lifetime_ms,
        )
        answer = _framed(response, header.api_version, header.correlation_id)
        if told.close_after:
            self._failed(connection)
            return _Answer(answer, is_last=True)
        self._go_on(connection, was_authenticated=was_authenticated)
        return _Answer(answer)

    def _on_raw_token(self, connection: Connection, token: bytes) -> Response:
        return self._when_prepared(connection, token, partial(self._take_raw_token, connection, token))

    def _take_raw_token(self, connection: Connection, token: bytes) -> _Answer:
        was_authenticated = self.is_authenticated
        reply = self._session.on_raw_token(token, self._now_ms())
        if reply is None:
            self._failed(connection)
            return _Answer([], is_last=True)
        self._go_on(connection, was_authenticated=was_authenticated)
        return _Answer([_LENGTH.pack(len(reply)) + reply])

    def _when_prepared(self, connection: Connection, token: bytes, take: Callable[[], _Answer]) -> Response:
        """Take the token now, or when what it needs is there. Until then the connection serves nothing."""
        preparation = self._session.preparation(token)
        if preparation is None:
            answer = take()
            if answer.is_last:
                return self._last(connection, answer.parts, self._delay_seconds())
            return answer.parts
        pending = DelayedResponse(exclusive=True)
        preparation.when_done(lambda _: self._take_prepared(connection, pending, take))
        return pending

    def _take_prepared(
        self, connection: Connection, pending: DelayedResponse, take: Callable[[], _Answer]
    ) -> None:
        if connection.closed:
            return
        try:
            answer = take()
        except BaseException:
            connection.close()
            raise
        if answer.is_last:
            self._last(connection, answer.parts, self._delay_seconds(), pending)
        else:
            pending.complete(answer.parts)

    def _go_on(self, connection: Connection, *, was_authenticated: bool) -> None:
        """If the last token was the last one of its exchange, the peer's requests are served now."""
        session, figures = self._session, self._listener.runtime.metrics.authentication
        if session.state is not State.READY or session.authenticated is None:
            return
        self._listener.security.on_authenticated(connection, session.authenticated)
        if was_authenticated:
            figures.reauthenticated += 1
            return
        figures.succeeded += 1
        connection.max_frame_bytes = self._max_frame_bytes
        if session.expires_at_ms is None:
            connection.handler = self._listener.dispatcher

    # --- refusals ------------------------------------------------------------------------------------------

    def _delay_seconds(self) -> float:
        """Whoever guesses passwords guesses slowly."""
        return self._listener.runtime.config.connection_failed_authentication_delay_ms / 1000

    def _failed(self, connection: Connection) -> None:
        figures = self._listener.runtime.metrics.authentication
        if self.is_authenticated:
            figures.failed_again += 1
        else:
            figures.failed += 1
        failure = self._session.failure
        self._refused(connection, "not in order" if failure is None else failure.reason)

    def _refused(self, connection: Connection, reason: str) -> None:
        self._listener.runtime.peer_log.warning(
            "authentication failed", connection.peer_host, listener=connection.listener, error=reason
        )

    def _last(
        self,
        connection: Connection,
        answer: Parts,
        delay_seconds: float,
        pending: DelayedResponse | None = None,
    ) -> DelayedResponse:
        """Answer after a while, and close: meanwhile nothing else of the peer is served."""
        if pending is None:
            pending = DelayedResponse(exclusive=True)
        timers = self._listener.runtime.timers

        def finish() -> None:
            pending.complete(answer)
            timers.after(0.0, "the end of a connection that failed to authenticate", connection.close)

        timers.after(delay_seconds, "the answer to a failed authentication", finish)
        return pending


def _framed(response: Message, version: int, correlation_id: int) -> Parts:
    return [frame_response(response, version, correlation_id)]
