"""TLS handshakes of peers that are not connected yet, within bounds.

A handshake costs half a millisecond of the loop's time, and ten thousand clients may come back at once. So
handshakes take turns with everything else: some of them run, for about a millisecond, then connections are
served. A slow peer holds little memory, and not for long: the bytes of a handshake, its time, and the number
of handshakes of one host have limits.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import Counter, deque
from collections.abc import Callable
from time import monotonic
from typing import Any, Final

from headrace.network.tls import TlsSocket

MAX_HANDSHAKE_BYTES: Final = 64 * 1024
"""A client's part of a handshake, its certificates among them."""
TURN_SECONDS: Final = 0.001
MAX_PER_HOST: Final = 64
SILENT_SECONDS: Final = 1.0
CHUNK_BYTES: Final = 16 * 1024

Done = Callable[[TlsSocket], None]
Failed = Callable[[str], None]


class Handshake:
    __slots__ = (
        "_handshakes",
        "_incoming",
        "_is_watching",
        "_outgoing",
        "_received",
        "_sock",
        "_tls",
        "_unsent",
        "began",
        "has_answered",
        "host",
        "is_due",
        "on_done",
        "on_failed",
    )

    def __init__(
        self,
        handshakes: Handshakes,
        sock: socket.socket,
        host: str,
        context: ssl.SSLContext,
        on_done: Done,
        on_failed: Failed,
    ) -> None:
        self._handshakes = handshakes
        self._sock = sock
        self.host = host
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._received = 0
        self._unsent = b""
        self._is_watching = False
        self.on_done = on_done
        self.on_failed = on_failed
        self.began = monotonic()
        self.is_due = False
        """It waits for its turn."""
        self.has_answered = False
        """The peer has said something whole."""
        handshakes.poller.add_reader(sock.fileno(), self._on_readable)

    def _on_readable(self) -> None:
        try:
            data = self._sock.recv(CHUNK_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self.end("")
            return
        self._received += len(data)
        self._incoming.write(data)
        self._handshakes.enqueue(self)

    def step(self) -> None:
        """In its turn."""
        if self._sock.fileno() < 0:
            return
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            if self._received > MAX_HANDSHAKE_BYTES:
                self.end(f"a handshake of more than {MAX_HANDSHAKE_BYTES} bytes")
            else:
                self._send()
            return
        except (ssl.SSLError, ValueError) as error:
            self._send()  # the alert, which tells the peer why
            self.end(reason_of(error))
            return
        self._forget()
        done = TlsSocket(self._sock, self._tls, self._incoming, self._outgoing)
        try:
            done.flush()  # with the rest of the handshake, which leaves before any answer
        except OSError:
            self._sock.close()
            self.on_failed("")
            return
        self.on_done(done)

    def _send(self) -> None:
        self._unsent += self._outgoing.read()
        if not self._unsent:
            return
        self.has_answered = True
        try:
            self._unsent = self._unsent[self._sock.send(self._unsent) :]
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self.end("")
            return
        if bool(self._unsent) != self._is_watching:
            self._is_watching = not self._is_watching
            if self._is_watching:
                self._handshakes.poller.add_writer(self._sock.fileno(), self._send)
            else:
                self._handshakes.poller.remove_writer(self._sock.fileno())

    def end(self, reason: str) -> None:
        """It failed; an empty reason: the peer has gone."""
        if self._sock.fileno() < 0:
            return
        self._forget()
        self._sock.close()
        self.on_failed(reason)

    def _forget(self) -> None:
        self._handshakes.forget(self)
        self._handshakes.poller.remove_reader(self._sock.fileno())
        if self._is_watching:
            self._handshakes.poller.remove_writer(self._sock.fileno())
            self._is_watching = False


class Handshakes:
    """All that are under way at one broker."""

    def __init__(self, loop: asyncio.AbstractEventLoop, poller: Any, max_seconds: float = 10.0) -> None:
        self._loop = loop
        self.poller = poller
        self.max_seconds = max_seconds
        self._under_way: set[Handshake] = set()
        self._per_host: Counter[str] = Counter()
        self._waiting: dict[str, deque[tuple[socket.socket, Callable[[], None]]]] = {}
        """Of hosts that have too many under way: the kernel keeps what they send."""
        self._waiting_count = 0
        self._due: deque[Handshake] = deque()
        self._turn: asyncio.Handle | None = None

    def __len__(self) -> int:
        """Those that wait too: each has a descriptor."""
        return len(self._under_way) + self._waiting_count

    def begin(
        self, sock: socket.socket, host: str, context: ssl.SSLContext, on_done: Done, on_failed: Failed
    ) -> None:
        def start() -> None:
            self._per_host[host] += 1
            self._under_way.add(Handshake(self, sock, host, context, on_done, on_failed))

        if self._per_host[host] < MAX_PER_HOST:
            start()
        else:
            self._waiting.setdefault(host, deque()).append((sock, start))
            self._waiting_count += 1

    def enqueue(self, handshake: Handshake) -> None:
        if not handshake.is_due:
            handshake.is_due = True
            self._due.append(handshake)
        if self._turn is None:
            self._turn = self._loop.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        self._turn = None
        until = monotonic() + TURN_SECONDS
        while self._due:
            handshake = self._due.popleft()
            handshake.is_due = False
            handshake.step()
            if monotonic() >= until:
                break
        if self._due:
            self._turn = self._loop.call_soon(self._take_turn)

    def forget(self, handshake: Handshake) -> None:
        self._under_way.discard(handshake)
        host = handshake.host
        self._per_host[host] -= 1
        if not self._per_host[host]:
            del self._per_host[host]
        waiting = self._waiting.get(host)
        if waiting:
            _, start = waiting.popleft()
            self._waiting_count -= 1
            if not waiting:
                del self._waiting[host]
            start()

    def end_overdue(self) -> None:
        now = monotonic()
        for handshake in [each for each in self._under_way if now - each.began > self._limit(each)]:
            handshake.end(f"the handshake was not done after {self._limit(handshake):g} s")

    def _limit(self, handshake: Handshake) -> float:
        """Whoever says nothing has less time while others of its host wait."""
        is_silent = not handshake.has_answered and not handshake.is_due
        return SILENT_SECONDS if is_silent and handshake.host in self._waiting else self.max_seconds

    def close(self) -> None:
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None
        self._due.clear()
        for waiting in self._waiting.values():
            for sock, _ in waiting:
                sock.close()
        self._waiting.clear()
        self._waiting_count = 0
        for handshake in list(self._under_way):
            handshake.end("")


_SENTENCES: Final = {
    "HTTP_REQUEST": "the peer speaks HTTP without TLS",
    "WRONG_VERSION_NUMBER": "the peer does not speak TLS: set its security.protocol to SSL or SASL_SSL",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the peer shows no certificate, and ssl.client.auth is required",
    "NO_SHARED_CIPHER": "the peer and this listener have no cipher suite in common",
    "UNSUPPORTED_PROTOCOL": "the peer speaks no version of TLS that ssl.enabled.protocols allows",
    "TLSV1_ALERT_UNKNOWN_CA": "the peer does not trust this broker's certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the peer does not trust this broker's certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the peer does not accept this broker's certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "this broker's certificate has expired: renew it",
}


def reason_of(error: Exception) -> str:
    """What failed, and what to do about it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the peer's certificate is not accepted: {error.verify_message}"
    reason = getattr(error, "reason", None)
    if isinstance(reason, str):
        return _SENTENCES.get(reason, f"TLS failed: {reason.lower().replace('_', ' ')}")
    return f"TLS failed: {error}"
