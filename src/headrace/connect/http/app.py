"""The REST interface as an ASGI application."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from headrace.connect.errors import ConnectError
from headrace.connect.http import administration, connectors
from headrace.connect.http.wire import Parts, answer
from headrace.core.errors import HeadraceError
from headrace.registry.errors import RegistryError
from headrace.registry.http.app import PathAsSent
from headrace.registry.http.guard import access

log: Final = logging.getLogger("headrace.connect")

Endpoint = Callable[[Request], Awaitable[Response]]


async def refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, ConnectError)
    if error.status >= 500:
        log.warning("a request failed", extra={"path": request.url.path, "error": str(error)})
    return answer({"error_code": error.status, "message": str(error)}, error.status)


async def forbidden(request: Request, error: Exception) -> Response:  # noqa: ARG001 - Starlette's signature
    """Of the guard, which the registry has too."""
    assert isinstance(error, RegistryError)
    return answer({"error_code": error.status, "message": str(error)}, error.status)


async def failed(request: Request, error: Exception) -> Response:
    """What brokers or a connector's other end refused."""
    log.warning("a request failed", extra={"path": request.url.path, "error": str(error)})
    return answer({"error_code": 500, "message": str(error)}, 500)


async def not_served(request: Request, error: Exception) -> Response:  # noqa: ARG001 - Starlette's signature
    assert isinstance(error, HTTPException)
    text = {"error_code": error.status_code, "message": f"HTTP {error.status_code} {error.detail}"}
    return answer(text, error.status_code)


async def broken(request: Request, error: Exception) -> Response:
    log.error("a request failed", extra={"path": request.url.path}, exc_info=error)
    return answer({"error_code": 500, "message": "Internal Server Error"}, 500)


ROUTES: Final = [*administration.ROUTES, *connectors.ROUTES]


def application(parts: Parts, guard: Callable[[ASGIApp], ASGIApp] | None = None) -> ASGIApp:
    """Without a guard everybody may do everything."""
    app = Starlette(
        routes=[_route(path, found) for path, found in _by_path(ROUTES).items()],
        exception_handlers={
            ConnectError: refused,
            RegistryError: forbidden,
            HTTPException: not_served,
            HeadraceError: failed,
            Exception: broken,
        },
    )
    app.state.parts = parts
    app.state.is_guarded = guard is not None
    return PathAsSent(app) if guard is None else guard(PathAsSent(app))


def _by_path(routes: list[Route]) -> dict[str, dict[str, Endpoint]]:
    found: dict[str, dict[str, Endpoint]] = {}
    for route in routes:
        for method in route.methods or ():
            found.setdefault(route.path, {})[method] = route.endpoint
    return found


def _route(path: str, endpoints: dict[str, Endpoint]) -> Route:
    """One for each path, so that another method is answered with 405. Whoever changes something needs the
    right to change the cluster; whoever has come past the guard may look."""

    async def call(request: Request) -> Response:
        if request.method not in ("GET", "HEAD") and not path.endswith("/validate"):
            access(request).require_administration()
        return await endpoints[request.method](request)

    return Route(path, call, methods=list(endpoints))
