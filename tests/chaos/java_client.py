"""Kafka's own Java client under the same load: a process that tells every step, one line each."""

from __future__ import annotations

import subprocess
import threading

from tests.apache_kafka import CACHE, java_command
from tests.chaos.recorder import Recorder
from tests.chaos.workload import TOPIC, key
from tests.checker.history import Assign, Poll, Send


def unavailable() -> str | None:
    missing = [name for name in ("java-program", "java-client") if not (CACHE / name / ".ok").exists()]
    return "run tests/setup_clients.sh first" if missing else None


class JavaClient:
    """A producer and a consumer in one JVM."""

    def __init__(
        self, name: str, bootstrap: str, partitions: int, recorder: Recorder, seed: int, *, rate: float = 50.0
    ) -> None:
        self.name = name
        self.recorder = recorder
        self.partitions = partitions
        self._waiting: dict[str, tuple[int, str]] = {}
        java = java_command(CACHE / "java-program", CACHE / "java-client", heap_mb=96, log_level="off")
        arguments = [bootstrap, TOPIC, str(partitions), str(rate), str(seed), name]
        self._process = subprocess.Popen(
            [*java, "Chaos", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._thread = threading.Thread(target=self._listen, name=name)
        self._failure: BaseException | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    def join(self) -> None:
        try:
            status = self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        self._thread.join()
        assert self._process.stdout is not None
        self._process.stdout.close()
        if self._failure is not None:
            raise RuntimeError(f"{self.name} failed") from self._failure
        assert status == 0, f"the Java client ended with {status}"

    def kill(self) -> None:
        """After a failure elsewhere: nothing may be left running."""
        self._process.kill()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        try:
            for line in self._process.stdout:
                self._tell(line.rstrip("\n"))
        except BaseException as error:
            self._failure = error

    def _tell(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        first, _, rest = rest.partition(" ")
        if word == "s":
            value, place = f"{self.name}.{first}", key(int(rest))
            self._waiting[first] = (
                self.recorder.invoke(f"{self.name}/send", "send", [Send(place, value)]),
                place,
            )
        elif word in ("a", "u"):
            # A send that fails at once can be told of twice: by its exception and by its callback.
            operation, place = self._waiting.pop(first, (-1, ""))
            if operation < 0:
                return
            if word == "u":
                self.recorder.unknown(operation, rest)
            else:
                self.recorder.ok(operation, [Send(place, f"{self.name}.{first}", int(rest))])
        elif word == "r":
            records = [(int(at), value) for at, value in (one.split(":") for one in rest.split())]
            self.recorder.done(f"{self.name}/poll", "poll", [Poll({key(int(first)): records})])
        elif word == "p":
            keys = tuple(key(partition) for partition in range(self.partitions))
            self.recorder.done(f"{self.name}/poll", "assign", [Assign(keys, from_beginning=True)])
        else:
            self.recorder.complain(f"{self.name}: {line}")
