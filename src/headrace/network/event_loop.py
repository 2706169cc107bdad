"""An asyncio event loop whose selector calls the data connections itself.

asyncio wraps each ready descriptor in a handle, queues it, and runs it in a context, for every small
request. A data connection needs none of that: its callbacks are called right where epoll reports it, and
everything else on the loop is ordinary asyncio. docs/adr/0004-data-plane.md has what that saves.
"""

from __future__ import annotations

import asyncio
import math
import select
import selectors
from collections.abc import Callable, Mapping
from contextvars import Context
from time import monotonic
from typing import Any, Final, TypeVarTuple, cast

_READ: Final = select.EPOLLIN
_WRITE: Final = select.EPOLLOUT
MAX_EVENTS: Final = 256

Callback = Callable[[], None]
Args = TypeVarTuple("Args")


class DirectSelector:
    """A selector for asyncio that also serves callbacks of its own, by descriptor.

    It has the methods of `selectors.BaseSelector`, which is all that asyncio asks for. It does not inherit
    from it, so that it can be compiled to a class with fixed fields.
    """

    __slots__ = ("_deferred", "_epoll", "_keys", "_readers", "_writers", "loop_has_work", "on_error")

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._keys: dict[int, selectors.SelectorKey] = {}
        self._readers: dict[int, Callback] = {}
        self._writers: dict[int, Callback] = {}
        self._deferred: list[Callback] = []
        self.on_error: Callable[[Exception], None] | None = None
        self.loop_has_work = False
        """A direct callback has asked something of the event loop, which must have its turn now."""

    # --- direct callbacks, under the names of the event loop ----------------------------------------------

    def add_reader(self, descriptor: int, callback: Callback) -> None:
        known = descriptor in self._writers
        self._readers[descriptor] = callback
        self._interest(descriptor, known)

    def add_writer(self, descriptor: int, callback: Callback) -> None:
        known = descriptor in self._readers
        self._writers[descriptor] = callback
        self._interest(descriptor, known)

    def remove_reader(self, descriptor: int) -> None:
        if self._readers.pop(descriptor, None) is not None:
            self._interest(descriptor, True)

    def remove_writer(self, descriptor: int) -> None:
        if self._writers.pop(descriptor, None) is not None:
            self._interest(descriptor, True)

    def defer(self, callback: Callback) -> None:
        """Call it soon, before anything is waited for, and after what epoll has reported is served: what
        arrives together is then dealt with together. It costs far less than a turn of the event loop."""
        self._deferred.append(callback)

    def _interest(self, descriptor: int, known: bool) -> None:
        mask = (_READ if descriptor in self._readers else 0) | (_WRITE if descriptor in self._writers else 0)
        if not mask:
            self._epoll.unregister(descriptor)
        elif known:
            self._epoll.modify(descriptor, mask)
        else:
            self._epoll.register(descriptor, mask)

    # --- what asyncio asks of a selector ----------------------------------------------------------------

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        descriptor = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        key = selectors.SelectorKey(fileobj, descriptor, events, data)
        self._epoll.register(descriptor, _mask(events))
        self._keys[descriptor] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        descriptor = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        key = self._keys.pop(descriptor)
        try:
            self._epoll.unregister(descriptor)
        except OSError:
            pass  # closed before it was unregistered, which epoll has noticed by itself
        return key

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        descriptor = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        key = selectors.SelectorKey(fileobj, descriptor, events, data)
        if events != self._keys[descriptor].events:
            self._epoll.modify(descriptor, _mask(events))
        self._keys[descriptor] = key
        return key

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys[fileobj if isinstance(fileobj, int) else fileobj.fileno()]

    def close(self) -> None:
        self._epoll.close()
        self._keys.clear()
        self._readers.clear()
        self._writers.clear()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait until the event loop has something to do; until then serve the direct callbacks.

        A turn of the event loop costs microseconds. It is left out while only direct callbacks are called
        and none of them asks anything of the loop.
        """
        ready: list[tuple[selectors.SelectorKey, int]] = []
        if timeout is None:
            wait, due = -1.0, math.inf
        elif timeout <= 0:
            wait, due = 0.0, 0.0
        else:
            wait, due = timeout, monotonic() + timeout
        self.loop_has_work = False
        if self._deferred:
            self._call_deferred()
            if self.loop_has_work:
                wait, due = 0.0, 0.0
        while True:
            try:
                # epoll counts milliseconds: round up, so as not to wake before a timer is due.
                events = self._epoll.poll(math.ceil(wait * 1000) / 1000 if wait > 0 else wait, MAX_EVENTS)
            except InterruptedError:
                return ready
            if not events:
                return ready
            for descriptor, mask in events:
                self._serve(descriptor, mask, ready)
            if self._deferred:
                self._call_deferred()
            if ready or self.loop_has_work or due == 0.0:
                return ready
            if timeout is not None:
                wait = due - monotonic()
                if wait <= 0:
                    return ready

    def _serve(self, descriptor: int, mask: int, ready: list[tuple[selectors.SelectorKey, int]]) -> None:
        reader = self._readers.get(descriptor)
        if reader is not None and mask & ~_WRITE:
            self._call(reader)
        if mask & ~_READ:
            writer = self._writers.get(descriptor)
            if writer is not None:
                self._call(writer)
        if reader is None:
            key = self._keys.get(descriptor)
            if key is not None:
                ready.append((key, _events(mask) & key.events))

    def _call_deferred(self) -> None:
        """Also what these defer in turn."""
        while self._deferred:
            deferred, self._deferred = self._deferred, []
            for callback in deferred:
                self._call(callback)

    def _call(self, callback: Callback) -> None:
        try:
            callback()
        except Exception as error:
            if self.on_error is None:
                raise
            self.on_error(error)


def _mask(events: int) -> int:
    return (_READ if events & selectors.EVENT_READ else 0) | (_WRITE if events & selectors.EVENT_WRITE else 0)


def _events(mask: int) -> int:
    """Errors and hang-ups wake readers and writers alike, as in the standard library."""
    return (selectors.EVENT_READ if mask & ~_WRITE else 0) | (selectors.EVENT_WRITE if mask & ~_READ else 0)


class BrokerEventLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.direct = DirectSelector()
        super().__init__(cast("selectors.BaseSelector", self.direct))
        self.direct.on_error = lambda error: self.call_exception_handler(
            {"message": "a data connection failed", "exception": error}
        )

    # Everything that gives the loop work goes through one of these, or through the pipe that wakes it.

    def call_soon(
        self, callback: Callable[[*Args], object], *args: *Args, context: Context | None = None
    ) -> asyncio.Handle:
        self.direct.loop_has_work = True
        return super().call_soon(callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Args], object], *args: *Args, context: Context | None = None
    ) -> asyncio.TimerHandle:
        self.direct.loop_has_work = True
        return super().call_at(when, callback, *args, context=context)

    def stop(self) -> None:
        self.direct.loop_has_work = True
        super().stop()


def deferrer_of(loop: asyncio.AbstractEventLoop) -> Callable[[Callback], object]:
    """How to have something done soon: by the direct selector, or by any other loop's next turn."""
    return loop.direct.defer if isinstance(loop, BrokerEventLoop) else loop.call_soon


def poller_of(loop: asyncio.AbstractEventLoop) -> Any:
    """Who calls the connections: the direct selector, or any other loop itself, which is only slower."""
    return loop.direct if isinstance(loop, BrokerEventLoop) else loop
