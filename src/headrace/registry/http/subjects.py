"""/subjects: names, versions, registration, look-up, deletion."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from headrace.registry import deleting, errors
from headrace.registry.http.guard import access
from headrace.registry.http.wire import answer, flag, page, service, subject, submission
from headrace.registry.registering import version_number
from headrace.registry.state import Registered


async def names(request: Request) -> Response:
    prefix = request.query_params.get("subjectPrefix", "").removeprefix(":*:")
    state = service(request).state
    only_deleted = flag(request, "deletedOnly")
    found = [
        name
        for name in state.subjects(deleted=flag(request, "deleted") or only_deleted)
        if name.startswith(prefix)
        and not (only_deleted and state.versions(name))
        and access(request).may_read(name)
    ]
    return answer(request, page(request, found))


async def look_up(request: Request) -> Response:
    wanted = await submission(request)
    found = service(request).look_up(subject(request), wanted, deleted=flag(request, "deleted"))
    return answer(request, described(request, found))


async def delete_subject(request: Request) -> Response:
    name, permanent = subject(request), flag(request, "permanent")
    versions = await service(request).write(
        lambda state: deleting.delete_subject(state, name, permanent=permanent)
    )
    return answer(request, versions)


async def versions(request: Request) -> Response:
    name = subject(request)
    only_deleted = flag(request, "deletedOnly")
    found = service(request).state.versions(name, deleted=flag(request, "deleted") or only_deleted)
    if not found:
        raise errors.subject_not_found(name)
    return answer(
        request, page(request, [entry.version for entry in found if entry.deleted or not only_deleted])
    )


async def register(request: Request) -> Response:
    entry = await service(request).register(subject(request), await submission(request))
    # Not the schema: clients would keep it in place of the one that they sent, which may be in another form.
    return answer(request, {"id": entry.id, "version": entry.version, "guid": entry.content.guid})


async def version(request: Request) -> Response:
    return answer(request, described(request, _entry(request)))


async def schema(request: Request) -> Response:
    text = service(request).text(_entry(request).content, request.query_params.get("format"))
    return PlainTextResponse(text, media_type="application/json")


async def delete_version(request: Request) -> Response:
    name, permanent = subject(request), flag(request, "permanent")
    number = version_number(request.path_params["version"])
    deleted = await service(request).write(
        lambda state: deleting.delete_version(state, name, number, permanent=permanent)
    )
    return answer(request, deleted)


async def referenced_by(request: Request) -> Response:
    entry = _entry(request)
    referrers = service(request).state.referrers(entry.subject, entry.version)
    return answer(request, page(request, sorted({referrer.id for referrer in referrers})))


def described(request: Request, entry: Registered) -> dict[str, Any]:
    document = entry.document()
    document["schema"] = service(request).text(entry.content, request.query_params.get("format"))
    if entry.deleted:
        document["deleted"] = True
    return document


def _entry(request: Request) -> Registered:
    number = version_number(request.path_params["version"])
    return service(request).state.version(subject(request), number, deleted=flag(request, "deleted"))


ROUTES = [
    Route("/subjects", names),
    Route("/subjects/{subject}", look_up, methods=["POST"]),
    Route("/subjects/{subject}", delete_subject, methods=["DELETE"]),
    Route("/subjects/{subject}/versions", versions),
    Route("/subjects/{subject}/versions", register, methods=["POST"]),
    Route("/subjects/{subject}/versions/{version}", version),
    Route("/subjects/{subject}/versions/{version}", delete_version, methods=["DELETE"]),
    Route("/subjects/{subject}/versions/{version}/schema", schema),
    Route("/subjects/{subject}/versions/{version}/referencedby", referenced_by),
]
