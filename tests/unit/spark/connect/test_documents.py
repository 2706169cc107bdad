"""Records to HTTP servers. The server is ours and speaks just enough of OpenSearch's `_bulk`, with the rules
of external versions: what OpenSearch itself does with them is not shown here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.connect.api import Config, ConnectorFailure, GiveUp, Sink, SinkRecord
from headrace.connect.plugins import all_settings
from headrace.spark.connect.connectors.http_sink import HttpSink
from headrace.spark.connect.connectors.opensearch_sink import OpenSearchSink
from tests.document_server import DocumentServer


@pytest.fixture
def server() -> Iterator[DocumentServer]:
    made = DocumentServer()
    yield made
    made.stop()


def _sink(kind: type[Sink], **settings: str) -> Sink:
    given = {"name": "out", "connector.class": "x", **{n.replace("__", "."): v for n, v in settings.items()}}
    return kind(Config("out", all_settings(kind).parse(given), given))


def _record(offset: int, key: bytes | None, value: bytes | None) -> SinkRecord:
    return SinkRecord("orders", 0, offset, key, value, (), 0)


def test_each_request_has_an_id(server: DocumentServer) -> None:
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


def test_a_busy_server_is_asked_again_and_a_refusal_is_told(server: DocumentServer) -> None:
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


def test_documents_are_sent_as_they_are(server: DocumentServer) -> None:
    """Written anew, a number would lose digits."""
    sink = _sink(OpenSearchSink, connection__url=server.url)
    sink.put([_record(0, b"a", b'{"v": 12345678901234567.891,\r\n "big": 1e400, "half": "\\ud800"\n}')])
    _, document = server.requests[0][3].splitlines()
    assert document == b'{"v": 12345678901234567.891,  "big": 1e400, "half": "\\ud800" }'
    sink.stop()


def test_keys_that_are_no_text_are_no_ids(server: DocumentServer) -> None:
    """They would be the same document."""
    sink = _sink(OpenSearchSink, connection__url=server.url, errors__tolerance="all")
    records = [_record(0, b"\xff", b"{}"), _record(1, b"\xfe", b"{}"), _record(2, b"a", b"[" * 100_000)]
    assert [each.offset for each in sink.put(records) or ()] == [0, 1, 2]
    sink.stop()


def test_documents_by_key_are_not_taken_back_by_a_late_repeat(server: DocumentServer) -> None:
    sink = _sink(OpenSearchSink, connection__url=server.url, batch__size="2")
    first = [_record(0, b"a", b'{"v":1}'), _record(1, b"b", b'{"v":1}'), _record(2, b"a", b'{"v":2}')]
    sink.put([*first, _record(3, b"b", None)])
    assert server.found == {"orders/a": {"v": 2}}
    assert len(server.requests) == 2
    sink.put(first)
    assert server.found == {"orders/a": {"v": 2}}
    sink.stop()


def test_documents_by_offset(server: DocumentServer) -> None:
    sink = _sink(OpenSearchSink, connection__url=server.url, document__id="offset", index__name__format="all")
    records = [_record(0, None, b'{\n"v":1}'), _record(1, b"a", b'{"v":1}'), _record(2, b"a", None)]
    for _ in range(2):
        sink.put(records)
    assert server.found == {"all/orders-0-0": {"v": 1}, "all/orders-0-1": {"v": 1}}
    sink.stop()


def test_what_an_index_refuses(server: DocumentServer) -> None:
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
