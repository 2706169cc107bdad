"""How much processor time the broker's event loop takes between two looks at its sockets.

Counted in the thread's own time, so that a busy machine changes nothing: what one request takes of a turn is
what every other connection has to wait for at least. The collector's time is left out: it looks at all that
the tests have made as well, in whichever thread meets it.
"""

from __future__ import annotations

import gc
import select
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headrace.network.event_loop import BrokerEventLoop
from headrace.testing.cluster import Cluster


class _CountingEpoll:
    """In place of the selector's own: notes the time between one poll's return and the next one's call."""

    def __init__(self, epoll: select.epoll) -> None:
        self._epoll = epoll
        self._thread = 0
        self._since: float | None = None
        self._collecting = 0.0
        self._collected = 0.0
        self.longest = 0.0

    def poll(self, timeout: float, most: int) -> list[tuple[int, int]]:
        self._thread = threading.get_ident()
        if self._since is not None:
            self.longest = max(self.longest, self._own_seconds() - self._since)
        events = self._epoll.poll(timeout, most)
        self._since = self._own_seconds()
        return events

    def _own_seconds(self) -> float:
        return time.thread_time() - self._collected

    def on_collection(self, phase: str, _info: dict[str, int]) -> None:
        if threading.get_ident() != self._thread:
            return
        if phase == "start":
            self._collecting = time.thread_time()
        else:
            self._collected += time.thread_time() - self._collecting

    def __getattr__(self, name: str) -> Any:
        return getattr(self._epoll, name)


class Turns:
    def __init__(self, epoll: _CountingEpoll) -> None:
        self._epoll = epoll

    @property
    def longest_ms(self) -> float:
        return self._epoll.longest * 1000


@contextmanager
def turns_of(cluster: Cluster) -> Iterator[Turns]:
    """The longest turn within the block. One more turn is made at its end, so that the last one counts."""
    loop = cluster.broker.runtime.loop
    assert isinstance(loop, BrokerEventLoop)
    counting = _CountingEpoll(loop.direct._epoll)
    selector: Any = loop.direct

    def exchange(epoll: object) -> None:
        done = threading.Event()

        def put() -> None:
            selector._epoll = epoll
            done.set()

        loop.call_soon_threadsafe(put)
        assert done.wait(60)

    exchange(counting)
    gc.callbacks.append(counting.on_collection)
    try:
        yield Turns(counting)
    finally:
        gc.callbacks.remove(counting.on_collection)
        done = threading.Event()
        loop.call_soon_threadsafe(done.set)
        assert done.wait(60)
        exchange(counting._epoll)
