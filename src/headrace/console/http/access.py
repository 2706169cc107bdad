"""/access, and who may do what on a topic. The brokers are asked once for all viewers; each sees what the
brokers would tell them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headrace.console.access.asking import AccessSource
from headrace.console.access.seen import AccessSeen
from headrace.console.http.answers import Watch, answer
from headrace.console.http.records import named
from headrace.console.http.sights import sight_of
from headrace.console.pages import access
from headrace.console.pages.access_question import question
from headrace.console.pages.page import NotThere, Page
from headrace.console.pages.topic import topic_in
from headrace.observe.snapshot import Snapshot
from headrace.security.acl import ResourceType

Show = Callable[[Request, AccessSeen, Snapshot], Page]


def shown(show: Show) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        watch: Watch = request.app.state.watch
        source: AccessSource = request.app.state.access
        sight = sight_of(request)
        if watch.snapshot is None:
            raise NotThere("The first look at the cluster is under way.")
        mine = sight.of(watch.snapshot)
        seen = (await source.seen()).limited(sight.may, sight.principal)
        return answer(request, show(request, seen, mine), mine, watch.failing, refreshes=False)

    return endpoint


def _principals(request: Request, seen: AccessSeen, snapshot: Snapshot) -> Page:
    sight = sight_of(request)
    mine = access.rights_of(snapshot, sight.operations) if sight.principal else None
    return access.principals(seen, request.query_params, sight.principal, mine)


def _topic(request: Request, seen: AccessSeen, snapshot: Snapshot) -> Page:
    sight, name = sight_of(request), named(request, "name")
    topic_in(snapshot, name)
    mine = None
    if sight.principal:
        operations = sight.operations(ResourceType.TOPIC, name)
        mine = access.Right("topic", name, [each.name for each in operations])
    return access.topic_access(seen, name, mine)


ROUTES: Final = [
    Route("/access", shown(_principals)),
    Route("/access/rules", shown(lambda request, seen, _: access.rules(seen, request.query_params))),
    Route("/access/others", shown(lambda _, seen, __: access.others(seen))),
    Route(
        "/access/question",
        shown(lambda request, seen, _: question(seen, request.query_params)),
    ),
    Route(
        "/access/principals/{name}",
        shown(lambda request, seen, _: access.principal(seen, named(request, "name"))),
    ),
    Route("/topics/{name}/access", shown(_topic)),
]
