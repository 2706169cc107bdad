"""A Postgres server of one's own, on a free port; its directory goes when it stops."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg

SETTINGS = {
    "wal_level": "logical",  # what makes changes readable; the one setting that the shop's database needs
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",  # nothing here outlives the demonstration
}


class Postgres:
    def __enter__(self) -> Self:
        self.port = free_port()
        self._directory = Path(tempfile.mkdtemp(prefix="postgres-"))
        user = ordinary_user()
        if user:
            shutil.chown(self._directory, user)
        data = str(self._directory / "data")
        init = [program("initdb"), "-D", data, "-U", "shop", "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run(init, cwd="/", user=user, stdout=subprocess.DEVNULL, check=True)
        serve = [program("postgres"), "-D", data, "-p", str(self.port)]
        serve += [part for name, value in SETTINGS.items() for part in ("-c", f"{name}={value}")]
        with (self._directory / "log").open("wb") as log:
            # In a session of its own: Ctrl-C is for the demonstration, which stops it at its end.
            self._process = subprocess.Popen(
                serve, cwd="/", user=user, stdout=log, stderr=log, start_new_session=True
            )
        self._wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(60)
        shutil.rmtree(self._directory)

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user="shop", dbname="postgres", autocommit=True
        )

    def rows(self, query: str) -> set[tuple[Any, ...]]:
        with self.connect() as connection:
            return set(connection.execute(query.encode()))

    def _wait(self) -> None:
        while True:
            try:
                return self.connect().close()
            except psycopg.OperationalError:
                if self._process.poll() is not None:
                    raise RuntimeError((self._directory / "log").read_text()) from None
                time.sleep(0.1)


def program(name: str) -> str:
    """Debian keeps those of a server away from the PATH."""
    found = shutil.which(name) or max(map(str, Path("/usr/lib/postgresql").glob(f"*/bin/{name}")), default="")
    if not found:
        raise SystemExit(f"{name} is not there: install Postgres (on Debian: apt install postgresql)")
    return found


def ordinary_user() -> str | None:
    """Postgres refuses to run as root."""
    if os.geteuid() != 0:
        return None
    return next((each.pw_name for each in pwd.getpwall() if each.pw_name == "postgres"), "nobody")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
