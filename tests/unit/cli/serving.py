"""A scripted broker on a loop of its own, and commands that ask it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from click.testing import CliRunner, Result

from headrace.cli.main import cli
from tests.unit.client.scripted_broker import ScriptedBroker

Run = Callable[..., Result]


@contextmanager
def serving(broker: ScriptedBroker) -> Iterator[None]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(broker.__aenter__(), loop).result(10)
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(broker.__aexit__(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def runner(bootstrap: str) -> Run:
    """Runs a command and checks its exit code."""

    def invoke(*args: str, stdin: str | None = None, code: int = 0) -> Result:
        environment = {"HEADRACE_BOOTSTRAP": bootstrap}
        result = CliRunner().invoke(cli, args, input=stdin, env=environment, prog_name="headrace")
        assert result.exit_code == code, (result.output, result.exception)
        return result

    return invoke
