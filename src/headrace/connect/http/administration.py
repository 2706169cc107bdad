"""/, /health, /connector-plugins and /admin/loggers."""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headrace import __version__
from headrace.connect.errors import bad_request
from headrace.connect.http.wire import answer, document, name, nothing, parts
from headrace.connect.loggers import known_level

_STARTING: Final = "Worker is still starting up and has not joined its group."
_READY: Final = "Worker has completed startup and is ready to handle requests."


async def root(request: Request) -> Response:
    return answer(
        {"version": __version__, "commit": "headrace", "kafka_cluster_id": parts(request).cluster_id}
    )


async def health(request: Request) -> Response:
    if parts(request).is_ready():
        return answer({"status": "healthy", "message": _READY})
    return answer({"status": "starting", "message": _STARTING}, 503)


async def plugins(request: Request) -> Response:
    """`connectorsOnly=false` asks for converters and the like too: none can be added here."""
    return answer(parts(request).service.plugins())


async def plugin_config(request: Request) -> Response:
    return answer(parts(request).service.plugin_config(name(request)))


async def validate(request: Request) -> Response:
    return answer(parts(request).service.validate(name(request), await document(request)))


async def loggers(request: Request) -> Response:
    return answer(parts(request).loggers.all())


async def logger(request: Request) -> Response:
    return answer(parts(request).loggers.one(name(request)))


async def set_level(request: Request) -> Response:
    given: dict[str, Any] = await document(request)
    level = given.get("level")
    if not isinstance(level, str):
        raise bad_request("Desired 'level' parameter was not specified in request.")
    found = parts(request)
    if request.query_params.get("scope", "worker").lower() == "cluster":
        await found.service.set_level_everywhere(name(request), known_level(level))
        return nothing(204)
    return answer(found.loggers.set(name(request), level))


ROUTES: Final = [
    Route("/", root),
    Route("/health", health),
    Route("/connector-plugins", plugins),
    Route("/connector-plugins/{name}/config", plugin_config),
    Route("/connector-plugins/{name}/config/validate", validate, methods=["PUT"]),
    Route("/admin/loggers", loggers),
    Route("/admin/loggers/{name}", logger),
    Route("/admin/loggers/{name}", set_level, methods=["PUT"]),
]
