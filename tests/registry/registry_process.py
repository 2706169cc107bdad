"""`headrace registry` as a process of its own, over a broker of either kind."""

from __future__ import annotations

import json
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import quote

from tests.broker_process import HEADRACE

_CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
_START_SECONDS = 240.0


class Answer(NamedTuple):
    status: int
    body: Any
    content_type: str

    @property
    def code(self) -> int:
        return int(self.body["error_code"])


class RegistryProcess:
    def __init__(
        self, directory: Path, bootstrap: str, topic: str = "_schemas", more: Sequence[str] = ()
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._command = [
            str(HEADRACE), "registry", "--bootstrap", bootstrap, "--listen", "127.0.0.1:0", "--topic", topic,
            *more,
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def start(self) -> Self:
        output = self._directory / "registry.out"
        errors = self._directory / "registry.err"
        with output.open("wb") as out, errors.open("ab") as err:
            self._process = subprocess.Popen(self._command, stdout=out, stderr=err, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + _START_SECONDS
        while not (line := output.read_text()).endswith("\n"):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"the registry did not start:\n{errors.read_text()[-4000:]}")
            time.sleep(0.05)
        self.url = line.strip().removeprefix("ready url=")
        return self

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self) -> int:
        """Asked to end; its exit status."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        status = self._process.wait(30)
        self._process = None
        return status

    def wait(self, seconds: float) -> int:
        """Until it ends by itself; its exit status."""
        assert self._process is not None
        try:
            return self._process.wait(seconds)
        finally:
            self.kill()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def errors(self) -> str:
        return (self._directory / "registry.err").read_text()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self.signal(signal.SIGCONT)
            self.stop()

    # --- plain HTTP --------------------------------------------------------------------------------------

    def ask(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> Answer:
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"{self.url}{path}", data, {"Content-Type": _CONTENT_TYPE, **(headers or {})}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                status, text, kind = reply.status, reply.read(), reply.headers["Content-Type"]
        except urllib.error.HTTPError as error:
            with error:
                status, text, kind = error.code, error.read(), error.headers["Content-Type"]
        return Answer(status, json.loads(text) if kind.endswith("json") else text.decode(), kind)

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, headers=headers)

    def register(self, subject: str, schema: object, **rest: object) -> Answer:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        path = f"/subjects/{quote(subject, safe='')}/versions"
        return self.ask("POST", path, {"schema": text, **rest})
