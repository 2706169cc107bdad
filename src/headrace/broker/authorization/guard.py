"""What stands before a handler where an authorizer is configured, so that handlers know nothing of rights.

A guard looks at a request and says what may be served: all of it, none of it, or a part. For none it gives
the response that says so. For a part it gives the request to serve, and adds the denied rest to the response.
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
    complete: Callable[[Any], Message]
    """Adds what was denied to the response."""


ALLOWED: Final = None
Verdict = Partly | Message | None
"""ALLOWED, the response that denies everything, or a part."""

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
    if verdict is ALLOWED:
        return api.handle(context, request, call)
    if isinstance(verdict, Message):
        return verdict
    assert isinstance(verdict, Partly)
    served = api.handle(context, verdict.request, call)
    if isinstance(served, Message):
        return verdict.complete(served)
    return _completed(served, verdict.complete)


async def _completed(served: Awaitable[Message], complete: Callable[[Any], Message]) -> Message:
    return complete(await served)
