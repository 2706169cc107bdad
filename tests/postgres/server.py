"""A real Postgres with wal_level=logical, of an ordinary user and on a free port; Debian's package."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from tests.ports import own_port

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "wal_level": "logical",
    "max_replication_slots": "60",
    "max_wal_senders": "4",
    "max_connections": "60",
    "shared_buffers": "32MB",
    # Nobody pulls the plug in a test. A killed server loses nothing by this.
    "fsync": "off",
}


class PostgresServer:
    def __init__(self, directory: Path, **settings: str) -> None:
        self.port = own_port()
        self._directory = directory
        self._settings = {**_SETTINGS, **settings}
        self._process: subprocess.Popen[bytes] | None = None

    def make(self) -> None:
        _run(
            [
                _program("initdb"),
                "-D",
                str(self._directory),
                "-U",
                "owner",
                "-A",
                "trust",
                "--no-sync",
                "-E",
                "UTF8",
            ]
        )

    def start(self) -> None:
        arguments = [_program("postgres"), "-D", str(self._directory), "-p", str(self.port)]
        for name, value in self._settings.items():
            arguments += ["-c", f"{name}={value}"]
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen(arguments, stdout=log, stderr=log, **_ordinary())
        self._wait()

    @property
    def pid(self) -> int:
        """Of the process that all others are children of."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """All of it at once, as when the machine goes."""
        assert self._process is not None
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(30)

    def stop(self) -> None:
        if self._process is not None:
            self.kill()

    def connect(self, database: str = "postgres", **more: Any) -> psycopg.Connection[Any]:
        more = {"autocommit": True, **more}
        return psycopg.connect(host="127.0.0.1", port=self.port, user="owner", dbname=database, **more)

    def _wait(self) -> None:
        assert self._process is not None
        while self._process.poll() is None:
            try:
                self.connect().close()
                return
            except psycopg.OperationalError:
                time.sleep(0.05)
        raise AssertionError((self._directory / "log").read_text())


@contextmanager
def running_postgres(**settings: str) -> Iterator[PostgresServer]:
    directory = Path(tempfile.mkdtemp(prefix="postgres-"))
    try:
        if os.geteuid() == 0:
            shutil.chown(directory, _user(), _user())
        server = PostgresServer(directory / "data", **settings)
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(directory)


def _program(name: str) -> str:
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}")) or [Path(shutil.which(name) or name)]
    return str(found[-1])


def _user() -> str:
    """Postgres refuses to run as root."""
    return "postgres" if any(each.pw_name == "postgres" for each in pwd.getpwall()) else "nobody"


def _ordinary() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    found = pwd.getpwnam(_user())
    return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}


def _run(arguments: list[str]) -> None:
    done = subprocess.run(arguments, capture_output=True, text=True, cwd="/", **_ordinary())
    assert done.returncode == 0, done.stderr
