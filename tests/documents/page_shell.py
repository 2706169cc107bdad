"""The shell of one page: a directory, a port and an environment of its own, which its blocks share."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.ports import own_port

ROOT: Final = Path(__file__).resolve().parents[2]
_PRELUDE: Final = Path(__file__).with_name("prelude.sh")
_KEPT: Final = re.compile(r"(?i)HOME|LANG|TMPDIR|PYTHONPATH|JAVA_HOME|(?:UV|PIP|SSL)_\w+|\w+_proxy")
"""Of this process's environment: what a machine needs to reach a package index, and nothing of Headrace's."""
SECONDS: Final = 240
"""Of one block: less than pytest gives a test."""


class PageShell:
    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="headrace-page-"))
        self.state = Path(tempfile.mkdtemp(prefix="headrace-page-state-"))
        self.port = own_port()
        (self.directory / ".cache").symlink_to(ROOT / ".cache")  # the jars of ZooKeeper, and of Spark
        self._write_command()
        bins = [str(self.state), str(Path(sys.executable).parent), os.environ["PATH"]]
        self.environment = {name: os.environ[name] for name in os.environ if _KEPT.fullmatch(name)}
        self.environment |= {
            "PATH": os.pathsep.join(bins),
            "PAGE_STATE": str(self.state),
            "PAGE_PORT": str(self.port),
            "PAGE_CHECKOUT": str(ROOT),
            "HEADRACE_SPARK_JARS": str(ROOT / ".cache" / "spark-jars"),
            "HEADRACE_BOOTSTRAP": f"127.0.0.1:{self.port}",
            "COLUMNS": "200",
        }
        if "PYTHONPATH" in self.environment:
            paths = self.environment["PYTHONPATH"].split(os.pathsep)
            self.environment["PYTHONPATH"] = os.pathsep.join(str(Path(path).resolve()) for path in paths)

    def _write_command(self) -> None:
        """This checkout's command, by whatever name it is installed."""
        command = self.state / "headrace"
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m headrace.cli.main "$@"\n')
        command.chmod(0o755)

    def localised(self, text: str) -> str:
        """Ports and directories of pages, as this page has them."""
        text = re.sub(r"(127\.0\.0\.1|localhost):9092\b", f"127.0.0.1:{self.port}", text)
        return re.sub(r"(?<![\w/.])/data/", f"{self.directory}/data/", text)

    def run(self, script: str, *, stdin: str = "", strict: bool = True) -> subprocess.CompletedProcess[str]:
        """What it exports, and where it ends, counts for the next one."""
        saved = self.state / "environment"
        lines = [f'. "{_PRELUDE}"', f'cd "{self.directory}"']
        if saved.exists():
            lines.append(f'. "{saved}"')
        lines += ["set -e -o pipefail"] if strict else []
        lines += [self.localised(script), f'{{ export -p; echo "cd \\"$PWD\\""; }} > "{saved}"']
        return subprocess.run(
            ["bash", "-c", "\n".join(lines)],
            env=self.environment,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
        )

    def exported(self) -> dict[str, str]:
        """The environment that the next block would begin with."""
        done = self.run("env -0 > environment.0")
        assert done.returncode == 0, done.stdout
        entries = Path(self._working_directory(), "environment.0").read_text().split("\0")
        return dict(entry.split("=", 1) for entry in entries if "=" in entry)

    def _working_directory(self) -> str:
        saved = self.state / "environment"
        return saved.read_text().splitlines()[-1].removeprefix('cd "').removesuffix('"')

    def close(self) -> None:
        servers = self.state / "servers"
        for word in servers.read_text().split() if servers.exists() else ():
            _end(int(word))
        shutil.rmtree(self.directory, ignore_errors=True)
        shutil.rmtree(self.state, ignore_errors=True)


def _end(server: int) -> None:
    """SIGTERM, time to stop, then SIGKILL to its process group: it and what it has started."""
    for number, patience in ((signal.SIGTERM, 60.0), (signal.SIGKILL, 5.0)):
        try:
            (os.kill if number == signal.SIGTERM else os.killpg)(server, number)
        except ProcessLookupError:
            return
        until = time.monotonic() + patience
        while time.monotonic() < until and Path(f"/proc/{server}/exe").exists():
            time.sleep(0.05)
