"""Who captures the changes of a Postgres: Debezium on Apache's Connect, or `headrace connect`."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

from tests.apache_connect import ConnectWorker
from tests.apache_kafka import CACHE, CHECKOUT

from bench.process_cost import cpu_seconds
from headrace.testing.connect import Workers

POM: Final = CHECKOUT / "third_party_clients" / "debezium" / "pom.xml"
TABLE: Final = "public.orders"
_NAME: Final = "orders"


class Capturer(Protocol):
    """A worker that runs, without a connector. Used as a context."""

    prefix: str
    """Of its topic."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def begin(self, database: dict[str, str]) -> None: ...

    def cpu_s(self) -> float: ...

    def complaint(self) -> str | None:
        """The end of its log, if it has given up."""
        ...


class Debezium:
    prefix: str = "debezium"

    def __init__(self, directory: Path, bootstrap: str, *, exactly_once: bool) -> None:
        support = "enabled" if exactly_once else "disabled"
        self._worker = ConnectWorker(directory, bootstrap, {"exactly.once.source.support": support})
        self._worker.plugin_path, self._worker.fast_start = _plugin(), False
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self._worker)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def begin(self, database: dict[str, str]) -> None:
        answer = self._worker.call(
            "PUT",
            f"/connectors/{_NAME}/config",
            {
                **database,
                "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
                "tasks.max": "1",
                "plugin.name": "pgoutput",
                "slot.name": "bench_debezium",
                "publication.name": "bench_debezium",
                "publication.autocreate.mode": "filtered",
                "table.include.list": TABLE,
                "topic.prefix": self.prefix,
                "key.converter": "org.apache.kafka.connect.json.JsonConverter",
                "key.converter.schemas.enable": "false",
                "value.converter": "org.apache.kafka.connect.json.JsonConverter",
                "value.converter.schemas.enable": "false",
            },
        )
        if answer.status != 201:
            raise RuntimeError(f"Connect refuses the connector: {answer.body}")

    def cpu_s(self) -> float:
        return cpu_seconds(self._worker.pid)

    def complaint(self) -> str | None:
        return None if self._worker.running else self._worker.tail()


class Ours:
    """With its Java process and the processes of its tasks."""

    prefix: str = "headrace"

    def __init__(self, directory: Path, bootstrap: str) -> None:
        directory.mkdir()
        self._workers = Workers(directory, bootstrap)

    def __enter__(self) -> Self:
        self._workers.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._workers.__exit__(kind, error, trace)

    def begin(self, database: dict[str, str]) -> None:
        self._workers.put(
            _NAME,
            {
                **database,
                "connector.class": "postgres-changes",
                "tasks.max": "2",
                "slot.name": "bench_headrace",
                "publication.name": "bench_headrace",
                "table.include.list": TABLE,
                "topic.prefix": self.prefix,
            },
        )

    def cpu_s(self) -> float:
        return sum(cpu_seconds(each.process.pid) for each in self._workers.workers)

    def complaint(self) -> str | None:
        found = self._workers.status(_NAME)
        if found is None or found["connector"]["state"] != "FAILED":
            return None
        return str(found)


def _plugin() -> Path:
    """The directory for `plugin.path`. Debezium's jars come from Maven Central once."""
    directory = CACHE / "debezium-3.6.1"
    if not (directory / ".ok").exists():
        copy = ["dependency:copy-dependencies", f"-DoutputDirectory={directory / 'postgres'}"]
        command = ["mvn", "-q", "-B", "-f", str(POM), *copy, "-DincludeScope=runtime"]
        subprocess.run(command, check=True)
        (directory / ".ok").touch()
    return directory
