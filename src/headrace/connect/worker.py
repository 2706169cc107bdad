"""A worker: takes part in the group, runs what it is given, and says how that is.

The group says which connectors are this worker's, the topic of configurations what they are to do. Both only
wake one loop, which starts and stops what follows from them (`reconciling.py`). A connector that is being
stopped holds up no other.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.connect import operations
from headrace.connect.cluster_config import Wanted
from headrace.connect.errors import ConnectError
from headrace.connect.membership import WorkerMember
from headrace.connect.plugins import Plugins, UnknownPlugin, version_of
from headrace.connect.reconciling import Running, steps
from headrace.connect.runner import Condition, Report, Run, Runner
from headrace.connect.status_writer import StatusWriter
from headrace.connect.stores import ConfigStore, StatusStore
from headrace.core.errors import HeadraceError
from headrace.core.tasks import spawn

log = logging.getLogger("headrace.connect")

_BEATS_PER_SESSION: Final = 10
_PAUSE: Final = 0.5
_STOP_SECONDS: Final = 30.0
_GATHERING: Final = 0.2
"""So long the leader waits for more before it gives out new connectors: they often come many at once."""


class Worker:
    def __init__(
        self,
        cluster: Cluster,
        group_id: str,
        url: str,
        worker_id: str,
        configs: ConfigStore,
        statuses: StatusStore,
        plugins: Plugins,
        runner: Runner,
        *,
        session_timeout_ms: int = 6_000,
    ) -> None:
        self.worker_id = worker_id
        self._configs = configs
        self._plugins = plugins
        self._runner = runner
        self._session = session_timeout_ms / 1000
        self._member = WorkerMember(
            cluster, group_id, url, configs, self._owned, session_timeout_ms=session_timeout_ms
        )
        self._telling = StatusWriter(
            statuses, configs, worker_id, lambda: self._member.generation, self._version
        )
        self._assigned: frozenset[str] = frozenset()
        self._running: dict[str, Running] = {}
        self._stopping: dict[str, asyncio.Task[None]] = {}
        self._writing: set[asyncio.Task[None]] = set()
        self._woken = asyncio.Event()
        self._rejoin = asyncio.Event()
        self._heard = time.monotonic()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def is_ready(self) -> bool:
        """Whether it has joined the group."""
        return self._member.generation >= 0

    def start(self) -> None:
        self._tasks = [
            spawn("the worker's group", self._take_part(), is_awaited=True),
            spawn("the worker's connectors", self._reconcile_for_ever(), is_awaited=True),
            spawn("the worker's configurations", self._follow_configs(), is_awaited=True),
            spawn("what runs the worker's connectors", self._runner.failed(), is_awaited=True),
        ]

    async def failed(self) -> None:
        """Returns never, or raises where the worker cannot go on."""
        await asyncio.gather(*self._tasks)

    async def close(self) -> None:
        """Stops what runs, says so, and leaves the group: the others take over at once."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        names = set(self._running) | set(self._stopping)
        await asyncio.gather(*(self._runner.stop(name) for name in names), return_exceptions=True)
        await asyncio.gather(*self._stopping.values(), *self._writing, return_exceptions=True)
        await self._telling.unassigned(self._assigned)
        with suppress(ClientFailure, TimeoutError):
            async with asyncio.timeout(self._session):
                await self._member.leave()

    # --- the group ------------------------------------------------------------------------------------

    def _owned(self) -> set[str]:
        return set(self._assigned) | set(self._running) | set(self._stopping)

    async def _take_part(self) -> None:
        told = ""
        while True:
            try:
                given = await self._member.join()
                told = ""
                self._heard = time.monotonic()
                self._assigned = frozenset(given)
                log.info(
                    "connectors assigned",
                    extra={"generation": self._member.generation, "connectors": len(given)},
                )
                # What is to be given up is given up before the next round, which it is for.
                self._wake()
                await self._stay()
            except (HeadraceError, TimeoutError) as error:
                if str(error) != told:  # it may stay so for ever, and is asked twice a second
                    told = str(error)
                    log.warning("the worker is not in its group", extra={"error": told})
                if self._silence() > self._session and self._owned():
                    await self._lose(error)
                await asyncio.sleep(_PAUSE)

    async def _stay(self) -> None:
        """Until the group is to be joined again."""
        beat = self._session / _BEATS_PER_SESSION
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(beat):
                    await self._rejoin.wait()
                    self._rejoin.clear()
                    return
            async with asyncio.timeout(max(beat, self._session - self._silence())):
                is_member = await self._member.heartbeat()
            if self._silence() > self._session:
                # This process slept. Whatever the answer says, others may have been given its work.
                raise TimeoutError(f"{self._silence():.1f} s between two heartbeats")
            self._heard = time.monotonic()
            if not is_member:
                return
            if self._is_out_of_date():
                await asyncio.sleep(_GATHERING)
                return

    def _silence(self) -> float:
        """Seconds since the group was heard from."""
        return time.monotonic() - self._heard

    def _is_out_of_date(self) -> bool:
        return self._member.is_leader and self._member.assigned_from != frozenset(self._configs.state.names())

    async def _lose(self, error: Exception) -> None:
        """The session has ended, so others run what this worker ran: its transactional ids are taken."""
        log.error(
            "the group was not heard from in time: connectors are given up",
            extra={"error": str(error), "connectors": len(self._running)},
        )
        self._assigned = frozenset()
        names = [name for name in self._running if name not in self._stopping]
        self._running.clear()
        await asyncio.gather(*(self._runner.abandon(name) for name in names))

    # --- connectors -----------------------------------------------------------------------------------

    def _wake(self) -> None:
        self._woken.set()

    async def _follow_configs(self) -> None:
        while True:
            await self._configs.moved()
            self._wake()

    async def _reconcile_for_ever(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            self._reconcile()
            await self._telling.write(self._assigned)

    def _reconcile(self) -> None:
        found = steps(self._configs.state, self._assigned, self._running, self._stopping)
        for name in found.stop:
            self._stopping[name] = spawn(f"the end of connector {name}", self._stop(name))
        for wanted in found.keep:
            self._running[wanted.name] = self._running[wanted.name]._replace(run=wanted.run)
        for wanted in found.start:
            self._start(wanted)

    def _start(self, wanted: Wanted) -> None:
        name = wanted.name
        self._running[name] = Running(wanted.run, has_failed=False)
        try:
            described = self._plugins.find(wanted.properties.get("connector.class", ""))
        except UnknownPlugin as error:
            self._reported(wanted, Report(name, Condition.FAILED, str(error)))
            return
        loop = asyncio.get_running_loop()

        def report(said: Report) -> None:
            with suppress(RuntimeError):  # the loop has been closed: nobody listens any more
                loop.call_soon_threadsafe(self._reported, wanted, said)

        log.info("connector starts", extra={"connector": name, "type": described.name})
        self._runner.start(Run(name, described, wanted.properties), report)

    def _version(self, wanted: Wanted) -> str | None:
        try:
            return version_of(self._plugins.find(wanted.properties.get("connector.class", "")).connector)
        except UnknownPlugin:
            return None

    def _reported(self, wanted: Wanted, said: Report) -> None:
        self._telling.used(said.name, said.topics)
        running = self._running.get(said.name)
        if running is None or said.name in self._stopping or running.run != wanted.run:
            return  # of a run that has been given up since
        self._running[said.name] = running._replace(has_failed=said.condition is not Condition.RUNNING)
        self._telling.heard(said)
        if said.tasks is not None:
            self._in_background(self._write_tasks(wanted, said))
        self._wake()

    async def _write_tasks(self, wanted: Wanted, said: Report) -> None:
        assert said.tasks is not None
        tasks = said.tasks
        try:
            await self._configs.write(lambda state: (operations.set_tasks(state, wanted, tasks), None))
        except ConnectError as error:
            log.error("tasks cannot be written", extra={"connector": wanted.name, "error": str(error)})
        self._wake()

    async def _stop(self, name: str) -> None:
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._runner.stop(name)
        except TimeoutError:
            log.warning("a connector does not end: it is fenced instead", extra={"connector": name})
            await self._runner.abandon(name)
        finally:
            self._running.pop(name, None)
            self._stopping.pop(name, None)
            self._telling.ended(name)
            if name not in self._assigned and not self._stopping:
                # It was taken away, and can be given to another now.
                self._rejoin.set()
            self._wake()

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = spawn("a write of tasks", work)
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)
