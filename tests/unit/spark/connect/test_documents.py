"""Records to HTTP servers. The server is ours and speaks just enough of OpenSearch's `_bulk`, with the rules
of external versions: what OpenSearch itself does with them is not shown here."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from headrace.connect.api import Config, ConnectorFailure, GiveUp, Sink, SinkRecord
from headrace.connect.plugins import all_settings
from headrace.spark.connect.connectors.http_sink import HttpSink
from headrace.spark.connect.connectors.opensearch_sink import OpenSearchSink


class Server:
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

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
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


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.stop()


def _sink(kind: type[Sink], **settings: str) -> Sink:
    given = {"name": "out", "connector.class": "x", **{n.replace("__", "."): v for n, v in settings.items()}}
    return kind(Config("out", all_settings(kind).parse(given), given))


def _record(offset: int, key: bytes | None, value: bytes | None) -> SinkRecord:
    return SinkRecord("orders", 0, offset, key, value, (), 0)


def test_each_request_has_an_id(server: Server) -> None:
    sink = _sink(
        HttpSink, http__url=f"{server.url}/in/${{topic}}/${{id}}?key=${{key}}", http__method="PUT",
        http__authorization="Bearer abc", http__headers="X-One: 1",
    )  # fmt: skip
    sink.put([_record(7, b"a/b", b'{"v":1}'), _record(8, None, None)])
    sink.stop()
    (method, path, headers, body), (_, second, _, none) = server.requests
    assert (method, path, body) == ("PUT", "/in/orders/orders-0-7?key=a%2Fb", b'{"v":1}')
    assert (second, none) == ("/in/orders/orders-0-8?key=", b"null")
    assert headers["Idempotency-Key"] == "orders-0-7"
    assert (headers["Authorization"], headers["X-One"]) == ("Bearer abc", "1")


def test_a_busy_server_is_asked_again_and_a_refusal_is_told(server: Server) -> None:
    sink = _sink(HttpSink, http__url=server.url)
    server.statuses = [503]
    with pytest.raises(ConnectorFailure, match="is not ready: HTTP 503: told so"):
        sink.put([_record(0, None, b"1")])
    server.statuses = [422]
    with pytest.raises(GiveUp, match="orders-0-0 was refused: HTTP 422"):
        sink.put([_record(0, None, b"1")])
    sink.stop()
    tolerant = _sink(HttpSink, http__url=server.url, errors__tolerance="all")
    server.statuses = [422, 200]
    rejected = list(tolerant.put([_record(0, None, b"1"), _record(1, None, b"1")]) or ())
    assert [each.offset for each in rejected] == [0]
    tolerant.stop()


def test_nobody_answers() -> None:
    sink = _sink(HttpSink, http__url="http://127.0.0.1:1/")
    with pytest.raises(ConnectorFailure, match="does not answer"):
        sink.put([_record(0, None, b"1")])
    sink.stop()


def test_documents_by_key_are_not_taken_back_by_a_late_repeat(server: Server) -> None:
    sink = _sink(OpenSearchSink, connection__url=server.url, batch__size="2")
    first = [_record(0, b"a", b'{"v":1}'), _record(1, b"b", b'{"v":1}'), _record(2, b"a", b'{"v":2}')]
    sink.put([*first, _record(3, b"b", None)])
    assert server.found == {"orders/a": {"v": 2}}
    assert len(server.requests) == 2
    sink.put(first)
    assert server.found == {"orders/a": {"v": 2}}
    sink.stop()


def test_documents_by_offset(server: Server) -> None:
    sink = _sink(OpenSearchSink, connection__url=server.url, document__id="offset", index__name__format="all")
    records = [_record(0, None, b'{\n"v":1}'), _record(1, b"a", b'{"v":1}'), _record(2, b"a", None)]
    for _ in range(2):
        sink.put(records)
    assert server.found == {"all/orders-0-0": {"v": 1}, "all/orders-0-1": {"v": 1}}
    sink.stop()


def test_what_an_index_refuses(server: Server) -> None:
    sink = _sink(
        OpenSearchSink, connection__url=server.url, errors__tolerance="all", connection__username="u"
    )
    records = [
        _record(0, b"a", b'{"bad":1}'),
        _record(1, b"a", b"no"),
        _record(2, None, b"{}"),
        _record(3, b"b", b"{}"),
    ]
    assert sorted(each.offset for each in sink.put(records) or ()) == [0, 1, 2]
    assert server.found == {"orders/b": {}}
    assert server.requests[0][2]["Authorization"] == "Basic dTo="
    server.statuses = [429]
    with pytest.raises(ConnectorFailure, match="refused a batch: HTTP 429"):
        sink.put(records)
    sink.stop()
