"""A broker in a process of its own, for those who measure what it costs others."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Final

SPAWNED: Final = multiprocessing.get_context("spawn")


@contextmanager
def running(serve: Callable[[Connection], None]) -> Iterator[tuple[int, int]]:
    """Its port and its process id. `serve` sends its bootstrap, and ends when it receives something."""
    ours, theirs = SPAWNED.Pipe()
    broker = SPAWNED.Process(target=serve, args=(theirs,))
    broker.start()
    assert broker.pid is not None
    try:
        yield int(ours.recv().rpartition(":")[2]), broker.pid
    finally:
        ours.send(None)
        broker.join()
