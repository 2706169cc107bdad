"""Changes: a form, its plan, and the yes. Without --allow-changes none of these addresses is there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from headrace.client.configs import ConfigEntry, ConfigSource
from headrace.client.errors import ClientFailure, ConnectionLost, NotTrusted, TimedOut, Unreachable
from headrace.console.changes.groups import TARGETS, plan_reset
from headrace.console.changes.leaders import plan_cancellation, plan_election
from headrace.console.changes.making import Actor, Changes, NotAgreed, Yes
from headrace.console.changes.planned import Line, Plan, Planned, Shift
from headrace.console.changes.topics import brokers_own, plan_deletion, plan_settings
from headrace.console.http.acting import NotAllowed, actor_of, changes_of
from headrace.console.http.answers import Watch, answer, wants_json
from headrace.console.http.records import named
from headrace.console.http.sights import sight_of
from headrace.console.http.turns import Gone
from headrace.console.pages.groups import group
from headrace.console.pages.page import NotThere, Page, Scene
from headrace.console.pages.topic import topic_in
from headrace.observe.history import History
from headrace.observe.snapshot import Snapshot

MOST_BYTES: Final = 4 * 1024 * 1024
"""Of a form: the offsets of a group with 50,000 partitions."""
MOST_FIELDS: Final = 1000
"""Of a form: settings of a topic are some dozens."""
CONFIRMATION: Final = "confirmation"
TYPED: Final = "typed"
_FORM: Final = "application/x-www-form-urlencoded"


class PlanView(NamedTuple):
    title: str
    said: str
    """Why nothing was changed so far; empty where nobody has said yes."""
    lines: Sequence[Line]
    shifts: Sequence[Shift]
    notes: Sequence[str]
    refused: Sequence[str]
    commands: Sequence[str]
    principal: str
    typed: str
    confirmation: str
    """Empty where there is nothing to say yes to."""
    fields: Sequence[tuple[str, str]]
    shown: Sequence[tuple[str, str]]
    adds: bool
    back: str


class Setting(NamedTuple):
    name: str
    value: str
    """What is set for the topic itself; empty where nothing is."""
    effective: str
    source: str
    documentation: str


class SettingsView(NamedTuple):
    name: str
    partitions: int
    mine: Sequence[Setting]
    others: Sequence[Setting]


class ResetView(NamedTuple):
    name: str
    members: int
    state: str
    topics: Sequence[str]
    targets: Mapping[str, str]


class NotPossible(Exception):
    """No plan can be made of what was asked for. In the brokers' own words, if it was they who said so."""

    def __init__(self, reason: ClientFailure, back: str) -> None:
        super().__init__(str(reason))
        self.reason = reason
        self.back = back


Check = Callable[[Request, str, Mapping[str, str]], None]
"""Raises NotAllowed for what this viewer is not to be shown a plan of. The brokers decide in any case."""


def planned(
    plan: Plan, back: Callable[[str], str], check: Check = lambda *_: None, *, by_post: bool = False
) -> Callable[[Request], Awaitable[Response]]:
    """`by_post`: what is in the form is not for an address, so a form without a yes asks for its plan."""

    async def endpoint(request: Request) -> Response:
        changes, actor, name = making_of(request), actor_of(request), named(request, "name")
        path = request.scope["path"]
        try:
            fields = await _fields(request)
            check(request, name, fields)
            if request.method != "POST" or (by_post and CONFIRMATION not in fields):
                found = await changes.plan(actor, plan, name, fields)
                return _plan_page(request, changes, actor, found, back(path))
            yes = Yes(fields.pop(CONFIRMATION, ""), fields.pop(TYPED, ""))
            number = await changes.make(actor, path, plan, name, fields, yes)
        except NotAgreed as error:
            return _plan_page(request, changes, actor, error.planned, back(path), said=str(error), status=409)
        except (ConnectionLost, NotTrusted, TimedOut, Unreachable):
            raise
        except ClientFailure as error:
            raise NotPossible(error, back(path)) from None
        suffix = "?format=json" if wants_json(request) else ""
        return RedirectResponse(f"/changes/{number}{suffix}", 303, {"cache-control": "no-store"})

    return endpoint


def _plan_page(
    request: Request,
    changes: Changes,
    actor: Actor,
    found: Planned,
    back: str,
    *,
    said: str = "",
    status: int = 200,
) -> Response:
    can_be = not found.refused and not found.changes_nothing
    view = PlanView(
        found.title,
        said,
        found.lines,
        found.shifts,
        found.notes,
        found.refused,
        found.commands,
        actor.principal,
        found.typed,
        changes.question(actor, request.scope["path"], found) if can_be else "",
        found.fields,
        found.shown,
        found.adds,
        back,
    )
    return page_of(request, Page("plan.html", found.title, _menu_of(request), view), status)


def _menu_of(request: Request) -> str:
    return str(request.scope["path"]).split("/")[1]


def page_of(request: Request, page: Page, status: int = 200) -> Response:
    watch: Watch = request.app.state.watch
    seen = seen_by(request)
    return answer(request, page, seen, watch.failing, status=status, refreshes=False)


def seen_by(request: Request) -> Snapshot:
    watch: Watch = request.app.state.watch
    if watch.snapshot is None:
        raise NotThere("The first look at the cluster is under way.")
    return sight_of(request).of(watch.snapshot)


def making_of(request: Request) -> Changes:
    found = changes_of(request)
    assert found is not None, "there are no such routes without it"
    return found


async def _fields(request: Request) -> dict[str, str]:
    if request.method == "POST":
        return await _form(request)
    if len(request.query_params) > MOST_FIELDS:
        raise NotAllowed("The form has too many fields.")
    return {key: value for key, value in request.query_params.items() if key != "format"}


async def _form(request: Request) -> dict[str, str]:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise NotAllowed("A change comes from a form of this console.")
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > MOST_BYTES:
                raise NotAllowed("The form is too long.")
    except ClientDisconnect:
        raise Gone from None
    if body.count(b"&") >= MOST_FIELDS:
        raise NotAllowed("The form has too many fields.")
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))


# --- forms ---------------------------------------------------------------------------------------------


async def settings(request: Request) -> Response:
    changes, actor, name = making_of(request), actor_of(request), named(request, "name")
    found = topic_in(seen_by(request), name)
    if found.internal:
        raise NotPossible(brokers_own(name), subject_before(request.scope["path"]))
    entries = await changes.settings(actor, name)
    rows = [_setting(each) for each in entries]
    mine = [row for row, each in zip(rows, entries, strict=True) if each.source == ConfigSource.TOPIC]
    others = [row for row in rows if row not in mine]
    view = SettingsView(name, len(found.partitions), mine, others)
    return page_of(request, Page("settings.html", f"Settings of {name}", "topics", view))


def _setting(entry: ConfigEntry) -> Setting:
    is_own = entry.source == ConfigSource.TOPIC
    shown = "" if entry.sensitive else entry.value or ""
    return Setting(entry.name, shown if is_own else "", shown, entry.source_name, entry.documentation or "")


async def reset(request: Request) -> Response:
    actor_of(request)
    name = named(request, "name")
    found = group(Scene(seen_by(request), History(), {}), name).view
    topics = sorted({row.partition.topic for row in found.rails})
    view = ResetView(name, found.members, found.state, topics, TARGETS)
    return page_of(request, Page("reset.html", f"Reset {name}", "groups", view))


def form_before(path: str) -> str:
    return path.removesuffix("/plan")


def subject_before(path: str) -> str:
    return path.rpartition("/")[0]


BOTH: Final = ["GET", "POST"]
ROUTES: Final = [
    Route("/topics/{name}/settings", settings),
    Route("/topics/{name}/settings/plan", planned(plan_settings, form_before), methods=BOTH),
    Route("/topics/{name}/deletion", planned(plan_deletion, subject_before), methods=BOTH),
    Route("/topics/{name}/leaders", planned(plan_election, subject_before), methods=BOTH),
    Route("/topics/{name}/moves", planned(plan_cancellation, lambda _: "/moves"), methods=BOTH),
    Route("/groups/{name}/reset", reset),
    Route("/groups/{name}/reset/plan", planned(plan_reset, form_before), methods=BOTH),
]
