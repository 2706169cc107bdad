"""A real MariaDB of an ordinary user on a free port: Debian's, unpacked by tests/setup_clients.sh."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.apache_kafka import CACHE
from tests.ports import own_port

_ROOT: Final = CACHE / "mariadb" / "usr"
_TIMEOUT_S: Final = 120.0


class MariaDbServer:
    """Everybody may do everything."""

    def __init__(self, folder: Path) -> None:
        self.port = own_port()
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        libraries = [_ROOT / "lib" / "x86_64-linux-gnu", _ROOT.parent / "lib" / "x86_64-linux-gnu"]
        self._environment = {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(map(str, libraries))}

    def start(self) -> None:
        data = self._folder / "data"
        data.mkdir()
        command = [
            *(str(_ROOT / "sbin" / "mariadbd"), "--no-defaults", f"--datadir={data}"),
            *(f"--lc-messages-dir={_ROOT / 'share' / 'mysql'}", "--skip-grant-tables"),
            *(f"--port={self.port}", "--bind-address=127.0.0.1", f"--socket={self._socket}"),
            *(f"--user={getpass.getuser()}", "--innodb-flush-log-at-trx-commit=0"),
            # As Debian sets it. The server's own default is another one.
            *("--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_ci"),
        ]
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=self._environment)
        until = time.monotonic() + _TIMEOUT_S
        while True:
            try:
                self.run("SELECT 1")
                return
            except RuntimeError:
                if self._process.poll() is not None or time.monotonic() > until:
                    raise AssertionError((self._folder / "log").read_text()[-4000:]) from None
                time.sleep(0.2)

    def run(self, *statements: str) -> list[list[str]]:
        """The rows that they give, by MariaDB's own client. Texts of rows have no tab and no line break."""
        command = [str(_ROOT / "bin" / "mariadb"), "--no-defaults", "--user=root", "--batch", "--raw"]
        command += ["--skip-column-names", f"--socket={self._socket}", "--default-character-set=utf8mb4"]
        given = ";\n".join(statements).encode()
        done = subprocess.run(command, input=given, capture_output=True, env=self._environment, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr.decode())
        return [line.split("\t") for line in done.stdout.decode().splitlines()]

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @property
    def _socket(self) -> Path:
        return self._folder / "socket"


@contextmanager
def running_mariadb() -> Iterator[MariaDbServer]:
    # Short, since the path of a socket has a limit.
    folder = Path(tempfile.mkdtemp(prefix="mariadb-"))
    server = MariaDbServer(folder)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)
