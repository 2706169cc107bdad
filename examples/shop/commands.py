"""The commands of headrace that run while the shop is open, each a process that may be killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self


class Command:
    """`headrace ...`, with a log in DIRECTORY. It stops at the end of the context, and its Spark with it."""

    def __init__(self, directory: Path, name: str, *arguments: str) -> None:
        self.log = directory / f"{name}.log"
        command = [sys.executable, "-m", "headrace", *arguments]
        with self.log.open("wb") as log:
            # A process group of its own, with its JVM: so both can be killed at once.
            self.process = subprocess.Popen(
                command, cwd=directory, stdout=log, stderr=log, start_new_session=True
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.terminate()
        try:
            self.process.wait(60)
        finally:
            self.kill()

    def ready(self) -> str:
        """Waits until it serves; where."""
        while True:
            told = self.log.read_text()
            if found := re.search(r"^ready \w+=(\S+)$", told, re.MULTILINE):
                return found[1]
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.log.stem} has ended:\n{told}")
            time.sleep(0.1)

    def kill(self) -> None:
        """-9, to it and its Spark: nothing is said, nothing is closed."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it has ended
        self.process.wait()


def worker(directory: Path, name: str, bootstrap: str) -> Command:
    """Of `headrace connect`, for the connectors of one cluster."""
    where = ("--bootstrap", bootstrap, "--listen", "127.0.0.1:0", "--master", "local[1]")
    return Command(directory, name, "connect", *where)


def create(connector: Path, url: str) -> None:
    create = ["connect", "create", "--file", str(connector), "--url", url]
    subprocess.run([sys.executable, "-m", "headrace", *create], stdout=subprocess.DEVNULL, check=True)


def filled(directory: Path, name: str, **values: object) -> Path:
    """A file beside this one, with what is known now: ports and addresses."""
    text = Path(__file__).with_name(name).read_text()
    for word, value in values.items():
        text = text.replace(word, str(value))
    (directory / name).write_text(text)
    return directory / name
