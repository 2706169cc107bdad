"""Forms of a record that is written, and of records that are copied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headrace.console.changes.records import FORMS, PLACES, TO, plan_copies, plan_record
from headrace.console.changes.topics import brokers_own
from headrace.console.http.acting import NotAllowed, actor_of
from headrace.console.http.changes import (
    BOTH,
    NotPossible,
    form_before,
    page_of,
    planned,
    seen_by,
    subject_before,
)
from headrace.console.http.records import hidden_of, named
from headrace.console.http.sights import sight_of
from headrace.console.pages.page import Page
from headrace.console.pages.topic import topic_in
from headrace.security.acl import Operation, ResourceType


class ProduceView(NamedTuple):
    name: str
    partitions: int
    forms: Mapping[str, str]


class ReplayView(NamedTuple):
    name: str
    records: str
    topics: Sequence[str]
    """Into which this viewer may write, with the topic itself first."""
    places: Mapping[str, str]


MOST_TOPICS: Final = 500
"""That a list offers. Another name is written."""


async def produce(request: Request) -> Response:
    actor_of(request)
    name = named(request, "name")
    found = topic_in(seen_by(request), name)
    _check_writing(request, name)
    if found.internal:
        raise NotPossible(brokers_own(name), subject_before(request.scope["path"]))
    view = ProduceView(name, len(found.partitions), FORMS)
    return page_of(request, Page("produce.html", f"Produce into {name}", "topics", view))


async def replay(request: Request) -> Response:
    actor_of(request)
    name = named(request, "name")
    _check_reading(request, name)
    seen = seen_by(request)
    records = ", ".join(request.query_params.getlist("record"))
    sight = sight_of(request)
    others = [
        each.name
        for each in seen.topics.values()
        if not each.internal
        and each.name != name
        and sight.may(Operation.WRITE, ResourceType.TOPIC, each.name)
    ]
    view = ReplayView(name, records, sorted(others)[:MOST_TOPICS], PLACES)
    return page_of(request, Page("replay.html", f"Copy records of {name}", "topics", view))


def _check_writing(request: Request, topic: str) -> None:
    if not sight_of(request).may(Operation.WRITE, ResourceType.TOPIC, topic):
        raise NotAllowed(f"You may not write into topic {topic}: that takes WRITE on it.")


def _check_reading(request: Request, topic: str) -> None:
    topic_in(seen_by(request), topic)
    hidden = hidden_of(request, topic)
    if hidden:
        raise NotAllowed(hidden)


def _check_copying(request: Request, topic: str, fields: Mapping[str, str]) -> None:
    _check_reading(request, topic)
    _check_writing(request, fields.get(TO, "").strip() or topic)


ROUTES: Final = [
    Route("/topics/{name}/produce", produce),
    Route(
        "/topics/{name}/produce/plan",
        planned(
            plan_record, form_before, lambda request, topic, _: _check_writing(request, topic), by_post=True
        ),
        methods=["POST"],
    ),
    Route("/topics/{name}/replay", replay),
    Route("/topics/{name}/replay/plan", planned(plan_copies, form_before, _check_copying), methods=BOTH),
]
