"""Who carries out the jobs of the cleaner: processes that are started when they are needed, or nobody else.

A process that has had nothing to do for a while is ended: the memory of its key map goes with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncGenerator, Callable
from typing import Final, Protocol

from headrace.broker.storage.cleaner_worker import FAILED, GO_ON
from headrace.core.errors import CorruptLog, ServerError
from headrace.core.ports import Disk
from headrace.log.cleaner.job import CleanedGroup, CleaningJob, PassEnd, job_to_json, step_from_json
from headrace.log.cleaner.passes import clean

STEP_LINE_BYTES: Final = 16 * 1024 * 1024
Steps = AsyncGenerator[CleanedGroup | PassEnd, None]


class WorkerLost(ServerError):
    """The process of the cleaner has ended in the middle of a job. Nothing is damaged by that."""


class CleanerWorkers(Protocol):
    def run(self, job: CleaningJob) -> Steps:
        """Every group of the job as it is written, then its end. Raises CorruptLog, OSError, WorkerLost."""
        ...

    def retire(self, keep: int) -> None:
        """End all but so many of those that have nothing to do."""
        ...

    async def close(self) -> None: ...


class InPlace:
    """For a world without processes: the loop itself does it, group by group."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    async def run(self, job: CleaningJob) -> Steps:
        for step in clean(self._disk, job, lambda _count: None):
            yield step
            await asyncio.sleep(0)

    def retire(self, keep: int) -> None:
        """There is nobody."""

    async def close(self) -> None:
        """There is nobody."""


class Processes:
    def __init__(self, on_lost: Callable[[], None]) -> None:
        self._idle: list[asyncio.subprocess.Process] = []
        self._busy: dict[asyncio.subprocess.Process, None] = {}
        self._ended: list[asyncio.subprocess.Process] = []
        """Told to end, and perhaps not gone yet."""
        self._on_lost = on_lost

    async def run(self, job: CleaningJob) -> Steps:
        process = await self._take()
        finished = False
        try:
            assert process.stdin is not None
            process.stdin.write(f"{job_to_json(job)}\n".encode())
            while True:
                step = await self._step(process)
                if isinstance(step, PassEnd):
                    finished = True
                    yield step
                    return
                yield step
                process.stdin.write(GO_ON.encode())
        except (CorruptLog, OSError):
            finished = True
            raise
        finally:
            self._busy.pop(process, None)
            if finished and process.returncode is None:
                self._idle.append(process)
            else:
                self._end(process)  # also when the job was given up: it may be in the middle of a group

    async def _take(self) -> asyncio.subprocess.Process:
        while self._idle:
            process = self._idle.pop()
            if process.returncode is None:
                break
        else:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "headrace.broker.storage.cleaner_worker",
                str(os.getpid()),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=STEP_LINE_BYTES,
            )
        self._busy[process] = None
        return process

    async def _step(self, process: asyncio.subprocess.Process) -> CleanedGroup | PassEnd:
        assert process.stdout is not None
        line = await process.stdout.readline()
        if not line.endswith(b"\n"):
            self._on_lost()
            raise WorkerLost(f"the cleaner's process {process.pid} has ended")
        if line.startswith(f'["{FAILED}"'.encode()):
            _, number, text = json.loads(line)
            raise CorruptLog(text) if number is None else OSError(number, text)
        return step_from_json(line.decode())

    def retire(self, keep: int) -> None:
        while len(self._idle) > keep:
            self._end(self._idle.pop())

    async def close(self) -> None:
        for process in [*self._idle, *self._busy]:
            self._end(process)
        self._idle.clear()
        self._busy.clear()
        for process in self._ended:
            await process.wait()
        self._ended.clear()

    def _end(self, process: asyncio.subprocess.Process) -> None:
        """At once: what it writes is nothing before it is swapped."""
        self._ended = [each for each in self._ended if each.returncode is None]
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        self._ended.append(process)
