"""One client connection: frames in, answers out, in order. Knows no API.

Raw non-blocking socket on the event loop. These rules bound what one peer can cost, and all of them together:
- a partial frame holds only the bytes that have arrived, and beyond a beginning only what is reserved
  (request_memory.py);
- while an answer is unsent or an exclusive one is pending, no further request is read;
- answers that are not taken share one budget (unsent_answers.py).
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from headrace.core.errors import HeadraceError, TooSlow
from headrace.network.outbox import Outbox
from headrace.network.partial_frame import LENGTH_SIZE, PartialFrame, checked_size, readable_bytes
from headrace.network.response import DelayedResponse, NoResponse, Response, bytes_in_memory
from headrace.security.principal import ANONYMOUS, Principal
from headrace.security.rights import Rights

if TYPE_CHECKING:
    from headrace.network.listener import Endpoint

_LENGTH: Final = Struct(">i")
FLUSH_BYTES: Final = 1024 * 1024
"""Answers to requests of one read are joined up to here; then the socket has to take some."""
READS_PER_EVENT: Final = 8
"""Fairness: after this many reads other connections get their turn."""

FrameHandler = Callable[["Connection", memoryview], Response]
"""Serves one frame. The memoryview is only valid until the handler returns."""


class Connection:
    __slots__ = (
        "_backlog",
        "_blocked",
        "_descriptor",
        "_endpoint",
        "_flush_is_due",
        "_is_slow",
        "_memory",
        "_outbox",
        "_parked_bytes",
        "_partial",
        "_poller",
        "_reading",
        "_serving",
        "_slots",
        "_sock",
        "active_tick",
        "came_by_token",
        "closed",
        "handler",
        "is_link",
        "is_muted",
        "listener",
        "max_frame_bytes",
        "meter",
        "on_close",
        "peer_host",
        "principal",
        "rights",
    )

    def __init__(self, endpoint: Endpoint, sock: Any, peer_host: str, listener: str = "") -> None:
        """`sock`: a socket, or what has the calls of one (tls.py)."""
        self._endpoint = endpoint
        self._sock = sock
        self._descriptor = sock.fileno()
        self._poller = endpoint.poller
        self.peer_host = peer_host
        self.listener = listener  # the name: the peer is told the addresses of that one
        self.closed = False
        self.on_close: Callable[[], None] | None = None  # told once, whatever the reason
        self.active_tick = endpoint.tick
        self.meter = endpoint.meter(listener)
        self.meter.opened()
        self.is_link = False  # the peer is another broker: clients must not take its memory
        self.principal: Principal = ANONYMOUS
        self.came_by_token = False  # it has authenticated with a delegation token
        self.rights: Rights | None = None
        """What the principal may do; None without an authorizer, where everybody may do everything."""
        self.handler = endpoint.handler  # before the peer is authenticated, whoever sees to that
        self.max_frame_bytes = endpoint.max_frame_bytes
        self._memory = endpoint.request_memory
        self._partial: PartialFrame | None = None  # a frame that has arrived in part
        self._backlog = b""  # whole or partial frames that arrived behind an answer that blocks
        self._slots: deque[DelayedResponse] | None = None  # in the order of requests; None: there is none
        self._outbox = Outbox(sock, endpoint.poller, endpoint.page_cache, self.meter, self._on_writable)
        self._parked_bytes = 0  # of answers that are there and wait for an earlier one
        self._is_slow = False  # whether `endpoint.unsent` counts its answers
        self._blocked = False
        self.is_muted = False
        self._serving = False
        self._flush_is_due = False  # answers that came later leave soon, all that are there by then
        self._reading = True
        self._poller.add_reader(self._descriptor, self._on_readable)

    # --- reading -------------------------------------------------------------------------------------

    def _on_readable(self) -> None:
        """The hot path: most requests are small, arrive whole, and are answered at once."""
        if self._blocked:
            self._guarded(self._hold_back)
            return
        self.active_tick = self._endpoint.tick
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
        if self._partial is not None:
            return self._read_partial(self._partial)
        if self._memory.is_tight:
            return self._read_carefully()
        pool = self._endpoint.buffers
        count: int = self._sock.recv_into(pool.shared)
        if count == 0:
            self.close()
            return False
        self.meter.bytes_in += count
        self._serve_frames(pool.shared_view, count)
        return count == len(pool.shared)

    def _read_partial(self, partial: PartialFrame) -> bool:
        if partial.needs_memory and not partial.make_room(self, is_link=self.is_link):
            self._stop_reading()
            return False
        count = partial.receive(self._sock)
        if count == 0:
            self.close()
            return False
        self.meter.bytes_in += count
        if partial.frame_bytes == 0:
            if partial.filled == LENGTH_SIZE:
                partial.begin(checked_size(partial.buffer, self.max_frame_bytes))
            return partial.frame_bytes > 0
        if partial.is_whole:
            self._partial = None
            try:
                frame = memoryview(partial.buffer)[LENGTH_SIZE : partial.filled]
                self._take_answer(self.handler(self, frame))
            finally:
                partial.release()
            self._flush()
        return True

    def _read_carefully(self) -> bool:
        """There is no room for what cannot be served: look first, then take one frame, or wait for memory."""
        shared = self._endpoint.buffers.shared_view
        count = self._sock.recv_into(shared, 0, socket.MSG_PEEK)
        if count == 0:
            self.close()
            return False
        size = checked_size(shared, self.max_frame_bytes) if count >= LENGTH_SIZE else 0
        if 0 < size <= count:
            self.meter.bytes_in += self._sock.recv_into(shared[:size])
            self._serve_frames(shared, size)
            return True
        self._partial = PartialFrame(self._memory, self._endpoint.buffers)
        if size:
            self._partial.begin_unread(size)
        return True

    def _serve_frames(self, view: memoryview, end: int) -> None:
        at = 0
        self._serving = True
        try:
            while end - at >= 4 and not self._blocked:
                length = _LENGTH.unpack_from(view, at)[0]
                if length > end - at - 4 or length <= 0:
                    checked_size(view[at:], self.max_frame_bytes)
                    break
                start = at + 4
                at = start + length
                answer = self.handler(self, view[start:at])
                if at == end and type(answer) is list and self._slots is None and self._outbox.is_empty:
                    if not self._outbox.send_now(answer):
                        self._flush()
                    return
                self._take_answer(answer)
                if self._outbox.queued_bytes > FLUSH_BYTES and not self._outbox.flush():
                    self._blocked = True
        finally:
            self._serving = False
        if at < end and not self.closed:
            self._keep(view[at:end])
        self._flush()

    def _keep(self, rest: memoryview) -> None:
        """What could not be served yet: the beginning of a frame, or requests behind a blocking answer."""
        if self._blocked:
            self._backlog = bytes(rest)
            self._memory.keep(len(rest))
            self._overtake()
            return
        partial = PartialFrame(self._memory, self._endpoint.buffers)
        if len(rest) < LENGTH_SIZE:
            partial.begin_length(rest)
        else:
            size = checked_size(rest, self.max_frame_bytes)
            partial.begin_read(size, rest, self, is_link=self.is_link)
        self._partial = partial

    def _take_answer(self, answer: Response) -> None:
        if isinstance(answer, list):
            if self._slots is None:
                self._outbox.put(answer)
                return
            delayed = DelayedResponse(exclusive=False)
            delayed.complete(answer)
            self._parked_bytes += bytes_in_memory(answer)
        elif isinstance(answer, NoResponse):
            return
        elif answer.is_done and self._slots is None:
            self._outbox.put(answer.parts)
            return
        else:
            delayed = answer
        if self._slots is None:
            self._slots = deque()
        self._slots.append(delayed)
        if not delayed.is_done:
            delayed.when_done(self._on_completed)
        waits_alone = delayed.exclusive and not delayed.is_done
        if waits_alone or self._is_busy(self._slots):
            self._blocked = True
            if self._parked_bytes:
                self._note_unsent()

    def _is_busy(self, slots: deque[DelayedResponse]) -> bool:
        return len(slots) >= self._endpoint.max_in_flight or self._parked_bytes > FLUSH_BYTES

    def _hold_back(self) -> None:
        """Not the time to serve: stop reading, unless this is the peer saying goodbye."""
        if not self._sock.recv(1, socket.MSG_PEEK):
            self.close()
        elif self._reading:
            self._stop_reading()
            self._overtake()

    def _overtake(self) -> None:
        """Something came behind an answer that blocks: whoever only waits there may cut that short."""
        for delayed in self._slots or ():
            if delayed.on_overtaken is not None:
                delayed.on_overtaken()

    def _stop_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._poller.remove_reader(self._descriptor)

    def on_memory(self) -> None:
        if not self._blocked:
            self.resume_reading()

    def arrived_bytes(self) -> int:
        return readable_bytes(self._descriptor) + (0 if self._partial is None else self._partial.filled)

    def on_overdue(self) -> None:
        self._refuse(TooSlow("the request arrives too slowly, and others need the memory that it takes"))

    def resume_reading(self) -> None:
        if not self._reading and not self.closed:
            self._reading = True
            self._poller.add_reader(self._descriptor, self._on_readable)

    def mute(self) -> None:
        """Read and serve nothing more until `unmute`. What is due still leaves, and nobody calls it idle."""
        self.is_muted = self._blocked = True
        self.active_tick = self._endpoint.tick

    def unmute(self) -> None:
        self.is_muted = False
        self._guarded(self._unblock)

    # --- answering -------------------------------------------------------------------------------------

    def _on_completed(self, _: object) -> None:
        """A delayed response is there: send what is now first in line, then go on reading."""
        if self.closed or self._slots is None:
            return
        slots = self._slots
        while slots and slots[0].is_done:
            self._outbox.put(slots.popleft().parts)
        if not slots:
            self._slots = None
            self._parked_bytes = 0
        if not self._serving and not self._flush_is_due:
            self._flush_is_due = True
            self._endpoint.defer(self._flush_later)

    def _flush_later(self) -> None:
        self._flush_is_due = False
        self._guarded(self._flush)

    def _unblock(self) -> None:
        """Everything is sent and nothing exclusive pends: serve what was held back, then read again."""
        if self.closed or self.is_muted or not self._outbox.is_empty:
            return
        if self._slots is not None and (
            any(slot.exclusive and not slot.is_done for slot in self._slots) or self._is_busy(self._slots)
        ):
            return
        self._blocked = False
        if self._backlog:
            backlog, self._backlog = bytearray(self._backlog), b""
            self._memory.drop(len(backlog))
            self._serve_frames(memoryview(backlog), len(backlog))
        if not self._blocked and (self._partial is None or not self._partial.is_waiting):
            self.resume_reading()

    def _flush(self) -> None:
        """Send what is due. Raises OSError when the peer is gone."""
        if self.closed or self._outbox.is_empty:
            return
        if not self._outbox.flush():
            self._blocked = True
            if self._outbox.waits_for_peer:
                self._note_unsent()
            return
        if self._is_slow:
            self._is_slow = False
            self._endpoint.unsent.forget(self)
        if self._blocked:
            self._unblock()

    def _note_unsent(self) -> None:
        self._is_slow = True
        self._endpoint.unsent.note(self, self._outbox.queued_bytes + self._parked_bytes)

    def on_too_slow(self) -> None:
        self._is_slow = False
        self._outbox.clear()
        self._refuse(TooSlow("the peer does not read its answers, and others need the memory that they take"))

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
        if self._partial is not None:
            self._partial.release()
            self._partial = None
        if self._backlog:
            self._memory.drop(len(self._backlog))
            self._backlog = b""
        if self._is_slow:
            self._endpoint.unsent.forget(self)
        if self._slots is not None:
            for delayed in self._slots:
                delayed.abandon()
            self._slots = None
        self._endpoint.forget(self)
        if self.on_close is not None:
            self.on_close()
