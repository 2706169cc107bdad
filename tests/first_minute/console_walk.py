"""A new user's walk with the console, step by step and timed: the built wheel in a fresh environment.

    python -m tests.first_minute.console_walk

Install, `up --console`, produce, see it, load it into a lake, audit it, see that it is certified. A page is
asked for what the step before has done. Maven and uv take from their caches what they have there.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

from tests.first_minute.test_first_minute import ROOT, clean_environment
from tests.host import Stopwatch

RECORDS: Final = 3_000
WAIT_SECONDS: Final = 600.0
_PRODUCE: Final = """
import sys, time
from confluent_kafka import Producer
from headrace.audit.confluent import audited

producer = audited(Producer)({"bootstrap.servers": sys.argv[1]})
began_ms = int(time.time() - 900) * 1000
for number in range(int(sys.argv[2])):
    producer.produce("orders", '{"id": %d}' % number, key=str(number), timestamp=began_ms + number * 20)
    producer.poll(0)
producer.close()
"""
_LAKE: Final = """
[kafka]
"bootstrap.servers" = "{bootstrap}"
[lake]
format = "delta"
location = "{directory}/lake"
[[topics]]
name = "orders"
"""


class Walk:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.commands = directory / "venv" / "bin"
        self.bootstrap = self.console = ""
        self._opener = build_opener(ProxyHandler({}))

    def run(self, *command: str, environment: Mapping[str, str] | None = None) -> str:
        done = subprocess.run(
            command,
            cwd=self.directory,
            env=clean_environment() if environment is None else environment,
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def uv(self, *arguments: str) -> None:
        """With what this machine has set for the way to packages."""
        self.run("uv", *arguments, environment=os.environ)

    def headrace(self, *arguments: str) -> str:
        return self.run(str(self.commands / "headrace"), *arguments)

    def page(self, path: str) -> dict[str, Any] | None:
        """None as long as the console has not seen the topic."""
        try:
            with self._opener.open(f"{self.console}{path}?format=json", timeout=60) as answer:
                found: dict[str, Any] = json.load(answer)
        except HTTPError as error:
            if error.code != 404:
                raise
            return None
        return found

    def see(self, path: str, is_there: Callable[[dict[str, Any]], bool]) -> None:
        """Time only bounds it: the console looks every few seconds."""
        until = time.monotonic() + WAIT_SECONDS
        while (found := self.page(path)) is None or not is_there(found):
            if time.monotonic() > until:
                raise SystemExit(f"{path} does not show it: {json.dumps(found)[:2000]}")
            time.sleep(0.5)

    # --- the steps ------------------------------------------------------------------------------------

    def install(self) -> None:
        (wheel,) = self.directory.glob("*.whl")
        self.uv("venv", "--quiet", "--python", sys.executable, str(self.directory / "venv"))
        python = str(self.commands / "python")
        wanted = f"headrace[console,spark,audit] @ file://{wheel}"
        self.uv("pip", "install", "--quiet", "--python", python, wanted, "confluent-kafka")

    @contextmanager
    def up(self) -> Iterator[None]:
        command = [str(self.commands / "headrace"), "up", "--port", "0", "--console", "0"]
        log = self.directory / "up.log"
        with log.open("wb") as errors:
            running = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, text=True, env=clean_environment()
            )
        try:
            assert running.stdout is not None
            self.bootstrap = running.stdout.readline().strip().removeprefix("ready bootstrap=")
            until = time.monotonic() + WAIT_SECONDS
            while not self.console:
                if running.poll() is not None or time.monotonic() > until:
                    raise SystemExit(log.read_text())
                time.sleep(0.05)
                found = re.search(r"^console at (\S+?)/?$", log.read_text(), re.MULTILINE)
                self.console = "" if found is None else found[1]
            yield
        finally:
            running.send_signal(signal.SIGTERM)
            running.wait(WAIT_SECONDS)

    def produce(self) -> None:
        self.run(str(self.commands / "python"), "-c", _PRODUCE, self.bootstrap, str(RECORDS))

    def see_records(self) -> None:
        def has_all(found: dict[str, Any]) -> bool:
            ends = [row["end"] for row in found["rows"]]
            return None not in ends and sum(ends) == RECORDS

        self.see("/topics/orders", has_all)

    def lake(self) -> None:
        text = _LAKE.format(bootstrap=self.bootstrap, directory=self.directory)
        (self.directory / "lake.toml").write_text(text)
        self.headrace("spark", "jars")
        self.headrace("lake", "run", "--once")

    def audit(self) -> None:
        self.headrace("audit", "run", "orders", "--state", "audit", "--lake-config", "lake.toml", "--once")

    def see_certificate(self) -> None:
        """Of the last whole window."""

        def is_certified(found: dict[str, Any]) -> bool:
            rows = {row["name"]: row["certified_until_ms"] for row in found["listing"]["rows"]}
            return rows["orders"] is not None

        self.see("/topics", is_certified)


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="console-walk-") as name:
        walk = Walk(Path(name))
        walk.uv("build", "--quiet", "--wheel", "--out-dir", name, str(ROOT))

        def step(what: str, do: Callable[[], None]) -> None:
            watch = Stopwatch()
            do()
            print(f"{watch.seconds:6.1f} s  {what}", flush=True)

        step("install the wheel with console, spark and audit", walk.install)
        watch = Stopwatch()
        with walk.up():
            print(f"{watch.seconds:6.1f} s  headrace up --console", flush=True)
            step(f"produce {RECORDS:,} records by an audited producer", walk.produce)
            step("see them on the topic's page", walk.see_records)
            step("headrace spark jars, headrace lake run --once", walk.lake)
            step("headrace audit run --once", walk.audit)
            step("see on the list of topics until when it is certified", walk.see_certificate)
    return 0


if __name__ == "__main__":
    sys.exit(main())
