"""What stands before a handler where an authorizer is configured, so that handlers know nothing of rights.

A guard looks at a request and says what may be served: all of it, none of it, or a part. For none it gives
the response that says so. For a part it gives the request to serve, and completes the response with the rest,
denied. The request was read for this call alone, so a guard may take out of it what is denied.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.context import RequestContext
from headrace.core.errors import HeadraceError
from headrace.protocol.message import Message
from headrace.security.rights import Rights


class Partly(NamedTuple):
    request: Message
    """What may be served."""
    complete: Callable[[Any], Message | Awaitable[Message]]
    """Adds what was denied to the response, or leaves out of it what may not be seen."""


ALLOWED: Final = None
Decided = Partly | Message | None
"""ALLOWED, the response that denies everything, or a part."""
Verdict = Decided | Awaitable[Decided]
"""Awaitable where so much is asked for that the rights are looked up in slices."""

Guard = Callable[[RequestContext, Rights, Any, Call], Verdict]


class NotGuarded(HeadraceError):
    """An API without a row in the table is not served."""


def require_all(guards: Mapping[int, Guard], apis: Mapping[int, Api]) -> None:
    """Raises NotGuarded: nobody can add an API and forget who may use it."""
    missing = [api.key.name for key, api in apis.items() if key not in guards]
    if missing:
        raise NotGuarded(f"{', '.join(missing)}: no row in authorization/table.py says who may use it")


def authorised(
    context: RequestContext, guards: Mapping[int, Guard], api: Api, request: Message, call: Call
) -> Message | Awaitable[Message]:
    """Serve what the caller may ask for."""
    assert api.handle is not None
    rights = call.rights
    if rights is None:
        return api.handle(context, request, call)
    verdict = guards[int(api.key)](context, rights, request, call)
    if verdict is None or isinstance(verdict, (Partly, Message)):
        return _serve(context, api, request, call, verdict)
    return _serve_later(context, api, request, call, verdict)


def _serve(
    context: RequestContext, api: Api, request: Message, call: Call, decided: Decided
) -> Message | Awaitable[Message]:
    assert api.handle is not None
    if decided is ALLOWED:
        return api.handle(context, request, call)
    if isinstance(decided, Message):
        return decided
    assert isinstance(decided, Partly)
    served = api.handle(context, decided.request, call)
    if isinstance(served, Message):
        return decided.complete(served)
    return _complete_later(served, decided.complete)


async def _serve_later(
    context: RequestContext, api: Api, request: Message, call: Call, verdict: Awaitable[Decided]
) -> Message:
    served = _serve(context, api, request, call, await verdict)
    return served if isinstance(served, Message) else await served


async def _complete_later(
    served: Awaitable[Message], complete: Callable[[Any], Message | Awaitable[Message]]
) -> Message:
    completed = complete(await served)
    return completed if isinstance(completed, Message) else await completed
