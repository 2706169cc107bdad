"""A real run of a cluster, as a terminal showed it: what was typed, what came, and when."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

COLUMNS, LINES = 100, 29
_PATIENCE_S = 90.0
_VICTIM = "broker-2.properties"


@dataclass(frozen=True)
class Event:
    """`typed` is a command line; what is not typed is what the terminal got, colours included."""

    at_s: float
    text: str
    typed: bool = False


@dataclass
class Recording:
    events: list[Event] = field(default_factory=list)

    def save(self, path: Path) -> None:
        path.write_text(json.dumps([asdict(event) for event in self.events], indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> Recording:
        return cls([Event(**event) for event in json.loads(path.read_text())])


class Terminal:
    """Runs one line after the other in a directory, each on a terminal of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.recording = Recording()
        self._began = time.monotonic()
        self._environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": os.environ.get("HOME", str(directory)),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "COLUMNS": str(COLUMNS),
            # A checkout that is not installed is found by it.
            **{name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ},
        }

    def _note(self, text: str, *, typed: bool = False) -> None:
        at_s = round(time.monotonic() - self._began, 2)
        self.recording.events.append(Event(at_s, text, typed))

    def start(self, line: str, shell: str = "") -> tuple[int, int]:
        self._note(line, typed=True)
        pid, screen = pty.fork()
        if pid == 0:
            os.chdir(self.directory)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
            os.execvpe("bash", ["bash", "-c", shell + line], self._environment)
        return pid, screen

    def read(self, screen: int, until: Callable[[str], bool]) -> None:
        """Notes what comes, to the end of the process or until enough has come."""
        seen, limit = "", time.monotonic() + _PATIENCE_S
        while not until(seen):
            if time.monotonic() > limit:
                raise TimeoutError(f"the terminal shows only {seen!r}")
            if not select.select([screen], [], [], 0.1)[0]:
                continue
            try:
                text = os.read(screen, 1 << 16).decode()
            except OSError:
                return  # nobody has the other end any more
            seen += text
            self._note(text)

    def run(self, line: str) -> None:
        pid, screen = self.start(line)
        try:
            self.read(screen, lambda _: False)
        finally:
            os.close(screen)
            _, status = os.waitpid(pid, 0)
        if code := os.waitstatus_to_exitcode(status):
            raise RuntimeError(f"{line!r} ended with {code}")


def record(directory: Path) -> Recording:
    """Needs the ports 9092 to 9094, as somebody who follows the README does, and ZooKeeper's jars."""
    terminal = Terminal(directory)
    # What the brokers log goes to a file: the rest is what the commands say.
    # The shell becomes the command, so that a signal reaches it.
    cluster, screen = terminal.start("headrace up --brokers 3 --dir data 2> brokers.log", shell="exec ")
    try:
        terminal.read(screen, lambda seen: re.search(r"ready .*\n", seen) is not None)
        terminal.run("headrace topic create orders --partitions 3")
        terminal.run("seq 100000 | headrace produce orders")
        terminal.run("headrace consume orders --group billing --count 90000 > billed.txt")
        terminal.run("headrace group lag billing")
        terminal.run(f"kill -9 {_broker(cluster)}  # broker 2")
        terminal.run("seq 100000 | headrace produce orders")
        terminal.run("headrace cluster status --wait 60")
    finally:
        os.kill(cluster, signal.SIGTERM)
        os.waitpid(cluster, 0)
        os.close(screen)
    return terminal.recording


def _broker(cluster: int) -> int:
    """The process of one broker, among the children of the cluster that we started."""
    children = Path(f"/proc/{cluster}/task/{cluster}/children").read_text().split()
    (found,) = [pid for pid in children if _VICTIM in Path(f"/proc/{pid}/cmdline").read_text()]
    return int(found)
