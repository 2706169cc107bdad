"""Fails a test in which the event loop of a broker waits for a disk, or works too long in one turn.

The loop serves everybody, so it waits for nobody: what a disk can hold up goes to a thread. `install` watches
the calls that can wait, in this process: of the system's functions, and of the simulated disk. A call counts
if it is made by a loop on which a broker runs. It also watches the processor time of each turn of a
`BrokerEventLoop`: its own time, not the clock's, because a busy machine is no fault of the loop.

Waiting for a lock that a thread holds while it waits for a disk is not seen.
"""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, NamedTuple
from weakref import WeakSet

from headrace.broker import assembly
from headrace.network.event_loop import BrokerEventLoop, DirectSelector
from headrace.testing.disk import SimulatedDisk, SimulatedFile
from headrace.testing.simulation.virtual_loop import ProcessLoop

TURN_SECONDS: Final = 0.05
"""What a turn may take, where a test asks for it."""
HUNG_SECONDS: Final = 1.0
"""What it may take in any test: some make thousands of partitions at once, on whatever machine there is."""
LARGE_BYTES: Final = 1 << 20
"""From here on a file system may take long to give a file's blocks back."""
_OURS: Final = f"{os.sep}headrace{os.sep}"


class Exempt(NamedTuple):
    function: str
    """`module.function` below `headrace`, anywhere on the stack."""
    why: str


EXEMPT: Final = (
    Exempt("broker.storage.opening._cluster_id", "the start: nobody is served, and no log is open"),
    Exempt("controller.checkpoint_files.CheckpointFiles.latest", "the start: nobody is served"),
    Exempt("log.manager.LogManager.create", "a checkpoint names a log that nobody has removed: not twice"),
)


class Sentinel:
    def __init__(self) -> None:
        self.loops: WeakSet[asyncio.AbstractEventLoop] = WeakSet()
        """On which a broker runs, or ran. Without the broker, which knows its loop: else every cluster that
        was ever simulated would stay."""
        self.found: list[str] = []
        self.turn_seconds = HUNG_SECONDS
        self._in_simulated_thread = False
        self._collecting = 0.0
        self._collected: dict[int, float] = {}

    # --- the disk ---

    def check(self, what: str) -> None:
        loop = asyncio._get_running_loop()
        if loop is None or self._in_simulated_thread or loop not in self.loops:
            return
        stack = _stack()
        if stack and not any(each.function in stack for each in EXEMPT):
            self.found.append(f"the loop of a broker waits for the disk: {what} by {' < '.join(stack[:9])}")

    def run_in_simulated_thread(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            before, self._in_simulated_thread = self._in_simulated_thread, True
            try:
                return plain(*args)
            finally:
                self._in_simulated_thread = before

        return run

    # --- turns ---

    def on_collection(self, phase: str, _info: dict[str, int]) -> None:
        """The collector looks at everything that the tests have made, in whichever thread meets it."""
        thread = time.thread_time()
        if phase == "start":
            self._collecting = thread
        else:
            ident = _ident()
            self._collected[ident] = self._collected.get(ident, 0.0) + thread - self._collecting

    def own_seconds(self) -> float:
        return time.thread_time() - self._collected.get(_ident(), 0.0)

    def on_turn(self, loop: asyncio.AbstractEventLoop, seconds: float, longest: str) -> None:
        if seconds > self.turn_seconds and loop in self.loops:
            self.found.append(f"a turn of the loop of a broker took {seconds * 1000:.0f} ms: {longest}")


class TurnMeter:
    """Stands where epoll does. Between two calls of `poll` lies one turn."""

    def __init__(self, plain: Any, loop: BrokerEventLoop, sentinel: Sentinel) -> None:
        self._plain = plain
        self._loop = loop
        self._sentinel = sentinel
        self._began: float | None = None
        self._thread = 0
        self.longest = (0.0, "")

    def time(self, plain: Callable[..., Any], what: Any, *args: Any) -> None:
        began = self._sentinel.own_seconds()
        try:
            plain(*args)
        finally:
            seconds = self._sentinel.own_seconds() - began
            if seconds > self.longest[0]:
                self.longest = seconds, repr(what)

    def poll(self, timeout: float, most: int) -> Any:
        sentinel = self._sentinel
        if self._began is not None and self._thread == _ident():
            sentinel.on_turn(self._loop, sentinel.own_seconds() - self._began, self.longest[1])
        try:
            return self._plain.poll(timeout, most)
        finally:
            self._thread, self._began, self.longest = _ident(), sentinel.own_seconds(), (0.0, "")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)


_ident = threading.get_ident


def _stack() -> list[str]:
    """Who called, the nearest first, of the product's functions only."""
    found = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        path = frame.f_code.co_filename
        if _OURS in path and "site-packages" not in path:
            module = path.rpartition(_OURS)[2].removesuffix(".py").replace(os.sep, ".")
            if not module.startswith("testing."):
                found.append(f"{module}.{frame.f_code.co_qualname}")
        frame = frame.f_back
    return found


def _watched(sentinel: Sentinel, plain: Callable[..., Any], what: str) -> Callable[..., Any]:
    def call(*args: Any, **named: Any) -> Any:
        sentinel.check(what)
        return plain(*args, **named)

    return call


def _watched_removal(sentinel: Sentinel, plain: Callable[..., Any], size: Callable[..., int]) -> Any:
    def call(*args: Any, **named: Any) -> Any:
        try:
            large = size(*args) >= LARGE_BYTES
        except (OSError, TypeError):
            large = False
        if large:
            sentinel.check("the removal of a large file")
        return plain(*args, **named)

    return call


@contextmanager
def installed() -> Iterator[Sentinel]:
    sentinel = Sentinel()
    with _Replaced() as put:
        _watch_disks(sentinel, put)
        _watch_brokers(sentinel, put)
        try:
            _watch_turns(sentinel, put)
        except TypeError:
            pass  # compiled: its classes are as they are, and the turns of its loops are not measured
        gc.callbacks.append(sentinel.on_collection)
        try:
            yield sentinel
        finally:
            gc.callbacks.remove(sentinel.on_collection)


class _Replaced:
    """Attributes that are put back in the end."""

    def __init__(self) -> None:
        self._undo: list[tuple[Any, str, Any]] = []

    def __call__(self, owner: Any, name: str, value: Any) -> None:
        plain = getattr(owner, name)
        setattr(owner, name, value)
        self._undo.append((owner, name, plain))

    def __enter__(self) -> _Replaced:
        return self

    def __exit__(self, *_: object) -> None:
        for owner, name, value in reversed(self._undo):
            setattr(owner, name, value)


def _watch_disks(sentinel: Sentinel, put: _Replaced) -> None:
    for name in ("fsync", "fdatasync", "sync", "listdir", "scandir", "statvfs"):
        put(os, name, _watched(sentinel, getattr(os, name), f"os.{name}"))
    put(shutil, "rmtree", _watched(sentinel, shutil.rmtree, "shutil.rmtree"))
    for name in ("remove", "unlink"):
        put(os, name, _watched_removal(sentinel, getattr(os, name), lambda path, **_: os.stat(path).st_size))
    for name in ("sync_dir", "list", "remove_tree", "free_bytes", "total_bytes"):
        put(SimulatedDisk, name, _watched(sentinel, getattr(SimulatedDisk, name), name))
    put(SimulatedDisk, "remove", _watched_removal(sentinel, SimulatedDisk.remove, SimulatedDisk.size))
    put(SimulatedFile, "sync", _watched(sentinel, SimulatedFile.sync, "sync"))
    put(ProcessLoop, "_in_thread", sentinel.run_in_simulated_thread(ProcessLoop._in_thread))


def _watch_brokers(sentinel: Sentinel, put: _Replaced) -> None:
    plain = assembly._Assembly.__init__

    def init(self: assembly._Assembly, *args: Any, **named: Any) -> None:
        plain(self, *args, **named)
        sentinel.loops.add(self.runtime.loop)

    put(assembly._Assembly, "__init__", init)


def _watch_turns(sentinel: Sentinel, put: _Replaced) -> None:
    plain_loop, plain_run, plain_call = BrokerEventLoop.__init__, asyncio.Handle._run, DirectSelector._call

    def make_loop(self: BrokerEventLoop) -> None:
        plain_loop(self)
        self.direct._epoll = TurnMeter(self.direct._epoll, self, sentinel)  # type: ignore[assignment]

    def run_handle(self: asyncio.Handle) -> None:
        meter = getattr(getattr(getattr(self, "_loop", None), "direct", None), "_epoll", None)
        if isinstance(meter, TurnMeter):
            meter.time(plain_run, self, self)
        else:
            plain_run(self)

    def call(self: DirectSelector, callback: Callable[[], None]) -> None:
        meter: Any = self._epoll
        if isinstance(meter, TurnMeter):
            meter.time(plain_call, callback, self, callback)
        else:
            plain_call(self, callback)

    put(DirectSelector, "_call", call)
    put(asyncio.Handle, "_run", run_handle)
    put(BrokerEventLoop, "__init__", make_loop)
