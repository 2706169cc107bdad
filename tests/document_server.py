"""A server for sinks that post documents. It speaks just enough of OpenSearch's `_bulk`, with the rules of
external versions."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who asks may be killed meanwhile. What else goes wrong is missed by who compares."""


class DocumentServer:
    """Keeps what it was sent, and answers what it was told to."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.statuses: list[int] = []
        self.documents: dict[str, tuple[int, Any]] = {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.requests.append((self.command, self.path, dict(self.headers), body))
                status = outer.statuses.pop(0) if outer.statuses else 200
                answer = outer.bulk(body) if self.path == "/_bulk" and status == 200 else b"told so"
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_PUT = do_POST

            def log_message(self, *_: object) -> None:
                pass

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def bulk(self, body: bytes) -> bytes:
        lines = iter(body.decode().splitlines())
        items = []
        for line in lines:
            ((kind, meta),) = json.loads(line).items()
            source = json.loads(next(lines)) if kind == "index" else None
            items.append({kind: self._apply(meta, source)})
        return json.dumps({"items": items}).encode()

    def _apply(self, meta: dict[str, Any], source: Any) -> dict[str, Any]:
        name, version = f"{meta['_index']}/{meta['_id']}", meta.get("version", 0)
        if source is not None and source.get("bad"):
            return {"status": 400, "error": {"type": "mapper_parsing_exception"}}
        if "version" in meta and self.documents.get(name, (-1, None))[0] >= version:
            return {"status": 409, "error": {"type": "version_conflict_engine_exception"}}
        self.documents[name] = (version, source)
        return {"status": 200}

    @property
    def found(self) -> dict[str, Any]:
        return {name: source for name, (_, source) in self.documents.items() if source is not None}
