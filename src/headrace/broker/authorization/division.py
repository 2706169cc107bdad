"""Divides what a request lists, or an answer shows, into what is allowed and what is not.

Each entry is asked about once. A decision that is not known yet takes microseconds, and a client may name a
hundred thousand things: many of them are looked at in slices of the loop (broker/runtime/turns.py).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from headrace.broker.authorization.guard import ALLOWED, Decided, Guard, Partly, Verdict
from headrace.broker.requests.api import Call
from headrace.broker.requests.context import RequestContext
from headrace.protocol.message import Message, Structure
from headrace.security.acl import Operation, ResourceType
from headrace.security.rights import Rights

T = TypeVar("T")

AT_ONCE: Final = 500
"""So many entries are looked at in one go."""


def divide(
    context: RequestContext,
    entries: Sequence[T],
    is_allowed: Callable[[T], bool],
    when_denied: Callable[[list[T], list[T]], Decided],
    otherwise: Decided = ALLOWED,
) -> Verdict:
    """`otherwise` if every entry is allowed; else what `when_denied` makes of the allowed and the denied."""
    if len(entries) > AT_ONCE:
        return _divide_in_turns(context, entries, is_allowed, when_denied, otherwise)
    for at, entry in enumerate(entries):
        if not is_allowed(entry):
            allowed, denied = list(entries[:at]), [entry]
            for other in entries[at + 1 :]:
                (allowed if is_allowed(other) else denied).append(other)
            return when_denied(allowed, denied)
    return otherwise


async def _divide_in_turns(
    context: RequestContext,
    entries: Sequence[T],
    is_allowed: Callable[[T], bool],
    when_denied: Callable[[list[T], list[T]], Decided],
    otherwise: Decided,
) -> Decided:
    turns = context.runtime.turns
    allowed: list[T] = []
    denied: list[T] = []
    for entry in entries:
        if turns.is_over:
            await turns.next()
        (allowed if is_allowed(entry) else denied).append(entry)
    return when_denied(allowed, denied) if denied else otherwise


async def keep(context: RequestContext, rows: Iterable[T], is_visible: Callable[[T], bool]) -> list[T]:
    """Those rows of an answer that may be seen."""
    turns = context.runtime.turns
    kept: list[T] = []
    for row in rows:
        if turns.is_over:
            await turns.next()
        if is_visible(row):
            kept.append(row)
    return kept


class Entries(NamedTuple):
    """How an API lists what is asked for, and how it answers an entry that is denied."""

    asked: str
    """The list of the request."""
    name: Callable[[Any], str]
    """The resource that an entry is about."""
    response: type[Message]
    answered: str
    """The list of the response."""
    refuse: Callable[[Any], Structure]
    answered_name: Callable[[Any], str] | None = None
    """Of a row of the response. If given, rows stand in the order of the request, where Kafka has them so.
    It has most lists in no order at all."""


def arrange(rows: list[Any], asked: Iterable[str], name: Callable[[Any], str]) -> None:
    """Puts the rows of a response into the order in which their names were asked for."""
    order = {each: at for at, each in enumerate(asked)}
    rows.sort(key=lambda row: order[name(row)])


def each(operation: Operation, resource_type: ResourceType, entries: Entries) -> Guard:
    """A guard that asks for one right on each entry."""
    name = entries.name

    def guard(context: RequestContext, rights: Rights, request: Any, _call: Call) -> Verdict:
        return divide(
            context,
            getattr(request, entries.asked),
            lambda entry: rights.allows(operation, resource_type, name(entry)),
            lambda allowed, denied: without(request, entries, allowed, denied),
        )

    return guard


def without(
    request: Message,
    entries: Entries,
    allowed: list[Any],
    denied: list[Any],
    adapt: Callable[[Any], Message | Awaitable[Message]] | None = None,
) -> Decided:
    """Serve the allowed entries, if there are any, and answer each denied one once. `adapt` changes what was
    served before the denied entries are added.

    No handler ever sees a list that has become empty: in some requests that asks for everything.
    """
    asked = getattr(request, entries.asked)
    refused = [entries.refuse(entry) for entry in {entries.name(entry): entry for entry in denied}.values()]
    if not allowed:
        return entries.response(**{entries.answered: refused})
    setattr(request, entries.asked, allowed)

    def add(response: Message) -> Message:
        if not getattr(response, "error_code", 0):  # one that is refused as a whole says only that
            rows = getattr(response, entries.answered)
            rows.extend(refused)
            if entries.answered_name is not None:
                arrange(rows, map(entries.name, asked), entries.answered_name)
        return response

    if adapt is None:
        return Partly(request, add)

    async def add_later(adapted: Awaitable[Message]) -> Message:
        return add(await adapted)

    def adapt_and_add(response: Message) -> Message | Awaitable[Message]:
        adapted = adapt(response)
        return add(adapted) if isinstance(adapted, Message) else add_later(adapted)

    return Partly(request, adapt_and_add)
