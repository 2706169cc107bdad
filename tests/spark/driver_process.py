"""A driver as a process of its own: a Python program with a session, and the JVM that belongs to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from headrace.spark import jars
from tests.apache_kafka import CACHE
from tests.cluster_process import DIES_WITH_PARENT
from tests.spark import processes

_CHECKOUT: Final = Path(__file__).parents[2]
_END_SECONDS: Final = 60.0


class DriverProcess:
    """`python -m MODULE JSON`. Python and JVM are one group: killed, they die at the same moment."""

    def __init__(
        self, module: str, document: str, output: Path, environment: Mapping[str, str] | None = None
    ):
        self.output = output
        given = {
            **os.environ,
            jars.DIRECTORY_VARIABLE: str(CACHE / "spark-jars"),
            "PYTHONPATH": str(_CHECKOUT),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            **(environment or {}),
        }
        # The sessions of pytest's own process must not reach into this one.
        for name in ("PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"):
            given.pop(name, None)
        with output.open("ab") as file:
            self._process = subprocess.Popen(
                [*DIES_WITH_PARENT, sys.executable, "-m", module, document],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=given,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def status(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def wait(self, seconds: float) -> int:
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the driver did not end within {seconds:g} s:\n{self.tail()}") from None

    def kill(self) -> None:
        """With -9, all of it. What it leaves on disk and in brokers is as a crash leaves it."""
        below = processes.descendants(self.pid)
        if self._process.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()
        # Python workers on the driver are groups of their own; they end when their JVM is gone.
        if left := processes.wait_gone(below, _END_SECONDS):
            processes.kill(left)
            processes.wait_gone(left, _END_SECONDS)

    def tail(self, characters: int = 4000) -> str:
        return self.output.read_text(errors="replace")[-characters:] if self.output.exists() else ""

    def __enter__(self) -> DriverProcess:
        return self

    def __exit__(self, *_: Any) -> None:
        self.kill()
