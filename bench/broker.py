"""A broker as a real process of its own: started, asked, stopped and timed."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Protocol

from bench import process_cost, wire
from bench.protection import Protection

START_LIMIT_S = 180.0
STOP_LIMIT_S = 120.0


class Product(Protocol):
    """A broker's make: how its configuration is written and with which command it starts."""

    @property
    def name(self) -> str: ...

    @property
    def protection(self) -> Protection | None: ...

    def install(self, directory: Path, port: int, secure_port: int) -> list[str]:
        """Make the directory ready (configuration, and formatting if it is new); return the command.
        `secure_port`: of the listener with TLS; 0 if there is none."""
        ...


class BrokerFailed(Exception):
    """The broker did not start, or ended by itself."""


class Broker:
    """One broker process on one data directory; can be stopped and started again."""

    def __init__(self, product: Product, directory: Path) -> None:
        self.product = product
        self.directory = directory
        self.port = 0
        self._secure_port = 0
        self._began = 0.0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def name(self) -> str:
        return self.product.name

    @property
    def bootstrap(self) -> str:
        """Where loads go."""
        return f"127.0.0.1:{self._secure_port or self.port}"

    @property
    def pid(self) -> int:
        if self._process is None or self._process.poll() is not None:
            raise BrokerFailed(f"{self.name} is not running; see {self.directory / 'output.log'}")
        return self._process.pid

    @property
    def log_directory(self) -> Path:
        return self.directory / "logs"

    def start(self) -> float:
        """Start the process; return the seconds to its first answer to Metadata."""
        self.launch()
        return self.wait_ready()

    def launch(self) -> None:
        """Start the process and go on at once: the brokers of a cluster start together."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.port = self.port or wire.free_port()
        if self.product.protection is not None:
            self._secure_port = self._secure_port or wire.free_port()
        command = self.product.install(self.directory, self.port, self._secure_port)
        with (self.directory / "output.log").open("ab") as output:
            self._began = time.monotonic()
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_installed_environment(),
            )

    def wait_ready(self, brokers: int = 1) -> float:
        """Until it answers Metadata, and knows so many brokers; return the seconds since its start."""
        while not wire.answers(self.port, brokers):
            process = self._process
            ended = process is None or process.poll() is not None
            if ended or time.monotonic() - self._began > START_LIMIT_S:
                self.stop()
                raise BrokerFailed(f"{self.name} did not start:\n{self.last_output()}")
            time.sleep(0.005)
        return time.monotonic() - self._began

    def stop(self) -> float:
        """Ask the process to end and wait for it; return the seconds that took."""
        process, self._process = self._process, None
        if process is None:
            return 0.0
        began = time.monotonic()
        process.terminate()
        try:
            process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return time.monotonic() - began

    def kill(self) -> None:
        """End it at once: what it holds is not needed any more."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def cpu_seconds(self) -> float:
        return process_cost.cpu_seconds(self.pid)

    def resident_bytes(self) -> int:
        return process_cost.resident_bytes(self.pid)

    def last_output(self, lines: int = 15) -> str:
        path = self.directory / "output.log"
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else ""


def _installed_environment() -> dict[str, str]:
    """As an installed package, with its bytecode, whatever a developer's switch says."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
