"""Rule 12 on a real S3 server: an unfinished upload is not seen, and goes when it is aborted."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from threading import Event

import pytest

from headrace.core.ports_objects import ABSENT, Done, Found, Listing, PartialUploads, Refused
from headrace.objects.obstore_bucket import ObstoreBucket
from headrace.objects.opening import open_bucket
from headrace.objects.s3_uploads import Credentials, S3Uploads, credentials_of, place_of
from tests.unit.objects.test_behaviour import PART_BYTES, SOON


@pytest.fixture
def opened(bucket: str) -> Iterator[ObstoreBucket]:
    store = open_bucket(bucket)
    yield store
    store.close()


def uploads(store: ObstoreBucket, prefix: str = "") -> list[str]:
    found = store.partial_uploads(prefix, deadline_seconds=SOON)
    assert isinstance(found, list)
    return [each.key for each in found]


def test_tier_invariant_12_what_is_on_its_way_is_not_visible_and_is_aborted(opened: ObstoreBucket) -> None:
    may_end, has_begun = Event(), Event()

    def pieces() -> Iterator[bytes]:
        for _ in range(30):
            yield b"x" * PART_BYTES
        has_begun.set()
        may_end.wait(SOON)
        yield b"the end"

    assert isinstance(opened, PartialUploads)
    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(opened.put, "t/1/a b+c.log", pieces(), deadline_seconds=10 * SOON)
        assert has_begun.wait(SOON)
        assert uploads(opened) == uploads(opened, "t/1/") == ["t/1/a b+c.log"]
        assert uploads(opened, "t/10/") == []
        assert opened.get("t/1/a b+c.log", deadline_seconds=SOON) == ABSENT
        assert opened.list("", deadline_seconds=SOON) == Listing([])
        (upload,) = opened.partial_uploads("", deadline_seconds=SOON)  # type: ignore[misc]  # it is a list
        assert opened.abort_upload(upload, deadline_seconds=SOON) == Done()
        may_end.set()
        assert not isinstance(writing.result(), Done)
    assert opened.get("t/1/a b+c.log", deadline_seconds=SOON) == ABSENT
    assert uploads(opened) == []
    assert opened.abort_upload(upload, deadline_seconds=SOON) == Done()


def test_what_was_finished_is_no_upload_any_more(opened: ObstoreBucket) -> None:
    pieces = [b"x" * PART_BYTES] * 3
    assert isinstance(opened.put("whole", iter(pieces), deadline_seconds=SOON), Done)
    assert uploads(opened) == []
    found = opened.get("whole", deadline_seconds=SOON)
    assert isinstance(found, Found)
    assert len(found.data) == 3 * PART_BYTES


def test_who_is_not_known_is_refused(bucket: str, server: object) -> None:
    place = place_of(bucket, server.settings["s3.endpoint"], "us-east-1")  # type: ignore[attr-defined]  # a Server
    stranger = S3Uploads(place, Credentials("nobody", "knows"))
    assert isinstance(stranger.list("", SOON), Refused)


def test_nobody_there() -> None:
    nowhere = S3Uploads(place_of("s3://bucket", "http://127.0.0.1:1", "r"), Credentials("k", "s"))
    assert not isinstance(nowhere.list("", SOON), list)


def test_a_request_is_signed_as_amazon_has_it() -> None:
    """The example of its documentation, with a date and keys that everybody has."""
    place = place_of("s3://examplebucket", None, "us-east-1")
    assert place.endpoint == "https://examplebucket.s3.us-east-1.amazonaws.com"
    secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
    signer = S3Uploads(place, Credentials("AKIAIOSFODNN7EXAMPLE", secret))
    at = datetime(2013, 5, 24, tzinfo=UTC)
    signed = signer._signed("GET", "examplebucket.s3.amazonaws.com", "/", "max-keys=2&prefix=J", at)
    expected = "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
    assert signed["authorization"].endswith(f"Signature={expected}")


def test_who_we_are_says_the_environment() -> None:
    assert credentials_of({}) is None
    known = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"}
    assert credentials_of(known) == Credentials("k", "s", "t")
