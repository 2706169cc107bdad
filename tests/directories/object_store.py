"""A real S3 server: SeaweedFS, from its package of PyPI; or versitygw, where HEADRACE_OBJECT_STORE says so.
Each test has a prefix of the one bucket: in SeaweedFS every bucket would have volumes of its own."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyarrow.fs import S3FileSystem

from tests.ports import own_port

BUCKET = "tests"
KEY, SECRET = "reader", "not-a-real-secret"
VERSITY = Path(__file__).parents[2] / ".cache" / "versitygw-1.8.0" / "versitygw"
_START_SECONDS = 120.0
_PAUSE = 0.1
_numbers = itertools.count()


class ObjectStore:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._port = own_port()
        self._environment: dict[str, str] = {}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def port(self) -> int:
        return self._port

    @property
    def settings(self) -> dict[str, str]:
        """Of a connector."""
        return {
            "s3.endpoint": f"http://127.0.0.1:{self._port}",
            "s3.region": "us-east-1",
            "aws.access.key.id": KEY,
            "aws.secret.access.key": SECRET,
        }

    def _command(self) -> list[str]:
        identity = {
            "name": "tests",
            "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        config = self._directory / "s3.json"
        config.write_text(json.dumps({"identities": [identity]}))
        data = self._directory / "data"
        data.mkdir(exist_ok=True)  # it may have been killed before
        return [
            *(str(Path(sysconfig.get_path("scripts")) / "weed"), f"-logdir={self._directory}"),
            *("server", f"-dir={data}", "-ip=127.0.0.1", "-master.telemetry=false"),
            # Catalogs on ports that are always the same: two servers could not run at a time.
            *("-s3.port.iceberg=0", "-s3.port.lance=0"),
            *("-ip.bind=127.0.0.1", "-s3", f"-s3.config={config}", f"-s3.port={self._port}"),
            *(f"-{part}.port={own_port()}" for part in ("master", "volume", "filer")),
            *(f"-{part}.port.grpc={own_port()}" for part in ("master", "volume", "filer", "s3")),
            *("-volume.max=20", "-master.volumeSizeLimitMB=64"),
        ]

    def start(self) -> None:
        command, environment = self._command(), {**os.environ, **self._environment}
        with (self._directory / "log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        until = time.monotonic() + _START_SECONDS
        while True:
            try:
                self.files().create_dir(BUCKET)
                return
            except OSError:
                if self._process.poll() is not None or time.monotonic() > until:
                    raise AssertionError((self._directory / "log").read_text()[-4000:]) from None
                time.sleep(_PAUSE)

    def location(self) -> str:
        """Where nothing is yet."""
        return f"s3://{BUCKET}/some/prefix-{next(_numbers)}"

    def files(self) -> S3FileSystem:
        return S3FileSystem(
            endpoint_override=f"127.0.0.1:{self._port}",
            scheme="http",
            region="us-east-1",
            access_key=KEY,
            secret_key=SECRET,
            allow_bucket_creation=True,
        )

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class VersityGateway(ObjectStore):
    """A gateway to a directory, whose files have their metadata in extended attributes."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._environment = {"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}

    def _command(self) -> list[str]:
        if not VERSITY.exists():
            raise RuntimeError(f"no {VERSITY}: run tests/setup_second_store.sh first")
        data = self._directory / "data"
        data.mkdir(exist_ok=True)  # it may have been killed before
        return [str(VERSITY), "--port", f"127.0.0.1:{self._port}", "--quiet", "posix", str(data)]


SERVERS: Final = {"seaweedfs": ObjectStore, "versitygw": VersityGateway}


@contextmanager
def running_object_store() -> Iterator[ObjectStore]:
    directory = Path(tempfile.mkdtemp(prefix="object-store-"))
    store = SERVERS[os.environ.get("HEADRACE_OBJECT_STORE", "seaweedfs")](directory)
    try:
        store.start()
        yield store
    finally:
        store.stop()
        shutil.rmtree(directory)
