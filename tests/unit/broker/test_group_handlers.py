"""The handlers of classic groups: what each version can say, and how refusals are told."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headrace.broker.coordinators.state_estimate import StateEstimate
from headrace.broker.requests.api import Call
from headrace.broker.requests.apis import BY_KEY
from headrace.broker.requests.context import RequestContext
from headrace.config.broker import BrokerConfig
from headrace.core.completion import Completion
from headrace.core.errors import (
    CoordinatorLoading,
    CoordinatorNotAvailable,
    HeadraceError,
    MessageTooLarge,
    NotCoordinator,
)
from headrace.core.memory import unlimited
from headrace.groups.shard import GroupShard
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.messages.delete_groups_request import DeleteGroupsRequest
from headrace.protocol.messages.describe_groups_request import DescribeGroupsRequest
from headrace.protocol.messages.heartbeat_request import HeartbeatRequest
from headrace.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from headrace.protocol.messages.list_groups_request import ListGroupsRequest
from headrace.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from tests.unit.groups.classic.coordinator import DELAY_MS, GROUP, Coordinator

REFUSALS = [
    (NotCoordinator("elsewhere"), ErrorCode.NOT_COORDINATOR),
    (CoordinatorNotAvailable("stopping"), ErrorCode.COORDINATOR_NOT_AVAILABLE),
    (MessageTooLarge("of the record"), ErrorCode.UNKNOWN_SERVER_ERROR),
    (CoordinatorLoading("reading"), ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
]


class Groups:
    """A coordinator of groups with one shard. What is parked is answered when time is moved."""

    def __init__(self) -> None:
        self.coordinator = Coordinator()
        self.refusal: HeadraceError | None = None
        self.is_loading = False

    def ask(self, _key: str, operation: Any, *, writes: bool = True) -> Completion[Any]:
        del writes
        completion: Completion[Any] = Completion()
        if self.refusal is not None:
            completion.fail(self.refusal)
            return completion
        coordinator = self.coordinator
        coordinator._carry_out(operation(coordinator.shard, completion, coordinator.now_ms), completion)
        if not completion.is_done:
            coordinator.advance(DELAY_MS)
        assert completion.is_done
        return completion

    def ask_partition(self, index: int, operation: Any, *, writes: bool = True) -> Completion[Any]:
        return self.ask(str(index), operation, writes=writes)

    def loaded(self) -> Iterator[tuple[int, GroupShard]]:
        yield 0, self.coordinator.shard


class Server:
    def __init__(self) -> None:
        self.groups = Groups()
        self.said: list[tuple[str, str]] = []
        self.memory = unlimited("groups")
        stub = SimpleNamespace(
            runtime=SimpleNamespace(
                config=BrokerConfig.parse({}),
                log=SimpleNamespace(debug=lambda event, **rest: self.said.append((event, rest["reason"]))),
                turns=SimpleNamespace(is_over=False),
            ),
            metadata=SimpleNamespace(image=SimpleNamespace(topics_by_name={})),
            coordinators=SimpleNamespace(
                groups=self.groups, group_state=StateEstimate(self.memory, lambda: 0, lambda: 0.0)
            ),
        )
        self._context = cast(RequestContext, stub)

    async def serve(self, request: Message, version: int) -> Any:
        """The answer, once through bytes: every version must be able to say it."""
        handle = BY_KEY[request.API_KEY].handle
        assert handle is not None
        asked = type(request).from_bytes(request.to_bytes(version), version)
        call = Call(version, "test", cast(Any, SimpleNamespace(peer_host="10.0.0.1")))
        answer = handle(self._context, asked, call)
        if inspect.isawaitable(answer):
            answer = await answer
        return type(answer).from_bytes(answer.to_bytes(version), version)


@pytest.fixture
def server() -> Server:
    return Server()


def served(request: type[Message]) -> range:
    api = BY_KEY[request.API_KEY]
    return range(api.lowest, api.highest + 1)


def join(version: int = 9, member_id: str = "", **rest: Any) -> JoinGroupRequest:
    return JoinGroupRequest(
        **{
            "group_id": GROUP,
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 20_000 if version else -1,
            "member_id": member_id,
            "protocol_type": "consumer",
            "protocols": [JoinGroupRequestProtocol(name="range", metadata=b"m")],
            **rest,
        }
    )


async def joined(server: Server, version: int = 9) -> Any:
    answer = await server.serve(join(version), version)
    if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        answer = await server.serve(join(version, answer.member_id), version)
    assert answer.error_code == ErrorCode.NONE
    return answer


@pytest.mark.parametrize("version", served(JoinGroupRequest))
async def test_a_member_lives_and_leaves_in_every_version(server: Server, version: int) -> None:
    answer = await joined(server, version)
    me = answer.member_id
    assert (answer.generation_id, answer.leader, answer.protocol_name) == (1, me, "range")
    member = server.groups.coordinator.group.members[me]
    assert member.client_host == "/10.0.0.1"
    assert member.rebalance_timeout_ms == (20_000 if version else 10_000)
    sync = min(version, 5)
    request = SyncGroupRequest(
        group_id=GROUP,
        generation_id=1,
        member_id=me,
        protocol_type="consumer" if sync >= 5 else None,
        protocol_name="range" if sync >= 5 else None,
        assignments=[SyncGroupRequestAssignment(member_id=me, assignment=b"all")],
    )
    assert (await server.serve(request, sync)).assignment == b"all"
    beat = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=me)
    assert (await server.serve(beat, min(version, 4))).error_code == ErrorCode.NONE
    leave = min(version, 5)
    if leave < 3:
        going = LeaveGroupRequest(group_id=GROUP, member_id=me)
        assert (await server.serve(going, leave)).error_code == ErrorCode.NONE
        assert (await server.serve(going, leave)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    else:
        going = LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id=me)])
        assert [each.error_code for each in (await server.serve(going, leave)).members] == [0]
        again = await server.serve(going, leave)
        assert again.error_code == ErrorCode.NONE
        assert [each.error_code for each in again.members] == [ErrorCode.UNKNOWN_MEMBER_ID]


@pytest.mark.parametrize("version", served(JoinGroupRequest))
async def test_a_refused_join_names_no_protocol(server: Server, version: int) -> None:
    nothing = None if version >= 7 else ""
    for request, code in [
        (join(version, group_id=""), ErrorCode.INVALID_GROUP_ID),
        (join(version, session_timeout_ms=5_999), ErrorCode.INVALID_SESSION_TIMEOUT),
        (join(version, session_timeout_ms=1_800_001), ErrorCode.INVALID_SESSION_TIMEOUT),
        (join(version, "stranger"), ErrorCode.UNKNOWN_MEMBER_ID),
    ]:
        answer = await server.serve(request, version)
        assert (answer.error_code, answer.protocol_name) == (code, nothing)
        assert answer.member_id == request.member_id
    server.groups.refusal = NotCoordinator("elsewhere")
    answer = await server.serve(join(version), version)
    assert (answer.error_code, answer.protocol_name) == (ErrorCode.NOT_COORDINATOR, nothing)


async def test_reasons_of_clients_are_for_the_log(server: Server) -> None:
    await server.serve(join(reason="topics changed"), 8)
    await server.serve(join(reason=""), 8)
    leaving = [MemberIdentity(member_id="m", reason="closed"), MemberIdentity(member_id="n")]
    await server.serve(LeaveGroupRequest(group_id=GROUP, members=leaving), 5)
    assert server.said == [("member joins", "topics changed"), ("member leaves", "closed")]


@pytest.mark.parametrize("field", ["protocol_type", "protocol_name"])
async def test_a_sync_has_to_say_the_protocol_once_it_can(server: Server, field: str) -> None:
    said: dict[str, Any] = {"protocol_type": "consumer", "protocol_name": "range", field: None}
    request = SyncGroupRequest(group_id="", generation_id=1, member_id="m", **said)
    assert (await server.serve(request, 5)).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert (await server.serve(request, 4)).error_code == ErrorCode.INVALID_GROUP_ID


async def test_no_group_is_called_nothing(server: Server) -> None:
    for request in (
        HeartbeatRequest(group_id="", generation_id=1, member_id="m"),
        LeaveGroupRequest(group_id="", members=[MemberIdentity(member_id="m")]),
    ):
        assert (await server.serve(request, 4)).error_code == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize(("refusal", "code"), REFUSALS)
async def test_refusals_of_the_coordinator(server: Server, refusal: HeadraceError, code: ErrorCode) -> None:
    server.groups.refusal = refusal
    for request in (
        SyncGroupRequest(group_id=GROUP, generation_id=1, member_id="m"),
        LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id="m")]),
    ):
        assert (await server.serve(request, 4)).error_code == code
    described = await server.serve(DescribeGroupsRequest(groups=[GROUP]), 6)
    assert [(each.group_id, each.error_code) for each in described.groups] == [(GROUP, code)]
    deleted = await server.serve(DeleteGroupsRequest(groups_names=[GROUP]), 2)
    assert [(each.group_id, each.error_code) for each in deleted.results] == [(GROUP, code)]


@pytest.mark.parametrize(("refusal", "code"), REFUSALS)
async def test_while_groups_are_read_a_heartbeat_is_fine(
    server: Server, refusal: HeadraceError, code: ErrorCode
) -> None:
    server.groups.refusal = refusal
    request = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="m")
    expected = ErrorCode.NONE if isinstance(refusal, CoordinatorLoading) else code
    assert (await server.serve(request, 4)).error_code == expected


@pytest.mark.parametrize("version", served(ListGroupsRequest))
async def test_list(server: Server, version: int) -> None:
    await joined(server)
    (group,) = (await server.serve(ListGroupsRequest(), version)).groups
    assert (group.group_id, group.protocol_type) == (GROUP, "consumer")
    assert group.group_state == ("CompletingRebalance" if version >= 4 else "")
    assert group.group_type == ("classic" if version >= 5 else "")
    server.groups.refusal = NotCoordinator("just moved")
    assert (await server.serve(ListGroupsRequest(), version)).groups == []
    server.groups.refusal = CoordinatorNotAvailable("too few replicas")
    code = (await server.serve(ListGroupsRequest(), version)).error_code
    assert code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    server.groups.is_loading = True
    code = (await server.serve(ListGroupsRequest(), version)).error_code
    assert code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@pytest.mark.parametrize("version", served(DescribeGroupsRequest))
async def test_describe(server: Server, version: int) -> None:
    await joined(server)
    asked = DescribeGroupsRequest(groups=[GROUP, "none"], include_authorized_operations=version >= 3)
    known, unknown = (await server.serve(asked, version)).groups
    assert known.group_state == "CompletingRebalance"
    assert (known.authorized_operations > 0) == (version >= 3)
    assert unknown.group_state == "Dead"
    assert unknown.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE)


@pytest.mark.parametrize("version", served(DeleteGroupsRequest))
async def test_delete(server: Server, version: int) -> None:
    await joined(server)
    await server.serve(join(group_id="new"), 9)
    answer = await server.serve(DeleteGroupsRequest(groups_names=[GROUP, "new", "none", "new"]), version)
    assert [(each.group_id, each.error_code) for each in answer.results] == [
        (GROUP, ErrorCode.NON_EMPTY_GROUP),
        ("new", ErrorCode.NONE),
        ("none", ErrorCode.GROUP_ID_NOT_FOUND),
    ]


async def test_a_coordinator_without_memory_lets_members_join_again_but_nobody_new(server: Server) -> None:
    server.memory.limit_bytes = 0
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"x")],
    )
    assert (await server.serve(request, 9)).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    request.member_id = "known"
    assert (await server.serve(request, 9)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    request.protocols[0].metadata = bytes(20_000)
    assert (await server.serve(request, 9)).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
