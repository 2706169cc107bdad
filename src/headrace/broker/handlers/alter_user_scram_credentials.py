"""AlterUserScramCredentials: set and delete passwords of users (KIP-554). Version 0.

Up to 100 users are altered together.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from headrace.broker.cluster.decision_timeouts import each_in_time
from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of, text_of
from headrace.broker.requests.slices import slices
from headrace.controller.machine import ControllerMachine
from headrace.controller.operations import Result
from headrace.controller.security_operations import AlteredScramUser, ScramDeletion, ScramUpsertion
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from headrace.protocol.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

ALTERED_AT_ONCE: Final = 100
Change = ScramCredentialDeletion | ScramCredentialUpsertion


async def handle(
    context: RequestContext, request: AlterUserScramCredentialsRequest, _call: Call
) -> AlterUserScramCredentialsResponse:
    changes: dict[str, list[Change]] = {}
    asked: list[Change] = [*request.deletions, *request.upsertions]
    async for mentions in slices(context.runtime.turns, asked, 1000):
        for change in mentions:
            of_user = changes.setdefault(change.name, [])
            if len(of_user) < 2:  # the second refuses the user, whatever follows
                of_user.append(change)
    results: list[AlterUserScramCredentialsResult] = []
    async for users in slices(context.runtime.turns, list(changes), ALTERED_AT_ONCE):
        for outcome in await _alter(context, users, [each for user in users for each in changes[user]]):
            results.append(
                AlterUserScramCredentialsResult(
                    user=outcome.user,
                    error_code=code_of(outcome.error),
                    error_message=text_of(outcome.error),
                )
            )
    return AlterUserScramCredentialsResponse(results=results)


async def _alter(
    context: RequestContext, users: Sequence[str], changes: Sequence[Change]
) -> list[AlteredScramUser]:
    return await each_in_time(
        context.runtime,
        context.peers.reachability,
        context.controller.submit(partial(_decide, changes)),
        lambda error: [AlteredScramUser(user, error) for user in users],
    )


def _decide(changes: Sequence[Change], machine: ControllerMachine) -> Result[list[AlteredScramUser]]:
    deletions = [
        ScramDeletion(each.name, each.mechanism)
        for each in changes
        if isinstance(each, ScramCredentialDeletion)
    ]
    upsertions = [
        ScramUpsertion(each.name, each.mechanism, each.iterations, each.salt, each.salted_password)
        for each in changes
        if isinstance(each, ScramCredentialUpsertion)
    ]
    return machine.alter_scram_credentials(deletions, upsertions)


API: Final = Api(
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 0, AlterUserScramCredentialsRequest, handle, at_controller=True
)
