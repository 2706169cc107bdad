"""/schemas and /connectors: what services beside the brokers have told. They are not asked for a page."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headrace.console.http.answers import Watch, answer
from headrace.console.http.decoding import services_of, visible_to
from headrace.console.http.records import named
from headrace.console.http.sights import sight_of
from headrace.console.pages import connectors, schemas
from headrace.console.pages.page import NotThere, Page, Scene
from headrace.console.pages.standing import CONNECT, REGISTRY, standing


def _answer(request: Request, page: Page, look: int) -> Response:
    watch: Watch = request.app.state.watch
    sight, seen, failing = sight_of(request), watch.snapshot, watch.failing
    assert seen is not None, "a scene was made of it"
    since = "" if failing is None else str(failing.since_ms)
    return answer(request, page, sight.of(seen), failing, tag=sight.etag(seen.number, look, since))


def _scene(request: Request) -> Scene:
    watch: Watch = request.app.state.watch
    if watch.snapshot is None:
        raise NotThere("The first look at the cluster is under way.")
    sight, seen = sight_of(request), watch.snapshot
    return Scene(sight.of(seen), sight.history(seen, watch.history), request.query_params)


async def list_subjects(request: Request) -> Response:
    _scene(request)
    followed, sight = services_of(request).registry, sight_of(request)
    told = None if followed is None else followed.told
    how = standing(told, REGISTRY, may_see=sight.may_see_settings())
    seen = None if told is None or told.found is None else visible_to(request, told.found)
    return _answer(request, schemas.schemas(how, seen, request.query_params), told.look if told else 0)


async def show_subject(request: Request) -> Response:
    _scene(request)
    services, sight, name = services_of(request), sight_of(request), named(request, "name")
    told = None if services.registry is None else services.registry.told
    how = standing(told, REGISTRY, may_see=sight.may_see_settings())
    if told is None or told.found is None or not how.is_known:
        raise NotThere(f"{how.headline} {how.sentence}")
    page = schemas.subject(how, visible_to(request, told.found), name, request.query_params)
    services.looks.want(name)
    return _answer(request, page, told.look)


async def list_connectors(request: Request) -> Response:
    scene = _scene(request)
    followed = services_of(request).connect
    told = None if followed is None else followed.told
    how = standing(told, CONNECT, may_see=sight_of(request).may_see_settings())
    page = connectors.connectors(how, None if told is None else told.found, scene)
    return _answer(request, page, told.look if told else 0)


async def show_connector(request: Request) -> Response:
    scene = _scene(request)
    followed, name = services_of(request).connect, named(request, "name")
    told = None if followed is None else followed.told
    how = standing(told, CONNECT, may_see=sight_of(request).may_see_settings())
    if told is None or told.found is None or not how.is_known:
        raise NotThere(f"{how.headline} {how.sentence}")
    return _answer(request, connectors.connector(how, told.found, name, scene), told.look)


ROUTES: Final = [
    Route("/schemas", list_subjects),
    Route("/schemas/{name}", show_subject),
    Route("/connectors", list_connectors),
    Route("/connectors/{name}", show_connector),
]
