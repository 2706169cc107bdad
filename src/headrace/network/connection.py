"""One client connection: frames in, answers out, in order. Knows no API.

Raw non-blocking socket on the event loop. Two rules bound what one peer can cost:
- a partial frame holds only the bytes that have arrived (see buffers.py);
- while an answer is unsent or an exclusive one is pending, no further request is read.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from struct import Struct
from typing import TYPE_CHECKING, Final

from headrace.core.errors import HeadraceError
from headrace.network.answer import Answer, NoAnswer, Part, Pending
from headrace.network.outbox import Outbox

if TYPE_CHECKING:
    from headrace.network.listener import Endpoint

_LENGTH: Final = Struct(">i")
FLUSH_BYTES: Final = 1024 * 1024
"""Answers to requests of one read are joined up to here; then the socket has to take some."""
READS_PER_EVENT: Final = 8
"""Fairness: after this many reads other connections get their turn."""

FrameHandler = Callable[["Connection", memoryview], Answer]
"""Serves one frame. The memoryview is only valid until the handler returns."""


class Connection:
    __slots__ = (
        "_backlog",
        "_blocked",
        "_buffer",
        "_descriptor",
        "_endpoint",
        "_filled",
        "_flush_is_due",
        "_frame_bytes",
        "_outbox",
        "_poller",
        "_reading",
        "_serving",
        "_slots",
        "_sock",
        "active_tick",
        "closed",
        "listener",
        "meter",
        "on_close",
        "peer_host",
    )

    def __init__(self, endpoint: Endpoint, sock: socket.socket, peer_host: str, listener: str = "") -> None:
        self._endpoint = endpoint
        self._sock = sock
        self._descriptor = sock.fileno()
        self._poller = endpoint.poller
        self.peer_host = peer_host
        self.listener = listener
        """Name of the listener that the peer came in by: it is told the addresses of that one."""
        self.closed = False
        self.on_close: Callable[[], None] | None = None
        """Told once, when the connection ends for whatever reason."""
        self.active_tick = endpoint.tick
        self.meter = endpoint.meter(listener)
        self.meter.opened()
        self._buffer: bytearray | None = None
        self._filled = 0
        self._frame_bytes = 0
        """Size of the partial frame in `_buffer`, length field included; 0 while even that is incomplete."""
        self._backlog = b""
        """Whole or partial frames that arrived behind an answer that blocks."""
        self._slots: deque[Pending] | None = None
        """Pending answers in the order of their requests; None while there is none (the usual case)."""
        self._outbox = Outbox(sock, endpoint.poller, endpoint.page_cache, self.meter, self._on_writable)
        self._blocked = False
        self._serving = False
        self._flush_is_due = False
        """Answers that came later are sent soon, all that are there by then in one call."""
        self._reading = True
        self._poller.add_reader(self._descriptor, self._on_readable)

    # --- reading -------------------------------------------------------------------------------------

    def _on_readable(self) -> None:
        """The hot path: most requests are small, arrive whole, and are answered at once."""
        endpoint = self._endpoint
        if self._blocked or (self._buffer is None and endpoint.buffers.exhausted):
            self._guarded(self._hold_back)
            return
        self.active_tick = endpoint.tick
        self._guarded(self._read)

    def _refuse(self, error: HeadraceError) -> None:
        """Hang up on a peer's mistake. What was answered before it still goes out, if the socket takes it."""
        self._endpoint.on_protocol_error(self, error)
        with suppress(OSError):
            self._outbox.flush()
        self.close()

    def _guarded(self, step: Callable[[], None]) -> None:
        """Run a step that touches the socket; an error of the peer costs the peer its connection only."""
        try:
            step()
        except (BlockingIOError, InterruptedError):
            pass
        except HeadraceError as error:
            self._refuse(error)
        except OSError:
            self.close()

    def _read(self) -> None:
        for _ in range(READS_PER_EVENT):
            more = self._read_once()
            if not more or self._blocked or self.closed:
                return

    def _read_once(self) -> bool:
        """One recv and all frames it completes. False when there is likely nothing more to read."""
        if self._buffer is not None:
            return self._read_partial(self._buffer)
        pool = self._endpoint.buffers
        count = self._sock.recv_into(pool.shared)
        if count == 0:
            self.close()
            return False
        self.meter.bytes_in += count
        self._serve_frames(pool.shared_view, count)
        return count == len(pool.shared)

    def _read_partial(self, buffer: bytearray) -> bool:
        wanted = self._frame_bytes or 4
        view = memoryview(buffer)
        count = self._sock.recv_into(view[self._filled : wanted])
        view.release()
        if count == 0:
            self.close()
            return False
        self.meter.bytes_in += count
        self._filled += count
        if self._frame_bytes == 0:
            if self._filled < 4:
                return False
            self._expect(_LENGTH.unpack_from(buffer)[0])
            return True
        if self._filled == self._frame_bytes:
            self._buffer, self._frame_bytes = None, 0
            try:
                self._take_answer(self._endpoint.handler(self, memoryview(buffer)[4 : self._filled]))
            finally:
                self._endpoint.buffers.give(buffer)
            self._flush()
            return True
        if self._filled == len(buffer):
            self._buffer = self._endpoint.buffers.grow(buffer, self._filled, self._frame_bytes)
        return True

    def _expect(self, length: int) -> None:
        """The length field of a partial frame is known: check it and make room for the beginning."""
        self._check_length(length)
        self._frame_bytes = length + 4
        old = self._buffer
        pool = self._endpoint.buffers
        self._buffer = pool.take(self._frame_bytes)
        if old is not None:
            self._buffer[: self._filled] = memoryview(old)[: self._filled]
            pool.give(old)

    def _check_length(self, length: int) -> None:
        if not 0 < length <= self._endpoint.max_frame_bytes:
            raise HeadraceError(
                f"frame length {length} is not between 1 and {self._endpoint.max_frame_bytes}"
                " (socket.request.max.bytes)"
            )

    def _serve_frames(self, view: memoryview, end: int) -> None:
        at = 0
        handler = self._endpoint.handler
        self._serving = True
        try:
            while end - at >= 4 and not self._blocked:
                length = _LENGTH.unpack_from(view, at)[0]
                if length > end - at - 4 or length <= 0:
                    self._check_length(length)
                    break
                start = at + 4
                at = start + length
                answer = handler(self, view[start:at])
                if at == end and type(answer) is list and self._slots is None and self._outbox.is_empty:
                    self._send_now(answer)
                    return
                self._take_answer(answer)
                if self._outbox.queued_bytes > FLUSH_BYTES and not self._outbox.flush():
                    self._blocked = True
        finally:
            self._serving = False
        if at < end and not self.closed:
            self._keep(view[at:end])
        self._flush()

    def _send_now(self, parts: list[Part]) -> None:
        """The only answer that is due: try the socket before queueing anything."""
        if len(parts) == 1:
            part = parts[0]
            if type(part) is bytes:
                try:
                    sent = self._sock.send(part)
                except (BlockingIOError, InterruptedError):
                    sent = 0
                self.meter.bytes_out += sent
                if sent == len(part):
                    return
                parts = [memoryview(part)[sent:]]
        self._outbox.put(parts)
        self._flush()

    def _keep(self, rest: memoryview) -> None:
        """What could not be served yet: the beginning of a frame, or requests behind a blocking answer."""
        if self._blocked:
            self._backlog = bytes(rest)
            self._overtake()
            return
        count = len(rest)
        if count < 4:
            self._buffer = self._endpoint.buffers.take(4)
            self._frame_bytes = 0
        else:
            self._expect(_LENGTH.unpack_from(rest)[0])
        buffer = self._buffer
        assert buffer is not None
        # One byte of room at least: a read into a full buffer would look like the end of the stream.
        while len(buffer) <= count:
            buffer = self._buffer = self._endpoint.buffers.grow(buffer, 0, self._frame_bytes)
        buffer[:count] = rest
        self._filled = count

    def _take_answer(self, answer: Answer) -> None:
        if isinstance(answer, list):
            if self._slots is None:
                self._outbox.put(answer)
                return
            pending = Pending(exclusive=False)
            pending.parts = answer
        elif isinstance(answer, NoAnswer):
            return
        elif answer.parts is not None and self._slots is None:
            self._outbox.put(answer.parts)
            return
        else:
            pending = answer
        if self._slots is None:
            self._slots = deque()
        self._slots.append(pending)
        pending.attach(self._on_completed)
        waits_alone = pending.exclusive and pending.parts is None
        if waits_alone or len(self._slots) >= self._endpoint.max_in_flight:
            self._blocked = True

    def _hold_back(self) -> None:
        """Not the time to serve: stop reading, unless this is the peer saying goodbye."""
        if not self._sock.recv(1, socket.MSG_PEEK):
            self.close()
        elif self._reading:
            self._reading = False
            self._poller.remove_reader(self._descriptor)
            if self._blocked:
                self._overtake()
            else:
                self._endpoint.starved.append(self)

    def _overtake(self) -> None:
        """Something came behind an answer that blocks: whoever only waits there may cut that short."""
        for pending in self._slots or ():
            if pending.on_overtaken is not None:
                pending.on_overtaken()

    def resume_reading(self) -> None:
        if not self._reading and not self.closed:
            self._reading = True
            self._poller.add_reader(self._descriptor, self._on_readable)

    # --- answering -------------------------------------------------------------------------------------

    def _on_completed(self) -> None:
        """A pending answer is there: send what is now first in line, then go on reading."""
        if self.closed or self._slots is None:
            return
        slots = self._slots
        while slots and slots[0].parts is not None:
            self._outbox.put(slots.popleft().parts or [])
        if not slots:
            self._slots = None
        if not self._serving and not self._flush_is_due:
            self._flush_is_due = True
            self._endpoint.defer(self._flush_later)

    def _flush_later(self) -> None:
        self._flush_is_due = False
        self._guarded(self._flush)

    def _unblock(self) -> None:
        """Everything is sent and nothing exclusive pends: serve what was held back, then read again."""
        if self.closed or not self._outbox.is_empty:
            return
        if self._slots is not None and (
            any(slot.exclusive and slot.parts is None for slot in self._slots)
            or len(self._slots) >= self._endpoint.max_in_flight
        ):
            return
        self._blocked = False
        if self._backlog:
            backlog, self._backlog = bytearray(self._backlog), b""
            self._serve_frames(memoryview(backlog), len(backlog))
        if not self._blocked:
            self.resume_reading()

    def _flush(self) -> None:
        """Send what is due. Raises OSError when the peer is gone."""
        if self.closed or self._outbox.is_empty:
            return
        if not self._outbox.flush():
            self._blocked = True
        elif self._blocked:
            self._unblock()

    def _on_writable(self) -> None:
        if self.closed:
            return
        self._outbox.resume()
        self.active_tick = self._endpoint.tick
        self._guarded(self._flush)

    # --- the end -----------------------------------------------------------------------------------------

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        if self._reading:
            self._poller.remove_reader(self._descriptor)
        if self._flush_is_due:
            with suppress(OSError):
                self._outbox.flush()
        self._outbox.clear()
        self._sock.close()
        if self._buffer is not None:
            self._endpoint.buffers.give(self._buffer)
            self._buffer = None
        self._backlog = b""
        if self._slots is not None:
            for pending in self._slots:
                pending.abandon()
            self._slots = None
        self._endpoint.forget(self)
        if self.on_close is not None:
            self.on_close()
