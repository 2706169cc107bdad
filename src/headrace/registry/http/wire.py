"""Requests and answers in the registry's content types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, TypeVar
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response

from headrace.registry import errors
from headrace.registry.content import content_from
from headrace.registry.http.guard import access
from headrace.registry.registering import Submission
from headrace.registry.service import Service

T = TypeVar("T")

PREFERRED: Final = "application/vnd.schemaregistry.v1+json"
_SPOKEN: Final = (PREFERRED, "application/vnd.schemaregistry+json", "application/json")
_TAKEN: Final = (*_SPOKEN, "application/octet-stream")
_LARGEST_BODY: Final = 16 * 1024 * 1024


def service(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


def subject(request: Request) -> str:
    """As it was meant: routes are matched on the path as it was sent, because a subject may hold a slash."""
    return unquote(request.path_params["subject"])


def flag(request: Request, name: str) -> bool:
    return request.query_params.get(name, "").lower() == "true"


def number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name)
    if text is None or text == "":
        return default
    try:
        return int(text)
    except ValueError:
        raise errors.bad_request(f"{name} is a number, not {text!r}") from None


def page(request: Request, items: list[T]) -> list[T]:
    """`offset` and `limit` of the query."""
    start, limit = max(0, number(request, "offset", 0)), number(request, "limit", -1)
    return items[start : start + limit] if limit >= 0 else items[start:]


async def body(request: Request) -> Mapping[str, Any]:
    """The JSON object that was sent."""
    kind = request.headers.get("content-type", PREFERRED).partition(";")[0].strip().lower()
    if kind not in _TAKEN:
        raise errors.RegistryError(415, 415, f"HTTP 415 Unsupported Media Type: send {PREFERRED}")
    try:
        document = json.loads(await _received(request))
    except (ValueError, RecursionError) as error:
        raise errors.bad_request(f"the request is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise errors.bad_request("the request is not a JSON object")
    return document


async def _received(request: Request) -> bytes:
    """All of it, unless it is more than any topic takes."""
    received = bytearray()
    async for chunk in request.stream():
        received += chunk
        if len(received) > _LARGEST_BODY:
            raise errors.RegistryError(413, 413, f"HTTP 413: a request has {_LARGEST_BODY} bytes at most")
    return bytes(received)


async def submission(request: Request) -> Submission:
    document = await body(request)
    given_id, version = document.get("id"), document.get("version")
    content = content_from(document)
    for reference in content.references:
        # What is refused of a schema tells of those that it names.
        access(request).require_read(reference.subject)
    return Submission(
        content,
        flag(request, "normalize"),
        given_id if isinstance(given_id, int) and given_id >= 0 else None,
        version if isinstance(version, int) and version > 0 else None,
    )


def answer(request: Request, document: object, status: int = 200) -> Response:
    return Response(
        json.dumps(document, separators=(",", ":"), ensure_ascii=False),
        status,
        media_type=_media_type(request),
    )


def _media_type(request: Request) -> str:
    """The first of the types that the client takes and we speak."""
    for item in request.headers.get("accept", "*/*").split(","):
        wanted = item.partition(";")[0].strip().lower()
        if wanted in _SPOKEN:
            return wanted
    return PREFERRED
