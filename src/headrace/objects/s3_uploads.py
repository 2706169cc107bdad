"""Uploads in parts that nobody has finished, in a bucket that speaks S3: which there are, and their end.

Their parts are in no listing and cost money until somebody aborts them. The client of object stores does not
tell of them, so that these two requests are made and signed here (AWS Signature Version 4).
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode, urlsplit
from xml.etree import ElementTree

from headrace.core.ports_objects import (
    DeleteOutcome,
    Done,
    OutcomeUnknown,
    PartialUpload,
    Refused,
    UploadsOutcome,
)

_EMPTY: Final = hashlib.sha256(b"").hexdigest()
_AT_ONCE: Final = 1000
_LARGEST_ANSWER: Final = 4 * 1024 * 1024
_UNRESERVED: Final = "-_.~"
_LATER: Final = (408, 409, 429)


class Credentials(NamedTuple):
    key: str
    secret: str
    token: str = ""


class S3Place(NamedTuple):
    endpoint: str
    """Of the bucket: requests go to paths below it."""
    path: str
    """Of the bucket within it: empty, or `/` and its name."""
    region: str
    prefix: str
    """Ends with `/`, or is empty: keys are told without it."""


def place_of(url: str, endpoint: str | None, region: str) -> S3Place:
    parts = urlsplit(url)
    prefix = f"{parts.path.strip('/')}/" if parts.path.strip("/") else ""
    if endpoint:
        return S3Place(endpoint.rstrip("/"), f"/{parts.netloc}", region, prefix)
    return S3Place(f"https://{parts.netloc}.s3.{region}.amazonaws.com", "", region, prefix)


def credentials_of(environment: Mapping[str, str]) -> Credentials | None:
    """Who we are, if the environment says it. What a machine lends its programs is not asked for."""
    key, secret = environment.get("AWS_ACCESS_KEY_ID"), environment.get("AWS_SECRET_ACCESS_KEY")
    return Credentials(key, secret, environment.get("AWS_SESSION_TOKEN", "")) if key and secret else None


class S3Uploads:
    def __init__(self, place: S3Place, credentials: Credentials) -> None:
        self._place = place
        self._credentials = credentials

    def list(self, prefix: str, deadline_seconds: float) -> UploadsOutcome:
        found: list[PartialUpload] = []
        marker: dict[str, str] = {}
        while True:
            query = {"uploads": "", "prefix": self._place.prefix + prefix, "max-uploads": str(_AT_ONCE)}
            answer = self._ask("GET", "/", query | marker, deadline_seconds)
            if not isinstance(answer, bytes):
                return answer
            try:
                page = ElementTree.fromstring(answer)
            except ElementTree.ParseError as error:
                return OutcomeUnknown(f"its list of uploads cannot be read: {error}")
            found += [each for each in map(self._upload, _all(page, "Upload")) if each is not None]
            if _text(page, "IsTruncated") != "true":
                return [each for each in found if each.key.startswith(prefix)]
            following = {
                "key-marker": _text(page, "NextKeyMarker"),
                "upload-id-marker": _text(page, "NextUploadIdMarker"),
            }
            if following == marker:
                return OutcomeUnknown("its list of uploads does not end")
            marker = following

    def _upload(self, element: ElementTree.Element) -> PartialUpload | None:
        key = _text(element, "Key").lstrip("/")
        if not key.startswith(self._place.prefix):
            return None
        begun = datetime.fromisoformat(_text(element, "Initiated").replace("Z", "+00:00"))
        key = key.removeprefix(self._place.prefix)
        return PartialUpload(key, _text(element, "UploadId"), int(begun.timestamp() * 1000))

    def abort(self, upload: PartialUpload, deadline_seconds: float) -> DeleteOutcome:
        path = f"/{self._place.prefix}{upload.key}"
        answer = self._ask("DELETE", path, {"uploadId": upload.upload_id}, deadline_seconds)
        return Done() if isinstance(answer, bytes) else answer

    def _ask(
        self, method: str, path: str, query: Mapping[str, str], deadline_seconds: float
    ) -> bytes | OutcomeUnknown | Refused:
        parts = urlsplit(self._place.endpoint)
        path = quote((self._place.path + path).rstrip("/") or "/", safe=f"/{_UNRESERVED}")
        text = urlencode(sorted(query.items()), quote_via=quote, safe=_UNRESERVED)
        headers = self._signed(method, parts.netloc, path, text, datetime.now(UTC))
        connection = _connection(parts.scheme, parts.netloc, deadline_seconds)
        try:
            connection.request(method, f"{path}?{text}", headers=headers)
            answer = connection.getresponse()
            body = answer.read(_LARGEST_ANSWER)
        except (OSError, http.client.HTTPException) as error:
            return OutcomeUnknown(str(error) or type(error).__name__)
        finally:
            connection.close()
        if answer.status < 300:
            return body
        code, text = _said(body)
        if code == "NoSuchUpload" and method == "DELETE":
            return body  # who aborts what is gone has nothing to do
        reason = ": ".join(part for part in (f"{answer.status} {answer.reason}", code, text) if part)
        return (
            Refused(reason)
            if 400 <= answer.status < 500 and answer.status not in _LATER
            else (OutcomeUnknown(reason))
        )

    def _signed(self, method: str, host: str, path: str, query: str, now: datetime) -> dict[str, str]:
        stamp = now.strftime("%Y%m%dT%H%M%SZ")
        headers = {"host": host, "x-amz-content-sha256": _EMPTY, "x-amz-date": stamp}
        if self._credentials.token:
            headers["x-amz-security-token"] = self._credentials.token
        names = ";".join(sorted(headers))
        lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
        canonical = f"{method}\n{path}\n{query}\n{lines}\n{names}\n{_EMPTY}"
        scope = f"{stamp[:8]}/{self._place.region}/s3/aws4_request"
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        key = f"AWS4{self._credentials.secret}".encode()
        for part in (stamp[:8], self._place.region, "s3", "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        signature = hmac.digest(key, f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}".encode(), "sha256").hex()
        who = f"Credential={self._credentials.key}/{scope}"
        headers["authorization"] = f"AWS4-HMAC-SHA256 {who}, SignedHeaders={names}, Signature={signature}"
        return headers


def _connection(scheme: str, netloc: str, deadline_seconds: float) -> http.client.HTTPConnection:
    if scheme == "http":
        return http.client.HTTPConnection(netloc, timeout=deadline_seconds)
    return http.client.HTTPSConnection(netloc, timeout=deadline_seconds, context=ssl.create_default_context())


def _said(body: bytes) -> tuple[str, str]:
    """The store's code and message of an error. No more of it: some stores repeat what they were sent."""
    try:
        page = ElementTree.fromstring(body)
    except ElementTree.ParseError:
        return "", ""
    return _text(page, "Code"), _text(page, "Message")


def _all(page: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [each for each in page if each.tag.rpartition("}")[2] == name]


def _text(page: ElementTree.Element, name: str) -> str:
    found = _all(page, name)
    return (found[0].text or "") if found else ""
