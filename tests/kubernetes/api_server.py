"""A real API server with an etcd of its own, and nothing behind it: it judges manifests, and runs nothing."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.kubernetes.chart import Manifest
from tests.ports import own_port

MISSING: Final = [name for name in ("etcd", "kube-apiserver") if shutil.which(name) is None]
START_SECONDS: Final = 120.0
_TOKEN: Final = "a-token-of-this-test-alone"
_PLURALS: Final = {
    "v1": "api/v1",
    "apps/v1": "apis/apps/v1",
    "policy/v1": "apis/policy/v1",
}


class Refused(Exception):
    """What the server said."""


class ApiServer:
    def __init__(self, port: int) -> None:
        self._base = f"https://127.0.0.1:{port}"
        # It makes its own certificate at each start; only this test knows the port and the token.
        self._context = ssl.create_default_context()
        self._context.check_hostname = False
        self._context.verify_mode = ssl.CERT_NONE

    def ask(self, method: str, path: str, body: Manifest | None = None) -> Any:
        request = urllib.request.Request(
            f"{self._base}/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {_TOKEN}", "Content-Type": _content(method)},
        )
        try:
            with urllib.request.urlopen(request, timeout=60, context=self._context) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                raise Refused(error.read().decode()) from None

    def is_ready(self) -> bool:
        try:
            self.ask("GET", "api/v1/namespaces/default")
        except (OSError, Refused):
            return False
        return True

    def apply(self, manifest: Manifest, namespace: str) -> Any:
        """Server-side, as `kubectl apply --server-side --dry-run=server --validate=strict` does it."""
        name = manifest["metadata"]["name"]
        kind = f"{manifest['kind'].lower()}s"
        path = f"{_PLURALS[manifest['apiVersion']]}/namespaces/{namespace}/{kind}/{name}"
        query = "dryRun=All&fieldManager=test&fieldValidation=Strict"
        return self.ask("PATCH", f"{path}?{query}", manifest)

    def create_dry(self, pod: Manifest, namespace: str) -> Any:
        query = "dryRun=All&fieldValidation=Strict"
        return self.ask("POST", f"api/v1/namespaces/{namespace}/pods?{query}", pod)


def _content(method: str) -> str:
    return "application/apply-patch+yaml" if method == "PATCH" else "application/json"


@contextmanager
def api_server(folder: Path) -> Iterator[ApiServer]:
    """Both processes end with the block."""
    client, peer, port = own_port(), own_port(), own_port()
    (folder / "tokens.csv").write_text(f"{_TOKEN},test,test,system:masters\n")
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    (folder / "accounts.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    stored = f"http://127.0.0.1:{client}"
    commands = {
        "etcd": [
            f"--data-dir={folder / 'etcd'}",
            f"--listen-client-urls={stored}",
            f"--advertise-client-urls={stored}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
            "--unsafe-no-fsync",
        ],
        "kube-apiserver": [
            f"--etcd-servers={stored}",
            f"--cert-dir={folder / 'certificates'}",
            f"--secure-port={port}",
            "--bind-address=127.0.0.1",
            f"--token-auth-file={folder / 'tokens.csv'}",
            "--authorization-mode=AlwaysAllow",
            "--service-account-issuer=https://localhost",
            f"--service-account-key-file={folder / 'accounts.pem'}",
            f"--service-account-signing-key-file={folder / 'accounts.pem'}",
            "--service-cluster-ip-range=10.0.0.0/24",
            # Nobody is there to make accounts.
            "--disable-admission-plugins=ServiceAccount",
        ],
    }
    with ExitStack() as stack:
        processes = [
            stack.enter_context(_running(folder / f"{name}.log", [name, *words]))
            for name, words in commands.items()
        ]
        server = ApiServer(port)
        deadline = time.monotonic() + START_SECONDS
        while not server.is_ready():
            dead = [process.args for process in processes if process.poll() is not None]
            if dead or time.monotonic() > deadline:
                logs = "\n".join(file.read_text()[-2000:] for file in sorted(folder.glob("*.log")))
                raise RuntimeError(f"no API server: {logs}")
            time.sleep(0.2)
        yield server


@contextmanager
def _running(output: Path, command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    with output.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
