"""What a 404 means: an object that is not there, or a store that does not know who or what is asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from headrace.core.ports_objects import (
    ABSENT,
    Absent,
    Done,
    LostRace,
    ObjectStore,
    OutcomeUnknown,
    Refused,
    Tag,
)
from headrace.objects.opening import open_bucket

Says = Callable[[int, str], ObjectStore]


def error(code: str, text: str = "in words") -> str:
    return f"<Error><Code>{code}</Code><Message>{text}</Message><Token-0>canary</Token-0></Error>"


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Iterator[Says]:
    """A bucket of a server that gives one answer to everything."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    answer: list[tuple[int, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def handle_one(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            status, body = answer[-1]
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_DELETE = do_POST = handle_one

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        bucket = open_bucket("s3://bucket/prefix", endpoint=f"http://127.0.0.1:{server.server_port}")

        def begin(status: int, body: str) -> ObjectStore:
            answer.append((status, body.encode()))
            return bucket

        yield begin
        bucket.close()
        server.shutdown()
        thread.join()


def test_what_is_not_there_is_absent(says: Says) -> None:
    store = says(404, error("NoSuchKey"))
    assert store.get("a", deadline_seconds=60) == ABSENT
    assert isinstance(store.get_range("a", 0, 1, deadline_seconds=60), Absent)
    assert isinstance(store.delete("a", deadline_seconds=60), Done)


@pytest.mark.parametrize(
    "body",
    [error("NoSuchBucket"), error("XAdminUserNotFound"), "<html>nginx: not found</html>", "not found", ""],
    ids=["no bucket", "no such user", "a web server", "text", "nothing"],
)
def test_tier_invariant_06_a_404_about_something_else_says_nothing_of_the_object(
    says: Says, body: str
) -> None:
    store = says(404, body)
    for outcome in (
        store.get("a", deadline_seconds=60),
        store.get_range("a", 0, 1, deadline_seconds=60),
        store.put("a", b"x", deadline_seconds=60),
        store.put_if("a", b"x", ABSENT, deadline_seconds=60),
        store.put_if("a", b"x", Tag('"tag"'), deadline_seconds=60),
        store.delete("a", deadline_seconds=60),
        store.list("", deadline_seconds=60),
    ):
        assert isinstance(outcome, Refused), outcome
        assert "404" in outcome.reason
        assert "canary" not in outcome.reason


def test_if_match_where_nothing_is_is_a_lost_race(says: Says) -> None:
    """Amazon's store answers so, where others say that the condition does not hold."""
    store = says(404, error("NoSuchKey"))
    assert isinstance(store.put_if("a", b"x", Tag('"tag"'), deadline_seconds=60), LostRace)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("ExpiredToken", "The provided token has expired."),
        ("InvalidAccessKeyId", "The access key does not exist."),
        ("SignatureDoesNotMatch", "The signature does not match."),
        (
            "RequestTimeTooSkewed",
            "The difference between the request time and the current time is too large.",
        ),
    ],
)
def test_credentials_and_clocks_are_refused_in_the_store_s_words_and_no_others(
    says: Says, code: str, text: str
) -> None:
    store = says(403, error(code, text))
    said = f"403 Forbidden: {code}: {text}"
    for outcome in (
        store.get("a", deadline_seconds=60),
        store.put("a", b"x", deadline_seconds=60),
        store.put_if("a", b"x", ABSENT, deadline_seconds=60),
        store.delete("a", deadline_seconds=60),
        store.list("", deadline_seconds=60),
        store.partial_uploads("", deadline_seconds=60),  # type: ignore[attr-defined]  # of a bucket of s3://
    ):
        assert outcome == Refused(said)


def test_a_store_that_is_busy_is_asked_again(says: Says) -> None:
    assert isinstance(says(503, error("SlowDown")).get("a", deadline_seconds=60), OutcomeUnknown)
