"""A token that is renewed, or ends earlier: what RenewDelegationToken and ExpireDelegationToken share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from headrace.broker.cluster.decision_timeouts import in_time
from headrace.broker.requests.errors import code_of
from headrace.broker.security.delegation_tokens import DelegationTokens
from headrace.controller.machine import ControllerMachine
from headrace.controller.operations import Result
from headrace.core.errors import ClientError, RequestTimedOut

if TYPE_CHECKING:
    from headrace.broker.requests.api import Call
    from headrace.broker.requests.context import RequestContext

_NEVER: Final = -1


class Changed(NamedTuple):
    error_code: int
    expiry_ms: int


Decide = Callable[[ControllerMachine, DelegationTokens, str | None, int], Result[int]]
"""With the id of the token, None if there is none with that HMAC, and the time now."""


async def change_token(context: RequestContext, call: Call, hmac: bytes, decide: Decide) -> Changed:
    now_ms = context.runtime.clock.wall_ms()
    table = context.metadata.image.tokens
    try:
        tokens = context.security.require_tokens(call.identity)
        token_id = tokens.secret.find(hmac, table.by_id, table.epoch)
        decision = context.controller.submit(lambda machine: decide(machine, tokens, token_id, now_ms))
        return Changed(0, await in_time(context.runtime, context.peers.reachability, decision))
    except (ClientError, RequestTimedOut) as error:
        return Changed(code_of(error), _NEVER)
