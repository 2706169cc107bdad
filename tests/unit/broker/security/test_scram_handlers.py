from __future__ import annotations

from headrace.broker.handlers.alter_user_scram_credentials import ALTERED_AT_ONCE
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
from headrace.protocol.messages.envelope_request import EnvelopeRequest
from tests.unit.broker.security.controller_context import Server


def upsertion(user: str, mechanism: int = 1, iterations: int = 4096) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=user,
        mechanism=mechanism,
        iterations=iterations,
        salt=b"0123456789abcdef",
        salted_password=b"CANARY00" * (4 * mechanism),
    )


async def alter(
    server: Server, *upsertions: ScramCredentialUpsertion, deletions: list[tuple[str, int]] | None = None
) -> dict[str, int]:
    request = AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion(name=name, mechanism=kind) for name, kind in deletions or []],
        upsertions=list(upsertions),
    )
    assert "CANARY" not in repr(request) + repr(EnvelopeRequest(request_data=request.to_bytes(0)))
    answer = await server.ask(request, AlterUserScramCredentialsResponse)
    assert len({result.user for result in answer.results}) == len(answer.results)
    return {result.user: result.error_code for result in answer.results}


async def describe(server: Server, users: list[str] | None) -> DescribeUserScramCredentialsResponse:
    names = None if users is None else [UserName(name=user) for user in users]
    return await server.ask(
        DescribeUserScramCredentialsRequest(users=names), DescribeUserScramCredentialsResponse
    )


async def test_credentials_are_set_described_and_deleted() -> None:
    server = Server()
    assert await alter(server, upsertion("alice"), upsertion("bob", 2, 8192)) == {"alice": 0, "bob": 0}
    assert await alter(server, upsertion("alice", 2)) == {"alice": 0}
    nobody_named: list[str] = []
    for everybody in (None, nobody_named):
        answer = await describe(server, everybody)
        infos = {
            result.user: {(info.mechanism, info.iterations) for info in result.credential_infos}
            for result in answer.results
        }
        assert infos == {"alice": {(1, 4096), (2, 4096)}, "bob": {(2, 8192)}}
    assert await alter(server, deletions=[("alice", 1), ("bob", 1)]) == {
        "alice": 0,
        "bob": ErrorCode.RESOURCE_NOT_FOUND,
    }
    (alice,) = (await describe(server, ["alice"])).results
    assert [info.mechanism for info in alice.credential_infos] == [2]


async def test_each_user_has_one_answer() -> None:
    server = Server()
    await alter(server, upsertion("alice"))
    codes = await alter(
        server,
        upsertion("alice"),
        upsertion("twice"),
        upsertion("twice", 2),
        upsertion("weak", iterations=1),
        upsertion(""),
        upsertion("odd", 3),
        upsertion("bob"),
        deletions=[("alice", 1), ("gone", 1)],
    )
    assert codes == {"alice": 92, "twice": 92, "weak": 93, "": 93, "odd": 33, "gone": 91, "bob": 0}
    assert sorted(server.cluster.image.scram.users()) == ["alice", "bob"]


async def test_described_are_those_who_were_asked_for() -> None:
    server = Server()
    await alter(server, upsertion("alice"), upsertion("bob"))
    answer = await describe(server, ["alice", "nobody", "bob", "bob", "bob"])
    assert {result.user: result.error_code for result in answer.results} == {
        "alice": 0,
        "nobody": ErrorCode.RESOURCE_NOT_FOUND,
        "bob": ErrorCode.DUPLICATE_RESOURCE,
    }
    assert "CANARY" not in repr(answer)


async def test_many_users_are_altered_in_slices_and_who_is_named_twice_is_refused_wherever_it_is() -> None:
    server = Server()
    users = [f"user-{n}" for n in range(3 * ALTERED_AT_ONCE)]
    asked = [upsertion(user) for user in (*users, "user-0", "user-0")]
    codes = await alter(server, *asked)
    assert codes == {user: 92 if user == "user-0" else 0 for user in users}
    assert max(len(commit) for commit in server.controller.commits) <= ALTERED_AT_ONCE
    assert len(server.cluster.image.scram) == len(users) - 1
    assert len((await describe(server, None)).results) == len(users) - 1
    assert len((await describe(server, [*users, "other"])).results) == len(users) + 1


async def test_a_controller_that_cannot_decide_is_told_for_each() -> None:
    server = Server()
    server.controller.time_out()
    assert await alter(server, upsertion("alice"), deletions=[("bob", 1)]) == {"alice": 7, "bob": 7}
