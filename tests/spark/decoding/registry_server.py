"""A small registry with fixed schemas, over real HTTP: what the decoder asks, and nothing else."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit


class RegistryServer:
    def __init__(self) -> None:
        self.asked: list[str] = []
        self.authorizations: set[str | None] = set()
        #: So many of the next requests are answered with a failure.
        self.failures = 0
        #: All are answered with this status, if it is given.
        self.refusal: int | None = None
        self._subjects: dict[str, list[dict[str, Any]]] = {}
        self._ids = 0
        self.url = ""

    def register(
        self, subject: str, schema: object, kind: str = "AVRO", references: tuple[dict[str, Any], ...] = ()
    ) -> int:
        versions = self._subjects.setdefault(subject, [])
        self._ids += 1
        text = schema if isinstance(schema, str) else json.dumps(schema)
        document = {"subject": subject, "version": len(versions) + 1, "id": self._ids, "schema": text}
        if kind != "AVRO":
            document["schemaType"] = kind
        if references:
            document["references"] = list(references)
        versions.append(document)
        return self._ids

    def delete(self, subject: str, version: int) -> None:
        """Softly, as a registry does unless it is told to forget."""
        self._subjects[subject][version - 1]["deleted"] = True

    def forget(self, subject: str) -> None:
        """For good: the next schema of the subject is its first version again, under a new id."""
        del self._subjects[subject]

    def answer(self, target: str) -> tuple[int, object]:
        self.asked.append(target)
        if self.failures:
            self.failures -= 1
            return 503, {"error_code": 50003, "message": "not now"}
        if self.refusal is not None:
            return self.refusal, {"error_code": self.refusal, "message": "not you"}
        parts = urlsplit(target)
        deleted = parse_qs(parts.query).get("deleted") == ["true"]
        match [unquote(part) for part in parts.path.strip("/").split("/")]:
            case ["subjects", subject, "versions"]:
                found = self._versions(subject, deleted)
                return (200, [each["version"] for each in found]) if found else _missing(40401)
            case ["subjects", subject, "versions", version]:
                found = self._versions(subject, deleted)
                wanted = found[-1:] if version == "latest" else [
                    each for each in found if str(each["version"]) == version
                ]  # fmt: skip
                return (200, wanted[0]) if wanted else _missing(40402)
            case ["schemas", "ids", number]:
                every = [each for versions in self._subjects.values() for each in versions]
                wanted = [each for each in every if str(each["id"]) == number]
                return (200, wanted[0]) if wanted else _missing(40403)
        return _missing(404)

    def _versions(self, subject: str, deleted: bool) -> list[dict[str, Any]]:
        return [each for each in self._subjects.get(subject, []) if deleted or not each.get("deleted")]


def _missing(code: int) -> tuple[int, object]:
    return 404, {"error_code": code, "message": "not found"}


@contextmanager
def serve() -> Iterator[RegistryServer]:
    registry = RegistryServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            registry.authorizations.add(self.headers.get("Authorization"))
            status, document = registry.answer(self.path)
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        registry.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()
