"""How much processor time the broker's event loop takes between two looks at its sockets.

Counted in the thread's own time, so that a busy machine changes nothing: what one request takes of a turn is
what every other connection has to wait for at least.
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
        self._since: float | None = None
        self.longest = 0.0

    def poll(self, timeout: float, most: int) -> list[tuple[int, int]]:
        if self._since is not None:
            self.longest = max(self.longest, time.thread_time() - self._since)
        events = self._epoll.poll(timeout, most)
        self._since = time.thread_time()
        return events

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
    loop = cluster.broker.loop
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
    gc.collect()
    gc.freeze()  # as a broker's own process does: a look at all objects of the tests is none of its turns
    try:
        yield Turns(counting)
    finally:
        gc.unfreeze()
        done = threading.Event()
        loop.call_soon_threadsafe(done.set)
        assert done.wait(60)
        exchange(counting._epoll)
