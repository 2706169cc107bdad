"""/changes: what was changed, by this console and as far as looks at the cluster can tell."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headrace.console.changes.journal import Journal
from headrace.console.http.acting import changes_of, principal_of
from headrace.console.http.answers import Watch, answer
from headrace.console.http.records import number_of
from headrace.console.http.sights import sight_of
from headrace.console.pages.changes import Viewer, change, changes
from headrace.console.pages.page import NotThere


async def list_changes(request: Request) -> Response:
    watch: Watch = request.app.state.watch
    seen = watch.snapshot
    if seen is None:
        raise NotThere("The first look at the cluster is under way.")
    mine = sight_of(request).of(seen)
    page = changes(_viewer(request), _journal(request), watch.changes)
    return answer(request, page, mine, watch.failing)


async def show_change(request: Request) -> Response:
    watch: Watch = request.app.state.watch
    page = change(_viewer(request), _journal(request), number_of(request, "number"))
    mine = None if watch.snapshot is None else sight_of(request).of(watch.snapshot)
    return answer(request, page, mine, watch.failing, refreshes=page.view.ended_ms is None)


def _viewer(request: Request) -> Viewer:
    return Viewer(principal_of(request), sight_of(request).may)


def _journal(request: Request) -> Journal | None:
    found = changes_of(request)
    return None if found is None else found.journal


ROUTES: Final = [Route("/changes", list_changes), Route("/changes/{number}", show_change)]
