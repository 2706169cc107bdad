"""rdload, the load generator of the bench: built when needed, run as a process of its own."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).resolve().parent / "load"
BINARY = SOURCE.parent.parent / ".cache" / "bench" / "rdload"
LIMIT_S = 1800.0
client_properties: dict[str, str] = {}
"""What every load needs to connect. Empty unless brokers are protected."""


class LoadFailed(Exception):
    """The load generator failed, or records are missing."""


@dataclass(frozen=True)
class Load:
    """What the load generator saw. Latencies are zero where it took none."""

    records: int
    failed: int
    bytes: int
    seconds: float
    client_cpu_s: float
    produce_requests: int
    fetch_requests: int
    p50_us: float
    p99_us: float
    p999_us: float
    max_us: float
    client: str


def build() -> Path:
    """Compile rdload unless the binary is newer than its source."""
    sources = [SOURCE / "rdload.c", SOURCE / "latency.h"]
    if BINARY.exists() and BINARY.stat().st_mtime > max(path.stat().st_mtime for path in sources):
        return BINARY
    BINARY.parent.mkdir(parents=True, exist_ok=True)
    command = ["gcc", "-O2", "-std=gnu11", "-Wall", "-Wextra", "-o", str(BINARY), str(sources[0])]
    try:
        subprocess.run([*command, "-lrdkafka", "-lpthread"], check=True)
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        raise LoadFailed(
            "cannot build rdload; it needs gcc and librdkafka's headers (librdkafka-dev)"
        ) from error
    return BINARY


class Running:
    """A load that is under way."""

    def __init__(self, mode: str, bootstrap: str, topic: str, arguments: Sequence[str]) -> None:
        command = [str(build()), mode, "-b", bootstrap, "-t", topic, *arguments]
        command += _properties(client_properties)
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def stop(self) -> None:
        """End a paced load early. It still reports."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def result(self) -> Load:
        try:
            output, errors = self._process.communicate(timeout=LIMIT_S)
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise
        if self._process.returncode:
            raise LoadFailed(f"rdload ended with {self._process.returncode}: {output}{errors}")
        return Load(**json.loads(output))


def _properties(properties: Mapping[str, str | int] | None) -> list[str]:
    return [word for name, value in (properties or {}).items() for word in ("-X", f"{name}={value}")]


def start_producer(
    bootstrap: str,
    topic: str,
    *,
    records: int,
    size: int = 100,
    partitions: int = 1,
    rate: int = 0,
    run_length: int = 500,
    properties: Mapping[str, str | int] | None = None,
) -> Running:
    """Produce as fast as the client can, or `rate` records a second with the latency of each."""
    arguments = ["-n", str(records), "-s", str(size), "-p", str(partitions), "-r", str(rate)]
    return Running("produce", bootstrap, topic, [*arguments, "-d", str(run_length), *_properties(properties)])


def start_consumer(
    bootstrap: str, topic: str, *, records: int, partitions: int = 1, passes: int = 1
) -> Running:
    """Read `records` records from the start of the topic, `passes` times."""
    return Running(
        "consume", bootstrap, topic, ["-n", str(records), "-p", str(partitions), "-k", str(passes)]
    )


def ping_pong(bootstrap: str, topic: str, *, rounds: int, size: int = 100) -> Load:
    """One record at a time, from produce to the consumer's hand."""
    quick: dict[str, str | int] = {"acks": 1, "linger.ms": 0, "socket.nagle.disable": "true"}
    return Running(
        "pingpong", bootstrap, topic, ["-n", str(rounds), "-s", str(size), *_properties(quick)]
    ).result()
