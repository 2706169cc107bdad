"""/schemas: by id, by guid, where an id is used, and all of them."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from headrace.registry import errors
from headrace.registry.content import SchemaType
from headrace.registry.http.guard import access
from headrace.registry.http.subjects import described
from headrace.registry.http.wire import answer, flag, page, service


async def types(request: Request) -> Response:
    return answer(request, [SchemaType.JSON, SchemaType.PROTOBUF, SchemaType.AVRO])


async def everything(request: Request) -> Response:
    prefix = request.query_params.get("subjectPrefix", "").removeprefix(":*:")
    state = service(request).state
    deleted, latest = flag(request, "deleted"), flag(request, "latestOnly")
    found = []
    for name in state.subjects(deleted=deleted):
        if name.startswith(prefix) and access(request).may_read(name):
            entries = state.versions(name, deleted=deleted)
            found += entries[-1:] if latest else entries
    return answer(request, [described(request, entry) for entry in page(request, found)])


async def by_id(request: Request) -> Response:
    return answer(request, _document(request, _readable(request, _id(request))))


async def by_guid(request: Request) -> Response:
    number = service(request).state.id_of_guid(unquote(request.path_params["guid"]))
    return answer(request, {"id": _readable(request, number), **_document(request, number)})


async def text(request: Request) -> Response:
    content = service(request).state.content(_readable(request, _id(request)))
    return PlainTextResponse(
        service(request).text(content, request.query_params.get("format")), media_type="application/json"
    )


async def subjects(request: Request) -> Response:
    return answer(request, page(request, sorted({entry.subject for entry in _uses(request)})))


async def versions(request: Request) -> Response:
    found = [{"subject": entry.subject, "version": entry.version} for entry in _uses(request)]
    return answer(request, page(request, found))


def _document(request: Request, number: int) -> dict[str, Any]:
    state = service(request).state
    content = state.content(number)
    document = {**content.document(), "guid": content.guid}
    document["schema"] = service(request).text(content, request.query_params.get("format"))
    if flag(request, "fetchMaxId"):
        document["maxId"] = state.highest_id
    return document


def _uses(request: Request) -> list[Any]:
    number, state = _readable(request, _id(request)), service(request).state
    wanted = request.query_params.get("subject")
    found = state.uses(number, deleted=flag(request, "deleted"))
    may_read = access(request).may_read
    return [entry for entry in found if (not wanted or entry.subject == wanted) and may_read(entry.subject)]


def _readable(request: Request, number: int) -> int:
    """The same number. A schema may be read by whoever may read one of the subjects that use it."""
    state = service(request).state
    state.content(number)  # 40403 where there is none
    subjects = sorted({entry.subject for entry in state.uses(number, deleted=True)})
    if not any(access(request).may_read(each) for each in subjects):
        raise errors.forbidden(f"schema {number} belongs to subjects that you may not read")
    return number


def _id(request: Request) -> int:
    written = request.path_params["id"]
    if not written.lstrip("-").isdecimal():
        raise errors.RegistryError(404, 404, "HTTP 404 Not Found")
    return int(written)


ROUTES = [
    Route("/schemas", everything),
    Route("/schemas/types", types),
    Route("/schemas/ids/{id}", by_id),
    Route("/schemas/ids/{id}/schema", text),
    Route("/schemas/ids/{id}/subjects", subjects),
    Route("/schemas/ids/{id}/versions", versions),
    Route("/schemas/guids/{guid}", by_guid),
]
