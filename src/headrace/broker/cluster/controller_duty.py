"""One duty of the controller, in a task of its own: it waits for no other, and fails alone, by its name."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from headrace.broker.runtime.runtime import Runtime
from headrace.controller.shell import Controller
from headrace.core.errors import HeadraceError, NotController
from headrace.core.ports_coordination import ControllerFenced, CoordinationUnavailable
from headrace.core.tasks import spawn


class Duty:
    """Done when it is woken, and at every tick, as long as this broker is the controller."""

    def __init__(
        self,
        name: str,
        act: Callable[[], Awaitable[None]],
        runtime: Runtime,
        controller: Controller,
        tick: float,
    ) -> None:
        self.name = name
        self._act = act
        self._runtime = runtime
        self._controller = controller
        self._tick = tick
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = spawn(f"the controller's {self.name}", self._run())

    def wake(self) -> None:
        self._wake.set()

    def cancel(self) -> list[asyncio.Task[None]]:
        """What has to be awaited then."""
        if self._task is None:
            return []
        self._task.cancel()
        return [self._task]

    async def _run(self) -> None:
        while self._controller.is_active:
            self._wake.clear()
            if await self._has_failed():
                # Not before the tick, whoever wakes it: what fails at once would fail without end.
                await asyncio.sleep(self._tick)
                continue
            try:
                async with asyncio.timeout(self._tick):
                    await self._wake.wait()
            except TimeoutError:
                pass

    async def _has_failed(self) -> bool:
        log = self._runtime.log
        try:
            await self._act()
        except (CoordinationUnavailable, NotController, ControllerFenced):
            pass  # the next turn finds the service back, or the term over
        except HeadraceError as error:
            log.error("controller duty failed", duty=self.name, error=str(error))
            return True
        except Exception as error:  # a defect: the other duties go on, and this one is tried again
            log.error("controller duty failed", duty=self.name, error=repr(error), exc_info=error)
            return True
        return False
