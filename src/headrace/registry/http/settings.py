"""/config, /mode and /compatibility."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headrace.registry import settings
from headrace.registry.errors import RegistryError
from headrace.registry.http.wire import answer, body, flag, service, subject, submission
from headrace.registry.registering import check_subject, version_number


def _subject(request: Request) -> str | None:
    """None for the global setting."""
    if "subject" not in request.path_params:
        return None
    name = subject(request)
    check_subject(name)
    return name


async def config(request: Request) -> Response:
    default = flag(request, "defaultToGlobal")
    return answer(
        request, settings.config(service(request).state, _subject(request), default_to_global=default)
    )


async def put_config(request: Request) -> Response:
    name, wanted = _subject(request), await body(request)
    return answer(
        request, await service(request).write(lambda state: settings.put_config(state, name, wanted))
    )


async def delete_config(request: Request) -> Response:
    name = _subject(request)
    return answer(request, await service(request).write(lambda state: settings.delete_config(state, name)))


async def mode(request: Request) -> Response:
    default = flag(request, "defaultToGlobal")
    return answer(
        request, settings.mode(service(request).state, _subject(request), default_to_global=default)
    )


async def put_mode(request: Request) -> Response:
    name, wanted, force = _subject(request), await body(request), flag(request, "force")
    return answer(
        request,
        await service(request).write(lambda state: settings.put_mode(state, name, wanted, force=force)),
    )


async def delete_mode(request: Request) -> Response:
    name = _subject(request)
    return answer(request, await service(request).write(lambda state: settings.delete_mode(state, name)))


async def compatibility(request: Request) -> Response:
    verbose = flag(request, "verbose")
    version = request.path_params.get("version")
    number = None if version is None else version_number(version)
    try:
        reasons = service(request).objections(subject(request), await submission(request), number)
    except RegistryError as error:
        if not verbose or error.code != 42201:
            raise
        reasons = [str(error)]
    document: dict[str, Any] = {"is_compatible": not reasons}
    if verbose:
        document["messages"] = reasons
    return answer(request, document)


ROUTES = [
    Route("/compatibility/subjects/{subject}/versions", compatibility, methods=["POST"]),
    Route("/compatibility/subjects/{subject}/versions/{version}", compatibility, methods=["POST"]),
    *(Route(path, config) for path in ("/config", "/config/{subject}")),
    *(Route(path, put_config, methods=["PUT"]) for path in ("/config", "/config/{subject}")),
    *(Route(path, delete_config, methods=["DELETE"]) for path in ("/config", "/config/{subject}")),
    *(Route(path, mode) for path in ("/mode", "/mode/{subject}")),
    *(Route(path, put_mode, methods=["PUT"]) for path in ("/mode", "/mode/{subject}")),
    *(Route(path, delete_mode, methods=["DELETE"]) for path in ("/mode", "/mode/{subject}")),
]
