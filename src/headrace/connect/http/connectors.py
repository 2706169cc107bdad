"""/connectors and all below it."""

from __future__ import annotations

import time
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headrace.connect.config_records import Target
from headrace.connect.errors import ConnectError, bad_request
from headrace.connect.http.wire import answer, document, flag, name, nothing, parts, task

_INITIAL: Final = {"RUNNING": Target.STARTED, "PAUSED": Target.PAUSED, "STOPPED": Target.STOPPED}
_CREATE: Final = ("name", "config", "initial_state")


async def every(request: Request) -> Response:
    answers = parts(request).service.answers
    if "expand" in request.query_params:
        return answer(answers.expanded(request.query_params.getlist("expand")))
    return answer(answers.names())


async def create(request: Request) -> Response:
    given = await document(request)
    for key in given:
        if key not in _CREATE:
            known = ", ".join(_CREATE)
            raise ConnectError(500, f'Unrecognized field "{key}": a request to create has {known}')
    config, said = given.get("config") or {}, given.get("initial_state")
    if not isinstance(config, dict):
        raise bad_request("config is a JSON object")
    if said is not None and str(said).upper() not in _INITIAL:
        raise ConnectError(500, f"initial_state is one of {', '.join(_INITIAL)}, not {said}")
    target = Target.STARTED if said is None else _INITIAL[str(said).upper()]
    connector = str(given.get("name") or "").strip()
    made = await parts(request).service.create(connector, config, target)
    return answer(made, 201, _location(request, connector))


async def info(request: Request) -> Response:
    return answer(parts(request).service.answers.info(name(request)))


async def delete(request: Request) -> Response:
    await parts(request).service.delete(name(request))
    return nothing(204)


async def config(request: Request) -> Response:
    return answer(parts(request).service.answers.config(name(request)))


async def put_config(request: Request) -> Response:
    connector = name(request)
    found, created = await parts(request).service.put(connector, await document(request))
    return answer(found, 201, _location(request, connector)) if created else answer(found)


async def patch_config(request: Request) -> Response:
    return answer(await parts(request).service.patch(name(request), await document(request)))


async def status(request: Request) -> Response:
    return answer(parts(request).service.answers.status(name(request)))


async def tasks(request: Request) -> Response:
    return answer(parts(request).service.answers.tasks(name(request)))


async def task_status(request: Request) -> Response:
    return answer(parts(request).service.answers.task_status(name(request), task(request)))


async def restart_task(request: Request) -> Response:
    await parts(request).service.restart_task(name(request), task(request))
    return nothing(204)


async def restart(request: Request) -> Response:
    include, failed = flag(request, "includeTasks"), flag(request, "onlyFailed")
    planned = await parts(request).service.restart(name(request), include_tasks=include, only_failed=failed)
    return answer(planned, 202) if include or failed else nothing(204)


async def pause(request: Request) -> Response:
    await parts(request).service.set_target(name(request), Target.PAUSED)
    return nothing(202)


async def resume(request: Request) -> Response:
    await parts(request).service.set_target(name(request), Target.STARTED)
    return nothing(202)


async def stop(request: Request) -> Response:
    await parts(request).service.set_target(name(request), Target.STOPPED)
    return nothing(204)


async def topics(request: Request) -> Response:
    return answer(parts(request).service.answers.topics(name(request)))


async def reset_topics(request: Request) -> Response:
    await parts(request).service.reset_topics(name(request), time.time_ns() // 1_000_000)
    return nothing(202)


async def offsets(request: Request) -> Response:
    return answer(await parts(request).offsets.read(name(request)))


async def alter_offsets(request: Request) -> Response:
    return answer(await parts(request).offsets.alter(name(request), await document(request)))


async def reset_offsets(request: Request) -> Response:
    return answer(await parts(request).offsets.reset(name(request)))


def _location(request: Request, connector: str) -> dict[str, str]:
    return {"location": f"{str(request.base_url).rstrip('/')}/connectors/{quote(connector)}"}


_ONE: Final = "/connectors/{name}"
ROUTES: Final = [
    Route("/connectors", every),
    Route("/connectors", create, methods=["POST"]),
    Route(_ONE, info),
    Route(_ONE, delete, methods=["DELETE"]),
    Route(f"{_ONE}/config", config),
    Route(f"{_ONE}/config", put_config, methods=["PUT"]),
    Route(f"{_ONE}/config", patch_config, methods=["PATCH"]),
    Route(f"{_ONE}/status", status),
    Route(f"{_ONE}/tasks", tasks),
    Route(f"{_ONE}/tasks/{{task}}/status", task_status),
    Route(f"{_ONE}/tasks/{{task}}/restart", restart_task, methods=["POST"]),
    Route(f"{_ONE}/restart", restart, methods=["POST"]),
    Route(f"{_ONE}/pause", pause, methods=["PUT"]),
    Route(f"{_ONE}/resume", resume, methods=["PUT"]),
    Route(f"{_ONE}/stop", stop, methods=["PUT"]),
    Route(f"{_ONE}/topics", topics),
    Route(f"{_ONE}/topics/reset", reset_topics, methods=["PUT"]),
    Route(f"{_ONE}/offsets", offsets),
    Route(f"{_ONE}/offsets", alter_offsets, methods=["PATCH"]),
    Route(f"{_ONE}/offsets", reset_offsets, methods=["DELETE"]),
]
