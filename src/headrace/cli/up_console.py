"""`headrace up --console`: the console of a local cluster, as a process beside its brokers."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

_READY = "ready url="
_SECONDS = 10.0


class ConsoleProcess:
    def __init__(self, port: int) -> None:
        self._port = port
        self._process: subprocess.Popen[str] | None = None
        self._thread: threading.Thread | None = None

    def start(self, bootstrap: str, properties: Path | None = None) -> None:
        """`properties`: of the administrator of a cluster with users. Viewers log in there too."""
        words = ["console", "-b", bootstrap, "--port", str(self._port)]
        if properties is not None:
            words += ["--command-config", str(properties), "--authentication", "basic"]
        self._thread = threading.Thread(target=self._run, args=(words,), name="console", daemon=True)
        self._thread.start()

    def _run(self, words: list[str]) -> None:
        """To its end: a child is told of the death of the thread that made it."""
        from headrace.broker.process.supervisor import PARENT_VARIABLE

        with subprocess.Popen(
            [sys.executable, "-m", "headrace", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            # An interrupt from the keyboard goes to the whole group: only the parent shall hear of it.
            start_new_session=True,
            env={**os.environ, PARENT_VARIABLE: str(os.getpid())},
        ) as process:
            self._process = process
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith(_READY):
                    click.echo(f"console at {line.removeprefix(_READY).strip()}", err=True)

    def stop(self) -> None:
        if self._process is None or self._thread is None:
            return
        self._process.terminate()
        self._thread.join(_SECONDS)
        if self._thread.is_alive():
            self._process.kill()
            self._thread.join(_SECONDS)


@contextmanager
def console_process(port: int | None) -> Iterator[ConsoleProcess | None]:
    """None where none is wanted."""
    if port is None:
        yield None
        return
    console = ConsoleProcess(port)
    try:
        yield console
    finally:
        console.stop()
