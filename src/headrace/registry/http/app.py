"""The registry as an ASGI application."""

from __future__ import annotations

import logging
from collections.abc import Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from headrace import __version__
from headrace.registry.errors import RegistryError
from headrace.registry.http import schemas, settings, subjects
from headrace.registry.http.needed_rights import guarded
from headrace.registry.http.wire import answer
from headrace.registry.service import Service

log = logging.getLogger("headrace.registry")


class PathAsSent:
    """Routes are matched on the path as it was sent: in a subject's name a slash is sent as %2F."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope.get("raw_path"):
            path = scope["raw_path"].partition(b"?")[0].decode("latin-1")
            scope = {**scope, "path": path if path == "/" else path.rstrip("/")}
        await self._app(scope, receive, send)


async def root(request: Request) -> Response:
    return answer(request, {})


async def contexts(request: Request) -> Response:
    return answer(request, ["."])


async def version(request: Request) -> Response:
    return answer(request, {"version": __version__, "commitId": ""})


async def cluster_id(request: Request) -> Response:
    scope = {"path": [], "clusters": {"schema-registry-cluster": "headrace"}}
    return answer(request, {"scope": scope, "id": ""})


async def refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RegistryError)
    if error.status >= 500:
        log.error("a request failed", extra={"path": request.url.path, "error": str(error)})
    return answer(request, {"error_code": error.code, "message": str(error)}, error.status)


async def not_served(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    document = {"error_code": error.status_code, "message": f"HTTP {error.status_code} {error.detail}"}
    return answer(request, document, error.status_code)


async def broken(request: Request, error: Exception) -> Response:
    log.error("a request failed", extra={"path": request.url.path}, exc_info=error)
    return answer(request, {"error_code": 50001, "message": "Internal Server Error"}, 500)


ROUTES = [
    Route("/", root),
    Route("/contexts", contexts),
    Route("/v1/metadata/version", version),
    Route("/v1/metadata/id", cluster_id),
    *subjects.ROUTES,
    *schemas.ROUTES,
    *settings.ROUTES,
]


def application(service: Service, guard: Callable[[ASGIApp], ASGIApp] | None = None) -> ASGIApp:
    """Without a guard everybody may do everything."""
    app = Starlette(
        routes=guarded(ROUTES),
        exception_handlers={RegistryError: refused, HTTPException: not_served, Exception: broken},
    )
    app.state.service = service
    app.state.is_guarded = guard is not None
    return PathAsSent(app) if guard is None else guard(PathAsSent(app))
