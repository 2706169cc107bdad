"""Links between brokers, called by the selector itself: the network port without asyncio's transports.

A follower asks, gets an answer, and asks again, thousands of times in a second. So an answer can be followed
up on the spot: `exchange` hands it to a function that returns the next request, and no task is woken.
An answer that is followed up lies in memory that the link uses again.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import Any, Final

from headrace.client.link import MAX_FRAME_BYTES, Awaited, broken
from headrace.client.tls_failures import odd_length
from headrace.core.ports import Buffer
from headrace.core.ports_network import PeerReset, PeerUnavailable
from headrace.network.event_loop import poller_of
from headrace.network.tls import TlsSocket

_LENGTH: Final = Struct(">i")
_LENGTH_SIZE: Final = 4
_SHARED_BYTES: Final = 64 * 1024
_MOST_KEPT: Final = 4 * 1024 * 1024

FollowUp = Callable[[memoryview], bytes | None]
"""Takes an answer, valid until it returns, and gives the next request. None: whoever awaits shall look."""


class DirectLink:
    """One connection. Answers are matched to requests by their order alone."""

    __slots__ = (
        "_body",
        "_descriptor",
        "_failure",
        "_filled",
        "_is_writing",
        "_kept",
        "_loop",
        "_poller",
        "_shared",
        "_sock",
        "_spare",
        "_unsent",
        "_waiting",
        "peer",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, sock: socket.socket | TlsSocket, peer: str) -> None:
        self.peer = peer
        self._loop = loop
        self._sock = sock
        self._descriptor = sock.fileno()
        self._poller: Any = poller_of(loop)
        self._failure: PeerUnavailable | None = None
        self._waiting: deque[tuple[Awaited, FollowUp | None]] = deque()
        """In the order of the requests."""
        self._shared = memoryview(bytearray(_SHARED_BYTES))
        self._kept = 0
        """Bytes of an incomplete length field at the beginning of `_shared`: at most three."""
        self._body: memoryview | None = None
        """A frame that arrives in pieces, of which `_filled` bytes are there."""
        self._filled = 0
        self._spare: memoryview | None = None
        """The memory of the last large answer, if that was followed up."""
        self._unsent = b""
        self._is_writing = False
        self._poller.add_reader(self._descriptor, self._on_readable)

    # --- the port ---------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        return self._failure is None

    def send(self, frame: Buffer) -> asyncio.Future[memoryview]:
        return self._ask(frame, None)

    def exchange(self, frame: Buffer, follow_up: FollowUp) -> asyncio.Future[memoryview]:
        """As `send`, with each answer given to `follow_up` first. The first one for which that has no next
        request is the one that is awaited."""
        return self._ask(frame, follow_up)

    def _ask(self, frame: Buffer, follow_up: FollowUp | None) -> asyncio.Future[memoryview]:
        if self._failure is not None:
            raise self._failure
        answer = Awaited(loop=self._loop)
        answer.link = self
        self._waiting.append((answer, follow_up))
        self._write(frame)
        return answer

    def close(self) -> None:
        """Whoever still waits is told."""
        self._fail(PeerReset(f"the connection to {self.peer} is closed"))

    # --- out --------------------------------------------------------------------------------------------

    def _write(self, frame: Buffer) -> None:
        data = _LENGTH.pack(len(frame)) + bytes(frame)
        if self._unsent:
            self._unsent += data
            return
        try:
            sent = self._sock.send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            self._fail(broken(self.peer, error))
            return
        if sent < len(data):
            self._unsent = data[sent:]
            self._is_writing = True
            self._poller.add_writer(self._descriptor, self._on_writable)

    def _on_writable(self) -> None:
        try:
            self._unsent = self._unsent[self._sock.send(self._unsent) :]
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._fail(broken(self.peer, error))
            return
        if not self._unsent:
            self._is_writing = False
            self._poller.remove_writer(self._descriptor)

    # --- in ---------------------------------------------------------------------------------------------

    def _on_readable(self) -> None:
        body = self._body
        try:
            if body is None:
                count = self._sock.recv_into(self._shared[self._kept :])
            else:
                count = self._sock.recv_into(body[self._filled :])
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._fail(broken(self.peer, error))
            return
        if count == 0:
            self._fail(PeerReset(f"{self.peer} closed the connection"))
        elif body is None:
            self._take_frames(self._kept + count)
        else:
            self._filled += count
            if self._filled == len(body):
                self._body = None
                self._take_body(body)

    def _take_frames(self, end: int) -> None:
        shared = self._shared
        at = 0
        while end - at >= _LENGTH_SIZE and self._failure is None:
            length: int = _LENGTH.unpack_from(shared, at)[0]
            if not 0 < length <= MAX_FRAME_BYTES:
                self._fail(PeerReset(f"{self.peer} {odd_length(length)}"))
                return
            at += _LENGTH_SIZE
            if length > end - at:
                self._kept = 0
                self._begin_body(length, shared[at:end])
                return
            self._spare = None  # it pays only from one large answer to the next
            self._deliver(shared[at : at + length], True)
            at += length
        self._kept = end - at
        if self._kept:
            shared[: self._kept] = bytes(shared[at:end])

    def _begin_body(self, length: int, beginning: memoryview) -> None:
        spare, self._spare = self._spare, None
        if spare is not None and len(spare) >= length:
            body = spare[:length]
            self._spare = spare
        else:
            body = memoryview(bytearray(length))
        self._filled = len(beginning)
        body[: self._filled] = beginning
        self._body = body

    def _take_body(self, body: memoryview) -> None:
        if self._deliver(body, False):
            self._spare = None
        elif self._spare is None and len(body) <= _MOST_KEPT:
            self._spare = body

    def _deliver(self, frame: memoryview, is_lent: bool) -> bool:
        """True if the frame's memory has been given away; never if it is only lent: then a copy is."""
        if not self._waiting:
            self._fail(PeerReset(f"{self.peer} sent an answer that nobody awaits"))
            return False
        answer, follow_up = self._waiting.popleft()
        if answer.done():
            return False
        if follow_up is not None:
            try:
                following = follow_up(frame)
            except Exception as error:
                answer.set_exception(error)
                return True
            if self._failure is not None:
                if not answer.done():
                    answer.set_exception(self._failure)  # closed meanwhile, when this one was not among them
                return True
            if following is not None:
                self._waiting.append((answer, follow_up))
                self._write(following)
                return False
        answer.set_result(memoryview(bytes(frame)) if is_lent else frame)
        return not is_lent

    # --- the end ----------------------------------------------------------------------------------------

    def _fail(self, failure: PeerUnavailable) -> None:
        if self._failure is not None:
            return
        self._failure = failure
        self._poller.remove_reader(self._descriptor)
        if self._is_writing:
            self._poller.remove_writer(self._descriptor)
        self._sock.close()
        self._unsent = b""
        self._body = self._spare = None
        waiting, self._waiting = self._waiting, deque()
        for answer, _ in waiting:
            if not answer.done():
                answer.set_exception(failure)
