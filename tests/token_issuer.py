"""An issuer of bearer tokens for tests, and the https server that shows its keys."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

ISSUER = "https://issuer.example/realm"
AUDIENCE = "kafka"
KEYS: dict[str, Any] = {
    "RS256": rsa.generate_private_key(65537, 2048),
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
}
#: Of somebody who is not the issuer.
FOREIGN_KEY = rsa.generate_private_key(65537, 2048)


def public_jwk(key: Any, kid: str, **members: Any) -> dict[str, Any]:
    public = key.public_key()
    for kind, algorithm in (
        (rsa.RSAPublicKey, RSAAlgorithm),
        (ec.EllipticCurvePublicKey, ECAlgorithm),
        (ed25519.Ed25519PublicKey, OKPAlgorithm),
    ):
        if isinstance(public, kind):
            described: Any = algorithm
            return {**described.to_jwk(public, as_dict=True), "kid": kid, "use": "sig", **members}
    raise ValueError("no such key")


def key_set(*entries: Mapping[str, Any]) -> bytes:
    return json.dumps({"keys": list(entries)}).encode()


def issuers_keys() -> bytes:
    return key_set(*(public_jwk(key, f"key-{name}") for name, key in KEYS.items()))


def token(
    algorithm: str = "RS256",
    *,
    key: Any = None,
    headers: Mapping[str, Any] | None = None,
    lifetime: float = 300,
    now: float | None = None,
    **claims: Any,
) -> str:
    """A good token of alice's, but for what a test changes. What is None is left out."""
    named = {"kid": f"key-{algorithm}", **(headers or {})}
    now = time.time() if now is None else now
    content = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "alice",
        "iat": int(now),
        "exp": int(now + lifetime),
        **claims,
    }
    return jwt.encode(
        {name: value for name, value in content.items() if value is not None},
        KEYS[algorithm] if key is None else key,
        algorithm=algorithm,
        headers={name: value for name, value in named.items() if value is not None},
    )


class KeyServer:
    """Answers every GET with what `answer` gives: a status, headers and a body."""

    def __init__(self, identity: Path) -> None:
        self.asked = 0
        self.answer: Callable[[], tuple[int, Mapping[str, str], bytes]] = lambda: (200, {}, issuers_keys())
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked += 1
                status, headers, body = server.answer()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Nobody reads it."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(identity)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        return f"https://localhost:{self._server.server_port}/keys"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
