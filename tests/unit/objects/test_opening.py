"""From a URL to a bucket: what is said of one that cannot be."""

from __future__ import annotations

import sys

import pytest

from headrace.core.errors import ConfigError
from headrace.core.ports_objects import OutcomeUnknown, Refused
from headrace.objects.opening import ObstoreMissing, _is_plain, open_bucket


@pytest.mark.parametrize("url", ["bucket/prefix", "file:///tmp", "s3:bucket", "http://bucket", ""])
def test_what_is_no_bucket_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="is not the URL of a bucket: write s3://BUCKET/PREFIX"):
        open_bucket(url)


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("s3://key:canary@bucket/prefix", None),
        ("s3://bucket/prefix", "http://key:canary@127.0.0.1:1"),
        ("az://container/prefix?sig=canary", None),
        ("s3://bucket/prefix#canary", None),
    ],
)
def test_credentials_in_a_url_are_refused_and_not_repeated(url: str, endpoint: str | None) -> None:
    with pytest.raises(ConfigError, match="credentials belong into the environment") as refused:
        open_bucket(url, endpoint=endpoint)
    assert "canary" not in str(refused.value)


def test_an_endpoint_is_of_s3() -> None:
    with pytest.raises(ConfigError, match="belong to s3://, not to gs://"):
        open_bucket("gs://bucket", endpoint="http://127.0.0.1:1")


def test_without_the_extra_it_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(ObstoreMissing, match=r"pip install 'headrace\[tier\]'"):
        open_bucket("s3://bucket")


@pytest.mark.parametrize(
    ("endpoint", "environment", "plain"),
    [
        (None, {}, False),
        ("http://127.0.0.1", {}, True),
        ("https://store", {"AWS_ENDPOINT_URL": "http://127.0.0.1"}, False),
        (None, {"AWS_ENDPOINT_URL": "http://127.0.0.1"}, True),
        (None, {"AWS_ENDPOINT_URL": "https://store"}, False),
    ],
)
def test_http_only_where_it_is_written(
    endpoint: str | None, environment: dict[str, str], plain: bool
) -> None:
    assert _is_plain(endpoint, environment) is plain


def test_nobody_there_is_an_unknown_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    bucket = open_bucket("s3://bucket", endpoint="http://127.0.0.1:1")
    try:
        assert isinstance(bucket.get("a", deadline_seconds=60), OutcomeUnknown)
        assert isinstance(bucket.put("a", b"", deadline_seconds=60), OutcomeUnknown)
    finally:
        bucket.close()


def test_a_wrong_secret_is_refused_in_the_words_of_the_store(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    opened = open_bucket(bucket)
    try:
        refused = opened.get("a", deadline_seconds=60)
        assert isinstance(refused, Refused)
        assert refused.reason.startswith("403 Forbidden: SignatureDoesNotMatch: ")
        assert "\n" not in refused.reason
    finally:
        opened.close()


def test_a_deadline_ends_a_call(bucket: str) -> None:
    opened = open_bucket(bucket)
    try:
        late = opened.get("a", deadline_seconds=0.000001)
        assert late == OutcomeUnknown("no answer within 1e-06 s")
    finally:
        opened.close()
