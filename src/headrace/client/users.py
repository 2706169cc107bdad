"""Users with SCRAM credentials, over the wire (KIP-554).

A password never leaves this process: the broker gets it salted and hashed. Whoever reads that on the way can
log in with it all the same, so the connection has to be encrypted.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Final, NamedTuple

from headrace.client.agreement import until_all_know
from headrace.client.cluster import Cluster
from headrace.client.refusals import refusal
from headrace.config.secret import Secret
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from headrace.protocol.messages.alter_user_scram_credentials_response import AlterUserScramCredentialsResponse
from headrace.protocol.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from headrace.protocol.messages.describe_user_scram_credentials_response import (
    DescribeUserScramCredentialsResponse,
)
from headrace.security.scram_credential import (
    DEFAULT_ITERATIONS,
    DEFAULT_SALT_BYTES,
    ScramMechanism,
    salted_password,
)

_MECHANISMS: Final = {each.wire_type: each for each in ScramMechanism}
PASSWORD_BYTES: Final = 24


class User(NamedTuple):
    name: str
    iterations: dict[ScramMechanism, int]
    """By the mechanisms that the user can log in with."""


def new_password() -> Secret:
    """Letters, digits, `-` and `_`: it stands in any file without quotes."""
    return Secret(secrets.token_urlsafe(PASSWORD_BYTES))


async def list_users(cluster: Cluster) -> list[User]:
    return sorted(await cluster.retried(lambda: _described(cluster, None)))


async def find_user(cluster: Cluster, name: str) -> User | None:
    found = await cluster.retried(lambda: _described(cluster, name))
    return found[0] if found else None


async def set_password(
    cluster: Cluster,
    name: str,
    mechanism: ScramMechanism,
    password: Secret,
    *,
    iterations: int = DEFAULT_ITERATIONS,
) -> None:
    """Also makes the user, if there is none."""
    salt = secrets.token_bytes(DEFAULT_SALT_BYTES)
    upsertion = ScramCredentialUpsertion(
        name=name,
        mechanism=mechanism.wire_type,
        iterations=iterations,
        salt=salt,
        salted_password=salted_password(mechanism, password.reveal(), salt, iterations),
    )
    await _alter(cluster, name, AlterUserScramCredentialsRequest(upsertions=[upsertion]))

    async def knows(broker_id: int) -> bool:
        found = await _described(cluster, name, broker_id)
        return bool(found) and found[0].iterations.get(mechanism) == iterations

    await until_all_know(cluster, knows)


async def delete_credentials(cluster: Cluster, name: str, mechanisms: Sequence[ScramMechanism]) -> None:
    """One request for each: Kafka takes no second change of a user in one request."""
    for mechanism in mechanisms:
        deletion = ScramCredentialDeletion(name=name, mechanism=mechanism.wire_type)
        await _alter(cluster, name, AlterUserScramCredentialsRequest(deletions=[deletion]))

    async def knows(broker_id: int) -> bool:
        found = await _described(cluster, name, broker_id)
        return not found or not any(each in found[0].iterations for each in mechanisms)

    await until_all_know(cluster, knows)


async def _alter(cluster: Cluster, name: str, request: AlterUserScramCredentialsRequest) -> None:
    async def attempt() -> None:
        reply = await cluster.ask_controller(request, AlterUserScramCredentialsResponse)
        for result in reply.results:
            if result.error_code:
                raise refusal(result.error_code, f"user {name}", result.error_message)

    await cluster.retried(attempt)


async def _described(cluster: Cluster, name: str | None, broker_id: int | None = None) -> list[User]:
    """Empty for a name that has no credential. Without a broker, the controller is asked: it knows first."""
    request = DescribeUserScramCredentialsRequest(users=None if name is None else [UserName(name=name)])
    if broker_id is None:
        reply = await cluster.ask_controller(request, DescribeUserScramCredentialsResponse)
    else:
        reply = await cluster.ask_broker(broker_id, request, DescribeUserScramCredentialsResponse)
    subject = "users" if name is None else f"user {name}"
    if reply.error_code:
        raise refusal(reply.error_code, subject, reply.error_message)
    found = []
    for result in reply.results:
        if result.error_code == ErrorCode.RESOURCE_NOT_FOUND:
            continue
        if result.error_code:
            raise refusal(result.error_code, subject, result.error_message)
        known = {
            _MECHANISMS[info.mechanism]: info.iterations
            for info in result.credential_infos
            if info.mechanism in _MECHANISMS
        }
        found.append(User(result.user, known))
    return found
