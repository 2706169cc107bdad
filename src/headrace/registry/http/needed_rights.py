"""Which right each route needs, in one table. A route that has no row is not served at all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headrace.registry.http.guard import access
from headrace.registry.http.wire import subject

Need = Callable[[Request], None]
Endpoint = Callable[[Request], Awaitable[Response]]


def authenticated(_request: Request) -> None:
    """Whoever has come past the guard. Lists leave out what the user may not read."""


def read(request: Request) -> None:
    access(request).require_read(subject(request))


def write(request: Request) -> None:
    access(request).require_write(subject(request))


def alter(request: Request) -> None:
    access(request).require_alter(subject(request))


def administer(request: Request) -> None:
    access(request).require_administration()


NEEDED: Final[dict[tuple[str, str], Need]] = {
    ("GET", "/"): authenticated,
    ("GET", "/contexts"): authenticated,
    ("GET", "/v1/metadata/version"): authenticated,
    ("GET", "/v1/metadata/id"): authenticated,
    ("GET", "/subjects"): authenticated,
    ("POST", "/subjects/{subject}"): read,
    ("DELETE", "/subjects/{subject}"): alter,
    ("GET", "/subjects/{subject}/versions"): read,
    ("POST", "/subjects/{subject}/versions"): write,
    ("GET", "/subjects/{subject}/versions/{version}"): read,
    ("DELETE", "/subjects/{subject}/versions/{version}"): alter,
    ("GET", "/subjects/{subject}/versions/{version}/schema"): read,
    ("GET", "/subjects/{subject}/versions/{version}/referencedby"): read,
    ("GET", "/schemas"): authenticated,
    ("GET", "/schemas/types"): authenticated,
    # What these need depends on who uses the id: see `_readable` in schemas.py.
    ("GET", "/schemas/ids/{id}"): authenticated,
    ("GET", "/schemas/ids/{id}/schema"): authenticated,
    ("GET", "/schemas/ids/{id}/subjects"): authenticated,
    ("GET", "/schemas/ids/{id}/versions"): authenticated,
    ("GET", "/schemas/guids/{guid}"): authenticated,
    ("POST", "/compatibility/subjects/{subject}/versions"): read,
    ("POST", "/compatibility/subjects/{subject}/versions/{version}"): read,
    ("GET", "/config"): authenticated,
    ("PUT", "/config"): administer,
    ("DELETE", "/config"): administer,
    ("GET", "/config/{subject}"): read,
    ("PUT", "/config/{subject}"): alter,
    ("DELETE", "/config/{subject}"): alter,
    ("GET", "/mode"): authenticated,
    ("PUT", "/mode"): administer,
    ("DELETE", "/mode"): administer,
    ("GET", "/mode/{subject}"): read,
    ("PUT", "/mode/{subject}"): alter,
    ("DELETE", "/mode/{subject}"): alter,
}


def guarded(routes: Iterable[Route]) -> list[Route]:
    """KeyError for a route without a row."""
    return [_guarded(route) for route in routes]


def _guarded(route: Route) -> Route:
    needed = {method: NEEDED[_asked(method), route.path] for method in route.methods or ()}
    endpoint: Endpoint = route.endpoint

    async def checked(request: Request) -> Response:
        needed[request.method](request)
        return await endpoint(request)

    return Route(route.path, checked, methods=list(needed))


def _asked(method: str) -> str:
    return "GET" if method == "HEAD" else method
