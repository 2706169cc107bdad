"""Requests and answers as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response

from headrace.connect.errors import ConnectError, bad_request

if TYPE_CHECKING:
    from headrace.connect.loggers import Loggers
    from headrace.connect.offset_service import OffsetService
    from headrace.connect.service import Service

_LARGEST_BODY: Final = 16 * 1024 * 1024


class Parts(NamedTuple):
    """What routes use."""

    service: Service
    offsets: OffsetService
    loggers: Loggers
    cluster_id: str
    is_ready: Any
    """A function: whether the worker has joined its group."""


def parts(request: Request) -> Parts:
    found: Parts = request.app.state.parts
    return found


def name(request: Request) -> str:
    """As it was meant: routes are matched on the path as it was sent, since a name may hold a slash."""
    return unquote(request.path_params["name"])


def task(request: Request) -> int:
    text = request.path_params["task"]
    if not text.isdecimal():
        raise ConnectError(404, "HTTP 404 Not Found")
    return int(text)


def flag(request: Request, key: str) -> bool:
    return request.query_params.get(key, "").lower() == "true"


async def body(request: Request) -> Any:
    """What was sent, as JSON. Nothing is None."""
    received = bytearray()
    async for chunk in request.stream():
        received += chunk
        if len(received) > _LARGEST_BODY:
            raise ConnectError(413, f"a request has {_LARGEST_BODY} bytes at most")
    if not received.strip():
        return None
    try:
        found = json.loads(received)
        json.dumps(found, ensure_ascii=False).encode()  # half a surrogate pair is no text
        return found
    except (ValueError, RecursionError) as error:
        # Kafka Connect answers 500 to this too, and its clients know it so.
        raise ConnectError(500, f"the request is not JSON: {error}") from None


async def document(request: Request) -> dict[str, Any]:
    found = await body(request)
    if not isinstance(found, dict):
        raise bad_request("the request is a JSON object")
    return found


def answer(content: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    return Response(text, status, headers, media_type="application/json")


def nothing(status: int) -> Response:
    return Response(status_code=status)
