"""What waits to be sent to one peer: bytes and file ranges, in order, as fast as the socket takes them."""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from headrace.core.ports import Buffer, FileRange
from headrace.metrics.registry import ListenerMetrics
from headrace.network.page_cache import INLINE_BYTES, PageCache
from headrace.network.response import Part, Parts

MAX_JOINED: Final = 64
"""Byte parts that leave in one call."""
MOST_RANGES: Final = 100
"""File ranges that are sent in one go: each is a call or two. Then others have their turn, as if the socket
were full."""


class Outbox:
    """Invariant: `is_waiting` exactly while somebody will call `on_ready`: epoll, or a read ahead."""

    __slots__ = (
        "_descriptor",
        "_is_refused",
        "_is_watching",
        "_meter",
        "_on_ready",
        "_page_cache",
        "_parts",
        "_poller",
        "_sock",
        "_warmed",
        "is_waiting",
        "queued_bytes",
    )

    def __init__(
        self,
        sock: Any,
        poller: Any,
        page_cache: PageCache,
        meter: ListenerMetrics,
        on_ready: Callable[[], None],
    ) -> None:
        self._sock = sock
        self._descriptor = sock.fileno()
        self._poller = poller
        self._page_cache = page_cache
        self._meter = meter
        self._on_ready = on_ready
        self._parts: deque[Part] | None = None
        """None while everything has been sent, the usual case: an idle connection holds no queue."""
        self.is_waiting = False
        self.queued_bytes = 0
        """Bytes put in since it was last empty; file ranges cost no memory and do not count."""
        self._warmed: FileRange | None = None
        """A range that needs no probe: it was read ahead, or it is the rest of one that was cached."""
        self._is_refused = False
        """The range that comes next is damaged: the frame cannot be finished."""
        self._is_watching = False
        """The poller reports when the socket takes more. Kept until all is sent: each change is a call."""

    @property
    def is_empty(self) -> bool:
        return self._parts is None

    @property
    def waits_for_peer(self) -> bool:
        """And not for the disk."""
        return self._is_watching

    def put(self, parts: Parts) -> None:
        if len(parts) > 1:
            for index, part in enumerate(parts):
                if isinstance(part, FileRange) and part.length <= INLINE_BYTES:
                    parts[index] = self._page_cache.read_small(part) or part
        if self._parts is None:
            self._parts = deque(parts)
        else:
            self._parts.extend(parts)
        for part in parts:
            if not isinstance(part, FileRange):
                self.queued_bytes += len(part)

    def send_now(self, parts: list[Part]) -> bool:
        """The only answer that is due: try the socket before queueing anything. False: flush what is left."""
        if len(parts) == 1:
            part = parts[0]
            if type(part) is bytes:
                try:
                    sent = self._sock.send(part)
                except (BlockingIOError, InterruptedError):
                    sent = 0
                self._meter.bytes_out += sent
                if sent == len(part):
                    return True
                parts = [memoryview(part)[sent:]]
        self.put(parts)
        return False

    def flush(self) -> bool:
        """Send as much as the socket takes; True when nothing is left. OSError when the peer is gone."""
        parts = self._parts
        if parts is None:
            return True
        if self.is_waiting:
            return False
        ranges = 0
        while parts:
            first = parts[0]
            if isinstance(first, FileRange):
                if ranges == MOST_RANGES:
                    return self._wait_for_socket()
                ranges += 1
                done = self._send_range(first, parts)
            elif len(parts) > 1:
                done = self._send_joined(parts)
            else:
                done = self._send_bytes(first, parts)
            if not done:
                return False
        self._parts = None
        self.queued_bytes = 0
        self._stop_watching()
        return True

    def resume(self) -> None:
        """What it waited for has come; the caller flushes next."""
        self.is_waiting = False

    def clear(self) -> None:
        self._parts = None
        self._warmed = None
        self.is_waiting = False
        self._stop_watching()

    def _stop_watching(self) -> None:
        if self._is_watching:
            self._is_watching = False
            self._poller.remove_writer(self._descriptor)

    def _send_bytes(self, part: Buffer, parts: deque[Part]) -> bool:
        try:
            sent = self._sock.send(part)
        except (BlockingIOError, InterruptedError):
            sent = 0
        self._meter.bytes_out += sent
        if sent == len(part):
            parts.popleft()
            return True
        parts[0] = memoryview(part)[sent:]
        return self._wait_for_socket()

    def _send_joined(self, parts: deque[Part]) -> bool:
        """Consecutive bytes leave in one call; a file range that follows is announced (MSG_MORE)."""
        run: list[Buffer] = []
        total, more = 0, 0
        for part in parts:
            if isinstance(part, FileRange):
                more = socket.MSG_MORE
                break
            if len(run) >= MAX_JOINED:
                break
            run.append(part)
            total += len(part)
        try:
            sent = self._sock.sendmsg(run, (), more)
        except (BlockingIOError, InterruptedError):
            sent = 0
        self._meter.bytes_out += sent
        complete = sent == total
        for part in run:
            if sent < len(part):
                parts[0] = memoryview(part)[sent:]
                break
            sent -= len(part)
            parts.popleft()
        return complete or self._wait_for_socket()

    def _send_range(self, part: FileRange, parts: deque[Part]) -> bool:
        if self._is_refused:
            raise OSError("a file range is damaged")
        if part is not self._warmed and not self._page_cache.is_warm(part):
            # Once per range: if it is cold again, or cannot be read, sendfile makes progress or says why.
            self._warmed = part
            self._stop_watching()  # the socket may be ready all the while: it would be reported without end
            self.is_waiting = True
            self._page_cache.warm(part, self._on_warmed)
            return False
        sent = self._copy_range(part)
        if sent < part.length:
            parts[0] = self._warmed = FileRange(part.file, part.position + sent, part.length - sent)
            return self._wait_for_socket()
        parts.popleft()
        return True

    def _copy_range(self, part: FileRange) -> int:
        """Sends what the socket takes of a range that is in memory. OSError if the file ends before it does:
        it was truncated under us, and the frame cannot be finished."""
        sent = 0
        source = part.file.fileno()
        try:
            while sent < part.length:
                count = os.sendfile(self._descriptor, source, part.position + sent, part.length - sent)
                if not count:
                    raise OSError("a file range ended early")
                sent += count
        except (BlockingIOError, InterruptedError):
            pass
        self._meter.bytes_out += sent
        return sent

    def _on_warmed(self, is_good: bool) -> None:
        self._is_refused = not is_good
        self._on_ready()

    def _wait_for_socket(self) -> bool:
        self.is_waiting = True
        if not self._is_watching:
            self._is_watching = True
            self._poller.add_writer(self._descriptor, self._on_ready)
        return False
