"""Workers of `headrace connect` as processes, for tests of connectors: they are killed like real ones.

    def test_nothing_is_lost_and_nothing_doubled(tmp_path, headrace_cluster):
        with Workers(tmp_path, headrace_cluster.bootstrap, {"numbers": "my_package:Numbers"}) as workers:
            workers.put("numbers", {"connector.class": "numbers", "topic": "numbers", "up.to": "1000"})
            workers.wait_for_records("numbers", 100)
            workers.kill()
            workers.add()
            found = workers.wait_for_records("numbers", 1000)
            assert sorted(int(each.value) for each in found) == list(range(1000))

A class is found by its entry point, whether its package is installed or only importable from the test.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import ProxyHandler, Request, build_opener

from headrace.client.cluster import Cluster
from headrace.client.consumer import Consumer
from headrace.client.errors import ClientFailure, Refused
from headrace.client.offsets import ends_of, partitions_of
from headrace.core.errors import HeadraceError
from headrace.protocol.records import Record

T = TypeVar("T")
START_SECONDS: Final = 600.0
"""A worker starts Spark, and tests share their machine. Only a worker that hangs is waited for so long."""
WAIT_SECONDS: Final = 600.0
_STOP_SECONDS: Final = 60.0
_PAUSE: Final = 0.2


class WorkerFailed(HeadraceError):
    """A worker did not start, or what was waited for has not come. Has the end of the worker's log."""


class ConnectWorker:
    """One process. Its log is FOLDER/worker-N.log."""

    def __init__(self, log: Path, command: list[str], environment: Mapping[str, str]) -> None:
        self._log = log
        with open(log, "wb") as output:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, env=dict(environment)
            )
        self.url = ""

    def wait_until_ready(self) -> None:
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            for line in self.log().splitlines():
                if line.startswith("ready url="):
                    self.url = line.removeprefix("ready url=")
                    return
            if self.process.poll() is not None:
                break
            time.sleep(_PAUSE)
        raise WorkerFailed(f"a worker did not start:\n{self.log()[-4000:]}")

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def kill(self) -> None:
        """With its Spark, which would otherwise notice only after a while that it is alone."""
        children = _children(self.process.pid)
        self.process.kill()
        for child in children:
            _kill(child)
        self.process.wait()

    def kill_spark(self) -> None:
        """Only its Java process, as the kernel does when memory is short. The worker ends by itself then."""
        for child in _children(self.process.pid):
            _kill(child)

    def ended(self) -> int:
        """The exit code of a worker that ends by itself."""
        try:
            return self.process.wait(WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            raise WorkerFailed(f"a worker did not end:\n{self.log()[-4000:]}") from None

    def stop(self) -> int:
        """In order, as SIGTERM asks for; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise WorkerFailed(f"a worker did not stop:\n{self.log()[-4000:]}") from None


class Workers:
    """A group of workers over one cluster. Use it as a context: it starts with one."""

    def __init__(
        self,
        folder: Path,
        bootstrap: str,
        connectors: Mapping[str, str] | None = None,
        *,
        workers: int = 1,
        arguments: tuple[str, ...] = (),
    ) -> None:
        """`connectors` are entry points: {name: "module:Class"}."""
        self.bootstrap = bootstrap
        self._folder = folder
        self._first = workers
        self._arguments = arguments
        self._started = 0
        self._running: list[ConnectWorker] = []
        self._opener = build_opener(ProxyHandler({}))
        self._environment = {**os.environ, "PYTHONPATH": os.pathsep.join(self._paths(connectors or {}))}

    def __enter__(self) -> Self:
        made = [self._start() for _ in range(self._first)]
        try:
            for each in made:
                each.wait_until_ready()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    @property
    def workers(self) -> list[ConnectWorker]:
        """Those that run, the oldest first."""
        return list(self._running)

    def add(self) -> ConnectWorker:
        """Another one; returns when it serves."""
        made = self._start()
        made.wait_until_ready()
        return made

    def kill(self, which: int = 0) -> None:
        """As `kill -9` does: nothing is said, nothing is closed."""
        self._running.pop(which).kill()

    def stop(self, which: int = 0) -> int:
        return self._running.pop(which).stop()

    def ended(self, which: int = 0) -> int:
        """Of one that ends by itself."""
        return self._running.pop(which).ended()

    # --- REST -----------------------------------------------------------------------------------------

    def ask(self, method: str, path: str, document: object = None, *, worker: int = -1) -> Any:
        """The answer as JSON. Raises HTTPError."""
        body = None if document is None else json.dumps(document).encode()
        headers = {"Content-Type": "application/json"}
        request = Request(f"{self._running[worker].url}{path}", body, headers, method=method)
        with self._opener.open(request, timeout=WAIT_SECONDS) as answer:
            data = answer.read()
        return json.loads(data) if data else None

    def put(self, name: str, config: Mapping[str, str]) -> None:
        """Make the connector, or give it another configuration."""
        self.ask("PUT", f"/connectors/{quote(name, safe='')}/config", dict(config))

    def status(self, name: str) -> dict[str, Any] | None:
        """None where there is none yet."""
        try:
            found: dict[str, Any] = self.ask("GET", f"/connectors/{quote(name, safe='')}/status")
        except HTTPError as error:
            if error.code != 404:
                raise
            return None
        return found

    def wait_for_state(self, name: str, state: str) -> dict[str, Any]:
        """Of the connector and of all its tasks; a stopped one has none."""

        def look() -> dict[str, Any] | None:
            found = self.status(name)
            if found is None:
                return None
            states = {found["connector"]["state"], *(each["state"] for each in found["tasks"])}
            return found if states == {state} else None

        return self.wait(look, f"connector {name} to be {state}")

    def wait(self, look: Callable[[], T | None], what: str) -> T:
        """What `look` returns when it is not None or False. Time only bounds it."""
        until = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < until:
            try:
                found = look()
            except (URLError, ConnectionError, TimeoutError) as error:
                if isinstance(error, HTTPError):
                    raise
                found = None  # nobody serves at this moment
            if found is not None and found is not False:
                return found
            time.sleep(_PAUSE)
        logs = "\n".join(each.log()[-4000:] for each in self._running)
        raise WorkerFailed(f"waited {WAIT_SECONDS:.0f} s for {what}:\n{logs}")

    # --- the log --------------------------------------------------------------------------------------

    def records(self, topic: str) -> list[Record]:
        """All that a reader of committed records sees, read without the workers."""
        return asyncio.run(_read(self.bootstrap, topic))

    def wait_for_records(self, topic: str, count: int) -> list[Record]:
        """At least so many."""

        def look() -> list[Record] | None:
            found = self.records(topic)
            return found if len(found) >= count else None

        return self.wait(look, f"{count} records in {topic}")

    # --- processes ------------------------------------------------------------------------------------

    def _start(self) -> ConnectWorker:
        self._started += 1
        command = [
            *(sys.executable, "-m", "headrace", "connect", "--bootstrap", self.bootstrap),
            *("--listen", "127.0.0.1:0", "--master", "local[2]", *self._arguments),
        ]
        made = ConnectWorker(self._folder / f"worker-{self._started}.log", command, self._environment)
        self._running.append(made)
        return made

    def _end(self) -> None:
        while self._running:
            self._running.pop().kill()

    def _paths(self, connectors: Mapping[str, str]) -> list[str]:
        """What this process can import, and entry points as an installed package would have them."""
        found = [path for path in sys.path if path]
        if not connectors:
            return found
        points = self._folder / "entry-points"
        metadata = points / "connectors_under_test-0.dist-info"
        metadata.mkdir(parents=True, exist_ok=True)
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: connectors-under-test\nVersion: 0\n")
        lines = "".join(f"{name} = {target}\n" for name, target in connectors.items())
        (metadata / "entry_points.txt").write_text(f"[headrace.connectors]\n{lines}")
        return [str(points), *found]


async def _read(bootstrap: str, topic: str) -> list[Record]:
    async with Cluster(bootstrap, client_id="headrace-connect-test") as cluster:
        try:
            partitions = await partitions_of(cluster, topic)
        except (Refused, ClientFailure):
            return []
        ends = await ends_of(cluster, partitions)
        reading = {partition: first for partition, (first, end) in ends.items() if first < end}
        consumer = Consumer(cluster, reading, max_wait_ms=100)
        found: list[Record] = []
        try:
            quiet = 0
            while consumer.positions and quiet < 3:
                fetched = await consumer.poll()
                quiet = 0 if any(each.records for each in fetched) else quiet + 1
                for each in fetched:
                    found += each.records
                    if each.next_offset >= ends[each.partition][1]:
                        consumer.drop(each.partition)
        finally:
            await consumer.close()
    return found


def _children(pid: int) -> list[int]:
    """All processes below it, as /proc says now."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry.name))
    found, waiting = [], [pid]
    while waiting:
        below = parents.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it ended with its parent
