"""A worker of Connect as a process, with real topics, group and interface, and connectors that do nothing: no
Spark is needed to see what a worker keeps.

    python -m tests.registry.idle_worker BOOTSTRAP
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from headrace.config.http_listener import HttpListener
from headrace.connect.plugins import Plugins, described
from headrace.connect.runner import Condition, Report, Run
from headrace.connect.server import WorkerOptions, serve
from tests.unit.connect.memory import NotingRunner, TankSink, WellSource

SECONDS = 120.0


class IdleRunner(NotingRunner):
    def start(self, run: Run, report: Callable[[Report], None]) -> None:
        """As a runner does it that has one task."""
        report(Report(run.name, Condition.RUNNING, tasks=({"task.class": "idle"},)))

    async def stop(self, name: str) -> None:
        pass

    async def abandon(self, name: str) -> None:
        pass


@contextmanager
def idle_worker(bootstrap: str) -> Iterator[str]:
    """Its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.registry.idle_worker", bootstrap], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip().removeprefix("ready url=")
    finally:
        process.terminate()
        process.wait(SECONDS)
        process.stdout.close()


def main() -> None:
    listener = HttpListener("CONNECT", "127.0.0.1", 0, None, (), None, True)
    plugins = Plugins(described(each, each.__name__.lower()) for each in (WellSource, TankSink))
    options = WorkerOptions(sys.argv[1], listener, session_timeout_ms=30_000)
    asyncio.run(serve(options, plugins, IdleRunner(), lambda url: print(f"ready url={url}", flush=True)))


if __name__ == "__main__":
    main()
