"""Several brokers under one parent: started together, again when one dies, and stopped one after the other.

Each broker is a process with a port that stays the same, so that a broker that comes back is found where it
was. A broker ends with its parent, however that ends: it asks the kernel for it (`die_with_parent`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from headrace.broker.runtime.logging import BROKER_VARIABLE
from headrace.client.private_files import write_file
from headrace.core.errors import HeadraceError
from headrace.core.failures import report
from headrace.core.tasks import spawn
from headrace.log.os_disk import make_private_directories, private_opener

START_SECONDS: Final = 60.0
STOP_SECONDS: Final = 60.0
FIRST_PAUSE: Final = 0.2
LONGEST_PAUSE: Final = 30.0
STEADY_SECONDS: Final = 60.0
"""A broker that has served for this long is well: the next pause is the first one again."""
COMPANION_SECONDS: Final = 1.0
REPEATED_SECONDS: Final = 1.0
"""Signals closer together than this are one: a keyboard and a wrapper such as `uv run` both send them."""
PARENT_VARIABLE: Final = "HEADRACE_PARENT"
_READY: Final = b"ready bootstrap="
_PR_SET_PDEATHSIG: Final = 1


class SupervisionFailed(HeadraceError):
    """A broker could not be started at all; what it said is on its standard error."""


class BrokerSpec(NamedTuple):
    broker_id: int
    properties_file: Path
    output: Path | None = None
    """Where its standard error goes; that of the parent if None."""


def write_properties(path: Path, properties: Mapping[str, str]) -> Path:
    """For nobody else to read: passwords may be among them."""
    make_private_directories(str(path.parent))
    write_file(path, "".join(f"{name}={value}\n" for name, value in properties.items()).encode())
    return path


def die_with_parent() -> None:
    """In a supervised broker: stop in order when the supervisor has ended, even by SIGKILL."""
    parent = os.environ.get(PARENT_VARIABLE)
    if parent is None or sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))
    if os.getppid() != int(parent):  # it ended before we could ask
        raise SupervisionFailed("the supervisor that started this broker has ended")


class _Child:
    """One broker: its process of the moment, and what is known of it."""

    __slots__ = ("bootstrap", "has_served", "pause", "process", "ready", "retired", "since", "spec")

    def __init__(self, spec: BrokerSpec) -> None:
        self.spec = spec
        self.process: asyncio.subprocess.Process | None = None
        self.ready = asyncio.Event()
        self.bootstrap = ""
        self.has_served = False
        self.pause = FIRST_PAUSE
        self.retired = asyncio.Event()
        self.since = 0.0


class Supervisor:
    """Belongs to one event loop. `say` is told, in a line for people, what happens to the brokers."""

    def __init__(
        self,
        specs: Sequence[BrokerSpec],
        *,
        say: Callable[[str], None],
        companion: Callable[[], None] | None = None,
        stop_seconds: float = STOP_SECONDS,
    ) -> None:
        """`companion` is called every second, to look after what the brokers need beside them."""
        self._children = [_Child(spec) for spec in specs]
        self._say = say
        self._companion = companion
        self._stop_seconds = stop_seconds
        self._stopping = asyncio.Event()
        self._hurry = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def bootstrap(self) -> str:
        return ",".join(child.bootstrap for child in self._children if not child.retired.is_set())

    @property
    def pids(self) -> dict[int, int]:
        """Broker id to process id, of those that run now."""
        return {
            child.spec.broker_id: child.process.pid
            for child in self._children
            if child.process is not None and child.process.returncode is None
        }

    async def start(self, timeout: float = START_SECONDS) -> str:
        """The bootstrap addresses, once every broker serves. If one cannot be started, none is left."""
        self._tasks = [
            spawn(f"broker {child.spec.broker_id}", self._watch(child), is_awaited=True)
            for child in self._children
        ]
        served = spawn("the start of all brokers", self._all_serve(), is_awaited=True)
        try:
            done, _ = await asyncio.wait(
                [served, *self._tasks], timeout=timeout, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                task.result()
            if not done:
                raise SupervisionFailed(f"the brokers were not ready after {timeout:g} s")
        except BaseException:
            self.hurry()
            await self.stop()
            raise
        finally:
            await _given_up(served)
        if self._companion is not None:
            self._tasks.append(spawn("the companion of the brokers", self._look_after(self._companion)))
        return self.bootstrap

    async def _all_serve(self) -> None:
        for child in self._children:
            await child.ready.wait()

    async def stop(self) -> None:
        """One broker after the other, so that each can hand over what it leads."""
        self._stopping.set()
        for child in reversed(self._children):
            await self._stop_child(child)
        await _given_up(*self._tasks)

    async def retire(self, broker_id: int) -> None:
        """Stop one broker in order, and do not start it again."""
        for child in self._children:
            if child.spec.broker_id == broker_id:
                child.retired.set()
                await self._stop_child(child)

    def hurry(self) -> None:
        """Do not wait for one broker before the next is told to stop."""
        self._hurry.set()
        if self._stopping.is_set():
            self._signal_all(signal.SIGTERM)

    def kill(self) -> None:
        self._stopping.set()
        self._signal_all(signal.SIGKILL)

    # --- one broker ----------------------------------------------------------------------------------------

    async def _watch(self, child: _Child) -> None:
        try:
            await self._keep(child)
        except (SupervisionFailed, OSError):
            raise  # `start` says so, in one line
        except Exception as error:
            report(f"broker {child.spec.broker_id}", error)
            raise

    async def _keep(self, child: _Child) -> None:
        """Until the end: run it, and run it again."""
        loop = asyncio.get_running_loop()
        while not self._stopping.is_set() and not child.retired.is_set():
            child.since = loop.time()
            try:
                code = await self._run(child)
            except OSError as error:
                if not child.has_served:
                    raise
                self._say(f"broker {child.spec.broker_id} could not be started: {error}")
                await self._pause(child)
                continue
            if self._stopping.is_set() or child.retired.is_set():
                return
            name = f"broker {child.spec.broker_id}"
            ended = f"{name} ended with {_words(code)}"
            if not child.has_served:
                raise SupervisionFailed(f"{ended} before it was ready")
            if loop.time() - child.since > STEADY_SECONDS:
                child.pause = FIRST_PAUSE
            self._say(f"{ended}; it is started again in {child.pause:g} s")
            await self._pause(child)

    async def _pause(self, child: _Child) -> None:
        """Cut short if the broker is not wanted any more."""
        try:
            async with asyncio.timeout(child.pause):
                await child.retired.wait()
        except TimeoutError:
            child.pause = min(child.pause * 2, LONGEST_PAUSE)

    async def _run(self, child: _Child) -> int:
        """The exit code of one life of it."""
        with contextlib.ExitStack() as files:
            output = None
            if child.spec.output is not None:
                output = files.enter_context(open(child.spec.output, "ab", opener=private_opener))
            child.process = await asyncio.create_subprocess_exec(
                *_command(child.spec),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=output,
                # An interrupt from the keyboard goes to the whole group: only the parent shall hear of it.
                start_new_session=True,
                env={
                    **os.environ,
                    PARENT_VARIABLE: str(os.getpid()),
                    BROKER_VARIABLE: str(child.spec.broker_id),
                },
            )
        process = child.process
        assert process.stdout is not None
        if child.retired.is_set():
            _signal(process, signal.SIGTERM)  # whoever retired it met only the process before this one
        try:
            async for line in process.stdout:
                if line.startswith(_READY):
                    self._served(child, line.removeprefix(_READY).decode().strip())
            return await process.wait()
        finally:
            if process.returncode is None:  # the parent was interrupted: nothing may be left behind
                process.kill()
                await process.wait()

    def _served(self, child: _Child, bootstrap: str) -> None:
        child.bootstrap = bootstrap
        if child.has_served:
            self._say(f"broker {child.spec.broker_id} serves again at {bootstrap}")
        child.has_served = True
        child.ready.set()

    async def _stop_child(self, child: _Child) -> None:
        process = child.process
        if process is None or process.returncode is not None:
            return
        _signal(process, signal.SIGTERM)
        ended = spawn("a process", process.wait(), is_awaited=True)
        hurried = spawn("a hurry", self._hurry.wait(), is_awaited=True)
        try:
            await asyncio.wait(
                [ended, hurried], timeout=self._stop_seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if hurried.done():
                self._signal_all(signal.SIGTERM)
                await asyncio.wait([ended], timeout=self._stop_seconds)
            if not ended.done():
                self._say(
                    f"broker {child.spec.broker_id} did not stop within {self._stop_seconds:g} s: killed"
                )
                _signal(process, signal.SIGKILL)
            await ended
        finally:
            await _given_up(ended, hurried)

    def _signal_all(self, number: signal.Signals) -> None:
        for child in self._children:
            if child.process is not None and child.process.returncode is None:
                _signal(child.process, number)

    async def _look_after(self, companion: Callable[[], None]) -> None:
        failed = ""
        while not self._stopping.is_set():
            try:
                companion()
                failed = ""
            except Exception as error:  # the next look may succeed, and nobody else looks
                if failed != repr(error):
                    failed = repr(error)
                    self._say(f"what the brokers need beside them could not be looked after: {failed}")
            await asyncio.sleep(COMPANION_SECONDS)


def run_supervisor(
    specs: Sequence[BrokerSpec],
    *,
    on_ready: Callable[[str], None],
    say: Callable[[str], None],
    companion: Callable[[], None] | None = None,
) -> int:
    """Serve until SIGTERM or SIGINT; a second one stops all brokers at once, a third one kills them."""

    async def serve() -> int:
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        supervisor = Supervisor(specs, say=say, companion=companion)
        asked, last = 0, loop.time() - REPEATED_SECONDS

        def ask() -> None:
            nonlocal asked, last
            if loop.time() - last < REPEATED_SECONDS:
                return
            last = loop.time()
            asked += 1
            if asked == 1:
                stop.set()
            elif asked == 2:
                say("stopping all brokers at once; once more kills them")
                supervisor.hurry()
            else:
                supervisor.kill()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, ask)
        starting = spawn("start", supervisor.start(), is_awaited=True)
        stopped = spawn("a signal", stop.wait(), is_awaited=True)
        await asyncio.wait([starting, stopped], return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            return 0
        on_ready(starting.result())
        await stopped
        say("stopping")
        await supervisor.stop()
        return 0

    return asyncio.run(serve())


def _command(spec: BrokerSpec) -> list[str]:
    return [sys.executable, "-m", "headrace.cli.main", "broker", "--config", str(spec.properties_file)]


async def _given_up(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(number)


def _words(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
