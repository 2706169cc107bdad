"""A page as HTML or as JSON, with the frame around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from headrace import __version__
from headrace.console.document import document
from headrace.console.http.acting import Offers, changes_of, principal_of
from headrace.console.pages.now import word_of
from headrace.console.pages.page import Page
from headrace.console.rendering import link, render
from headrace.console.words import clock, visible
from headrace.observe.history import History
from headrace.observe.metadata_changes import MetadataChange
from headrace.observe.poller import Failing
from headrace.observe.snapshot import Snapshot

MENU: Final = (
    ("now", "Now", "/"),
    ("topics", "Topics", "/topics"),
    ("groups", "Groups", "/groups"),
    ("brokers", "Brokers", "/brokers"),
    ("moves", "Moves", "/moves"),
    ("tier", "Tier", "/tier"),
    ("transactions", "Transactions", "/transactions"),
    ("audit", "Audit", "/audit"),
    ("pipeline", "Pipeline", "/pipeline"),
    ("connectors", "Connectors", "/connectors"),
    ("schemas", "Schemas", "/schemas"),
    ("access", "Access", "/access"),
    ("changes", "Changes", "/changes"),
)
REFRESH_SECONDS: Final = 5
_OF_A_PATH: Final = "/%~!$&'()*+,;=:@"
"""Left as they are. Browsers take a backslash for a slash, and two slashes for the name of another host."""
STALE_MS: Final = 60_000


class Watch(Protocol):
    """What looks at the cluster, for all viewers."""

    @property
    def snapshot(self) -> Snapshot | None: ...

    @property
    def failing(self) -> Failing | None: ...

    @property
    def history(self) -> History: ...

    @property
    def changes(self) -> Sequence[MetadataChange]: ...


class Message:
    """Instead of a page."""

    def __init__(self, headline: str, sentence: str, path: str = "", path_name: str = "") -> None:
        self.headline, self.sentence, self.path, self.path_name = headline, sentence, path, path_name


def wants_json(request: Request) -> bool:
    if "format" in request.query_params:
        return request.query_params["format"] == "json"
    accepted = request.headers.get("accept", "")
    return "application/json" in accepted and "text/html" not in accepted


def answer(
    request: Request,
    page: Page,
    seen: Snapshot | None,
    failing: Failing | None,
    *,
    status: int = 200,
    refreshes: bool = True,
    tag: str = "",
) -> Response:
    headers = {"cache-control": "no-store"}
    if tag:
        headers["etag"] = tag
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
    if wants_json(request):
        return _as_json(page, seen, failing, status, headers)
    return Response(
        render(page.template, _values(request, page, seen, failing, refreshes=refreshes and status == 200)),
        status,
        headers,
        "text/html; charset=utf-8",
    )


def _as_json(
    page: Page, seen: Snapshot | None, failing: Failing | None, status: int, headers: dict[str, str]
) -> Response:
    content = {
        "page": page.here,
        "as_of_ms": None if seen is None else seen.at_ms,
        "look": None if seen is None else seen.number,
        "failing": None if failing is None else document(failing),
        **(document(page.view) if isinstance(page.view, tuple) else vars(page.view)),
    }
    return JSONResponse(content, status, headers)


def _values(
    request: Request, page: Page, seen: Snapshot | None, failing: Failing | None, *, refreshes: bool
) -> dict[str, Any]:
    query = {name: value for name, value in request.query_params.items() if name != "format"}
    path = request.scope["path"]
    return {
        "title": visible(page.title),
        "here": page.here,
        "menu": MENU,
        "view": page.view,
        "query": _Query(query),
        "version": __version__,
        "word": None if seen is None else word_of(seen),
        "failing": failing,
        "as_of": 0 if seen is None else seen.at_ms,
        "standing": _standing(seen),
        "refresh_seconds": REFRESH_SECONDS if refreshes else 0,
        "json_path": link(quote(path, safe=_OF_A_PATH), {**query, "format": "json"})
        if seen is not None
        else "",
        "path": path,
        "offers": Offers(request),
        "footing": f"Headrace {__version__}, {_mode(request)}. All times are UTC",
    }


def _mode(request: Request) -> str:
    if changes_of(request) is None:
        return "read-only"
    return f"changes are made as {visible(principal_of(request)) or 'nobody: log in with a password'}"


class _Query(dict[str, str]):
    """For templates: what is not in the address is empty."""

    def __getattr__(self, name: str) -> str:
        return self.get(name, "")


def _standing(seen: Snapshot | None) -> str:
    if seen is None:
        return "The first look is under way."
    name = seen.view.cluster_id or "this cluster"
    return f"cluster {visible(name)}, as of {clock(seen.at_ms)} UTC"
