"""A broker as a process of its own, whoever wrote it: started on free ports, stopped or killed by its id."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from tests.ports import own_port

BROKER_ID = 1
#: The command as it is installed beside this Python.
HEADRACE = Path(sys.executable).with_name("headrace")


def write_properties(path: Path, properties: Mapping[str, str]) -> None:
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))


class Place(NamedTuple):
    """Where a process runs: under which address it is reached, and what its command begins with."""

    address: str = "127.0.0.1"
    prefix: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}


HERE = Place()


class BrokerProcess:
    """The common part: a process, its port, its directory and its log file."""

    #: How long a start may take. Recovery after a kill counts.
    START_SECONDS = 240.0

    def __init__(
        self,
        directory: Path,
        properties: Mapping[str, str] | None = None,
        *,
        broker_id: int = BROKER_ID,
        place: Place = HERE,
    ) -> None:
        self.directory = directory
        self.broker_id = broker_id
        self.place = place
        self.port = own_port()
        self.secured_ports: dict[str, int] = {}
        """Of further listeners, by their protocol: SSL, SASL_SSL."""
        self.log_dir = directory / "logs"
        self.properties = dict(properties or {})
        self.process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)

    @property
    def bootstrap(self) -> str:
        return f"{self.place.address}:{self.port}"

    @property
    def listeners(self) -> str:
        ports = {"PLAINTEXT": self.port, **self.secured_ports}
        return ",".join(f"{protocol}://{self.place.address}:{port}" for protocol, port in ports.items())

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def output(self) -> Path:
        return self.directory / "broker.out"

    def command(self) -> list[str]:
        raise NotImplementedError

    def answers(self) -> bool:
        """Whether the broker has said that it is ready; the port itself is probed separately."""
        return True

    def start(self) -> Self:
        self.launch()
        return self.wait_ready()

    def launch(self) -> None:
        """Start the process and go on at once: the brokers of a cluster start together."""
        command = [*self.place.prefix, *self.command()]
        environment = {**os.environ, **self.place.environment}
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, env=environment
            )

    def wait_ready(self) -> Self:
        assert self.process is not None
        deadline = time.monotonic() + self.START_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"the broker ended with {self.process.returncode}:\n{self.tail()}")
            with socket.socket() as probe:
                probe.settimeout(1)
                if self.answers() and probe.connect_ex((self.place.address, self.port)) == 0:
                    return self
            time.sleep(0.02)
        self.kill()
        raise RuntimeError(f"the broker was not ready after {self.START_SECONDS:g} s:\n{self.tail()}")

    def tail(self) -> str:
        return self.output.read_text(errors="replace")[-4000:] if self.output.exists() else ""

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def stop(self) -> None:
        """Ask it to end, as an operator would."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(self.START_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        self.process = None

    def kill(self) -> None:
        """End it without a warning: nothing that it had not written is kept."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def resident_bytes(self) -> int:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class HeadraceProcess(BrokerProcess):
    """`headrace broker --config FILE`, with Kafka's defaults for all that a test does not set."""

    def command(self) -> list[str]:
        config = self.directory / "server.properties"
        write_properties(
            config,
            {
                "broker.id": str(self.broker_id),
                "listeners": self.listeners,
                "log.dirs": str(self.log_dir),
                **self.properties,
            },
        )
        return [str(HEADRACE), "broker", "--config", str(config)]
