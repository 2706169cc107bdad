"""Apache Kafka's Connect as processes: a worker of a distributed group, and MirrorMaker 2.

The jars come from Maven Central by way of `tests/setup_clients.sh`, into `.cache/` of the checkout.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from tests.apache_kafka import CACHE, java_command
from tests.broker_process import BrokerProcess, write_properties

CONNECT_VERSION = "4.3.1"
SECONDS = 120.0


class Answer(NamedTuple):
    status: int
    body: Any
    headers: Mapping[str, str]


def call(port: int, method: str, path: str, body: object = None, seconds: float = SECONDS) -> Answer:
    """One request to a REST interface. A text is sent as it is, anything else as JSON."""
    data = None
    if body is not None:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, method=method)
    request.add_header("Content-Type", "application/json")
    request.add_header("Accept", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=seconds) as answer:
            return _answer(answer.status, answer.read(), dict(answer.headers))
    except urllib.error.HTTPError as error:
        with error:
            return _answer(error.code, error.read(), dict(error.headers))


def _answer(status: int, content: bytes, headers: Mapping[str, str]) -> Answer:
    try:
        body = json.loads(content) if content else None
    except ValueError:
        body = content.decode(errors="replace")
    return Answer(status, body, {name.lower(): value for name, value in headers.items()})


class ConnectWorker(BrokerProcess):
    """One worker of a distributed group. Workers with the same `group` share their connectors."""

    #: Where the plugins of other people lie; those on the class path are found without it.
    plugin_path: Path | None = None
    #: As ApacheKafka's: tests want a quick start, a bench the best steady speed.
    fast_start = True

    def __init__(
        self,
        directory: Path,
        bootstrap: str,
        properties: Mapping[str, str] | None = None,
        *,
        group: str = "workers",
        replication: int = 1,
        log_level: str = "warn",
    ) -> None:
        self.settings = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "config.storage.topic": f"{group}-configs",
            "offset.storage.topic": f"{group}-offsets",
            "status.storage.topic": f"{group}-status",
            "config.storage.replication.factor": str(replication),
            "offset.storage.replication.factor": str(replication),
            "status.storage.replication.factor": str(replication),
            "offset.storage.partitions": "1",
            "status.storage.partitions": "1",
            "offset.flush.interval.ms": "1000",
            "exactly.once.source.support": "enabled",
            # A worker that was killed is missed soon, and what it did is done again at once.
            "session.timeout.ms": "6000",
            "heartbeat.interval.ms": "500",
            "scheduled.rebalance.max.delay.ms": "0",
            "plugin.discovery": "service_load",
            **dict(properties or {}),
        }
        super().__init__(directory, {})
        self.log_level = log_level

    def command(self) -> list[str]:
        config = self.directory / "connect-distributed.properties"
        listener = f"http://127.0.0.1:{self.port}"
        extra = {"plugin.path": str(self.plugin_path)} if self.plugin_path is not None else {}
        write_properties(config, {**self.settings, "listeners": listener, **extra})
        java = _java(self.log_level, fast_start=self.fast_start)
        return [*java, "org.apache.kafka.connect.cli.ConnectDistributed", str(config)]

    def call(self, method: str, path: str, body: object = None) -> Answer:
        return call(self.port, method, path, body)

    def wait_ready(self) -> Self:
        """The port opens before the worker has read its topics; then it answers 503 or an error."""
        super().wait_ready()
        deadline = time.monotonic() + self.START_SECONDS
        while time.monotonic() < deadline:
            try:
                if self.call("GET", "/health").status == 200:
                    return self
            except OSError:
                pass
            assert self.running, f"the worker ended:\n{self.tail()}"
            time.sleep(0.1)
        raise RuntimeError(f"the worker was not ready after {self.START_SECONDS:g} s:\n{self.tail()}")


class MirrorMaker(BrokerProcess):
    """MirrorMaker 2 in its dedicated mode. It has no port of its own."""

    def __init__(self, directory: Path, properties: Mapping[str, str], clusters: Sequence[str] = ()) -> None:
        super().__init__(directory, properties)
        self.clusters = clusters

    def command(self) -> list[str]:
        config = self.directory / "mirror-maker.properties"
        write_properties(config, self.properties)
        arguments = ["--clusters", *self.clusters] if self.clusters else []
        return [*_java("info"), "org.apache.kafka.connect.mirror.MirrorMaker", str(config), *arguments]

    def wait_ready(self) -> Self:
        return self


def _java(log_level: str, *, fast_start: bool = True) -> list[str]:
    java, *rest = java_command(_jars(), heap_mb=512 if fast_start else 2048)
    if not fast_start:
        rest = [flag for flag in rest if flag not in ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")]
    return [java, f"-Dorg.apache.logging.log4j.level={log_level}", *rest]


def _jars() -> Path:
    directory = CACHE / f"connect-{CONNECT_VERSION}"
    if not (directory / ".ok").exists():
        raise RuntimeError(f"no jars in {directory}: run tests/setup_clients.sh first")
    return directory
