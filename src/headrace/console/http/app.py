"""The console as an ASGI application."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from importlib.resources import files
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from headrace.client import errors as client_errors
from headrace.client.errors import ClientFailure
from headrace.console.access.asking import AccessSource
from headrace.console.changes.making import Changes
from headrace.console.http import access as access_pages
from headrace.console.http import changes, journal, producing, records, tail
from headrace.console.http import services as service_pages
from headrace.console.http.acting import NotAllowed
from headrace.console.http.answers import Message, Watch, answer
from headrace.console.http.shield import Shield
from headrace.console.http.sights import Sight, sight_of
from headrace.console.http.turns import Gone, TooManyWait, Turns
from headrace.console.pages.audit import audit, windows
from headrace.console.pages.brokers import brokers
from headrace.console.pages.groups import group, groups
from headrace.console.pages.moves import moves
from headrace.console.pages.now import now
from headrace.console.pages.page import NotThere, Page, Scene
from headrace.console.pages.pipeline import pipeline
from headrace.console.pages.tier import tier, tier_topic
from headrace.console.pages.topic import topic
from headrace.console.pages.topics import topics
from headrace.console.pages.transactions import transactions
from headrace.console.records.search import Refused
from headrace.console.services.services import Services
from headrace.protocol.error_codes import ErrorCode

log = logging.getLogger("headrace.console")

_STATIC: Final = {
    "console.css": "text/css; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_DENIED: Final = frozenset(
    (
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    )
)
_FIRST_LOOK = Message("Looking for the first time", "The page comes as soon as the cluster has answered.")


class PathAsSent:
    """Routes are matched on the path as it was sent: in a group's name a slash is sent as %2F."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope.get("raw_path"):
            path = scope["raw_path"].partition(b"?")[0].decode("latin-1")
            # Pages link to themselves, and two slashes would begin the name of another host.
            scope = {**scope, "path": "/" + path.strip("/")}
        await self._app(scope, receive, send)


Show = Callable[[Scene], Page]
ShowOne = Callable[[Scene, str], Page]


def shown(show: Show) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return _shown(request, show)

    return endpoint


def shown_one(show: ShowOne) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        name = records.named(request, "name")
        return _shown(request, lambda scene: show(scene, name))

    return endpoint


def _shown(request: Request, show: Show) -> Response:
    watch: Watch = request.app.state.watch
    sight = sight_of(request)
    seen, failing = watch.snapshot, watch.failing
    if seen is None:
        return first_look(request)
    mine = sight.of(seen)
    page = show(Scene(mine, sight.history(seen, watch.history), request.query_params))
    since = "" if failing is None else str(failing.since_ms)
    return answer(request, page, mine, failing, tag=sight.etag(seen.number, since))


def first_look(request: Request) -> Response:
    failing = request.app.state.watch.failing
    message = _FIRST_LOOK
    if failing is not None:
        message = Message("No broker answers", failing.reason)
    page = Page("message.html", message.headline, "", message)
    answered = answer(request, page, None, None, status=503)
    answered.headers["retry-after"] = "1"
    if failing is None:
        answered.headers["refresh"] = "1"
    return answered


async def static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _STATIC:
        raise HTTPException(404)
    content = files("headrace.console").joinpath("static", name).read_bytes()
    caching = "public, max-age=31536000, immutable" if "v" in request.query_params else "no-cache"
    return Response(content, headers={"cache-control": caching}, media_type=_STATIC[name])


async def healthz(_: Request) -> Response:
    return Response("ok\n", media_type="text/plain")


def _instead(request: Request, status: int, headline: str, sentence: str, back: str = "/") -> Response:
    watch: Watch = request.app.state.watch
    seen = watch.snapshot
    message = Message(headline, sentence, back, "Go back" if back != "/" else "See how the cluster is")
    mine = None if seen is None else sight_of(request).of(seen)
    return answer(request, Page("message.html", headline, "", message), mine, None, status=status)


async def not_there(request: Request, error: Exception) -> Response:
    return _instead(request, 404, "Not there", str(error))


async def not_served(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        return _instead(request, 404, "Not there", "No page has this address.")
    return _instead(request, error.status_code, "That does not work here", error.detail)


async def refused(request: Request, error: Exception) -> Response:
    return _instead(request, 400, "That cannot be looked for", str(error), request.scope["path"])


async def too_many(request: Request, error: Exception) -> Response:
    answered = _instead(request, 503, "Too much at once", str(error), request.scope["path"])
    answered.headers["retry-after"] = "5"
    return answered


async def gone(_: Request, __: Exception) -> Response:
    return Response(status_code=204)  # nobody gets it


async def not_allowed(request: Request, error: Exception) -> Response:
    return _instead(request, 403, "Not from here", str(error))


async def unanswered(request: Request, error: Exception) -> Response:
    assert isinstance(error, ClientFailure)
    if isinstance(error, client_errors.Refused) and error.code in _DENIED:
        return _instead(request, 403, "You may not", _sentence(error), request.scope["path"])
    return _instead(request, 502, "The brokers do not give it", _sentence(error), request.scope["path"])


async def not_possible(request: Request, error: Exception) -> Response:
    assert isinstance(error, changes.NotPossible)
    return _instead(request, 409, "That cannot be done", _sentence(error.reason), error.back)


def _sentence(error: ClientFailure) -> str:
    return f"{error}. {error.hint[:1].upper()}{error.hint[1:]}." if error.hint else f"{error}."


async def broken(request: Request, error: Exception) -> Response:
    log.error("a page failed", extra={"path": request.url.path}, exc_info=error)
    return Response("This page failed. The log of the console says why.\n", 500, media_type="text/plain")


ROUTES: Final = [
    Route("/", shown(now)),
    Route("/topics", shown(topics)),
    Route("/topics/{name}", shown_one(topic)),
    *records.ROUTES,
    *tail.ROUTES,
    Route("/groups", shown(groups)),
    Route("/groups/{name}", shown_one(group)),
    Route("/brokers", shown(brokers)),
    Route("/moves", shown(moves)),
    Route("/tier", shown(tier)),
    Route("/tier/{name}", shown_one(tier_topic)),
    Route("/transactions", shown(transactions)),
    Route("/audit", shown(audit)),
    Route("/audit/{name}", shown_one(windows)),
    Route("/pipeline", shown(pipeline)),
    *service_pages.ROUTES,
    *access_pages.ROUTES,
    *journal.ROUTES,
    Route("/static/{name}", static),
    Route("/healthz", healthz),
]


def application(
    watch: Watch,
    source: records.Source,
    *,
    hosts: Iterable[str] = (),
    guard: Callable[[ASGIApp], ASGIApp] | None = None,
    making: Changes | None = None,
    access: AccessSource | None = None,
    services: Services | None = None,
    tails: tail.Tails | None = None,
) -> ASGIApp:
    """Without a guard everybody sees what the console itself may see. `making`: may change what they may."""
    app = Starlette(
        routes=ROUTES if making is None else [*ROUTES, *changes.ROUTES, *producing.ROUTES],
        exception_handlers={
            NotThere: not_there,
            Refused: refused,
            TooManyWait: too_many,
            Gone: gone,
            NotAllowed: not_allowed,
            changes.NotPossible: not_possible,
            ClientFailure: unanswered,
            HTTPException: not_served,
            Exception: broken,
        },
    )
    app.state.watch = watch
    app.state.source = source
    app.state.access = access or AccessSource(source.connect)
    app.state.services = services or Services()
    app.state.tails = tails or tail.Tails()
    app.state.turns = Turns()
    app.state.changes = making
    app.state.own_security = making.security if making is not None and guard is None else None
    app.state.sight = None if guard is not None else Sight.unlimited()
    served: ASGIApp = PathAsSent(app)
    return Shield(served if guard is None else guard(served), hosts)
