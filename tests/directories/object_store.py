"""A real S3 server: SeaweedFS, from its package of PyPI. Each test has a prefix of the one bucket: every
bucket would have volumes of its own."""

from __future__ import annotations

import itertools
import json
import shutil
import signal
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyarrow.fs import S3FileSystem

from tests.ports import own_port

BUCKET = "tests"
KEY, SECRET = "reader", "not-a-real-secret"
_START_SECONDS = 120.0
_PAUSE = 0.1
_numbers = itertools.count()


class ObjectStore:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._port = own_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def settings(self) -> dict[str, str]:
        """Of a connector."""
        return {
            "s3.endpoint": f"http://127.0.0.1:{self._port}",
            "s3.region": "us-east-1",
            "aws.access.key.id": KEY,
            "aws.secret.access.key": SECRET,
        }

    def start(self) -> None:
        identity = {
            "name": "tests",
            "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        config = self._directory / "s3.json"
        config.write_text(json.dumps({"identities": [identity]}))
        data = self._directory / "data"
        data.mkdir()
        command = [
            *(str(Path(sysconfig.get_path("scripts")) / "weed"), f"-logdir={self._directory}"),
            *("server", f"-dir={data}", "-ip=127.0.0.1", "-master.telemetry=false"),
            # Catalogs on ports that are always the same: two servers could not run at a time.
            *("-s3.port.iceberg=0", "-s3.port.lance=0"),
            *("-ip.bind=127.0.0.1", "-s3", f"-s3.config={config}", f"-s3.port={self._port}"),
            *(f"-{part}.port={own_port()}" for part in ("master", "volume", "filer")),
            *(f"-{part}.port.grpc={own_port()}" for part in ("master", "volume", "filer", "s3")),
            *("-volume.max=20", "-master.volumeSizeLimitMB=64"),
        ]
        with (self._directory / "log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
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


@contextmanager
def running_object_store() -> Iterator[ObjectStore]:
    directory = Path(tempfile.mkdtemp(prefix="object-store-"))
    store = ObjectStore(directory)
    try:
        store.start()
        yield store
    finally:
        store.stop()
        shutil.rmtree(directory)
