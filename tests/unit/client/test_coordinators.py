"""Finding coordinators, and what becomes of a key whose coordinator moves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from headrace.client import groups, transactions
from headrace.client.cluster import Cluster
from headrace.client.coordinators import CoordinatorKind, find_coordinators
from headrace.client.errors import ApiMissing, ClientFailure, Refused
from headrace.client.group_offsets import Committed, commit_offsets, committed_offsets
from headrace.client.groups import Group, classic_assignment
from headrace.core.ids import TopicPartition
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from headrace.protocol.messages.delete_groups_request import DeleteGroupsRequest
from headrace.protocol.messages.describe_groups_request import DescribeGroupsRequest
from headrace.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from headrace.protocol.messages.list_transactions_request import ListTransactionsRequest
from headrace.protocol.messages.list_transactions_response import ListTransactionsResponse
from headrace.protocol.messages.offset_commit_request import OffsetCommitRequest
from headrace.protocol.messages.offset_fetch_request import OffsetFetchRequest
from tests.unit.client.scripted_groups import ScriptedGroup, ScriptedGroups, encoded_assignment
from tests.unit.client.scripted_transactions import ScriptedTransactions


def with_script(
    script: ScriptedGroups, operation: Callable[[Cluster], Awaitable[None]], patience: float = 10.0
) -> None:
    async def work() -> None:
        async with asyncio.timeout(20), script, Cluster(script.address, request_timeout=patience) as cluster:
            await operation(cluster)

    asyncio.run(work())


def test_coordinators_of_many_keys_are_asked_for_at_once() -> None:
    script = ScriptedGroups()

    async def operation(cluster: Cluster) -> None:
        found = await find_coordinators(cluster, CoordinatorKind.GROUP, ["g1", "g2", "g3", "g1"])
        assert found == {"g1": 1, "g2": 0, "g3": 1}
        assert await find_coordinators(cluster, CoordinatorKind.GROUP, []) == {}

    with_script(script, operation)
    (asked,) = script.seen(FindCoordinatorRequest)
    assert asked.coordinator_keys == ["g1", "g2", "g3"]


def test_an_old_broker_is_asked_key_by_key() -> None:
    script = ScriptedGroups()
    script.ranges[FindCoordinatorRequest.API_KEY] = (0, 3)

    async def operation(cluster: Cluster) -> None:
        found = await find_coordinators(cluster, CoordinatorKind.TRANSACTION, ["x1", "x2"])
        assert found == {"x1": 1, "x2": 0}

    with_script(script, operation)
    assert [(asked.key, asked.key_type) for asked in script.seen(FindCoordinatorRequest)] == [
        ("x1", 1),
        ("x2", 1),
    ]


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    ],
)
def test_a_commit_follows_its_coordinator(code: ErrorCode) -> None:
    script = ScriptedGroups()
    # FindCoordinator, then the commit, are refused once each.
    script.refuse = [ErrorCode.COORDINATOR_NOT_AVAILABLE, 0, code]

    async def operation(cluster: Cluster) -> None:
        await commit_offsets(cluster, "g", {TopicPartition("t", 0): 5})

    with_script(script, operation)
    assert script.groups["g"].offsets == {("t", 0): 5}
    assert len(script.seen(FindCoordinatorRequest)) == 3
    assert len(script.seen(OffsetCommitRequest)) == 2


def test_a_coordinator_that_never_comes_is_said_in_words() -> None:
    script = ScriptedGroups()
    script.refuse = [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 1000

    async def operation(cluster: Cluster) -> None:
        with pytest.raises(Refused, match="group g has no coordinator") as caught:
            await groups.describe_group(cluster, "g")
        assert "headrace cluster status" in caught.value.hint

    with_script(script, operation, patience=0.3)


def test_only_what_was_refused_is_asked_again() -> None:
    script = ScriptedGroups()
    script.groups = {f"g{index}": ScriptedGroup() for index in range(4)}
    script.refuse = [0, 0, ErrorCode.NOT_COORDINATOR, 0, 0]

    async def operation(cluster: Cluster) -> None:
        assert await groups.delete_groups(cluster, list(script.groups)) == dict.fromkeys(
            ["g0", "g1", "g2", "g3"]
        )

    with_script(script, operation)
    assert [request.groups_names for request in script.seen(DeleteGroupsRequest)] == [
        ["g0", "g2"],
        ["g1", "g3"],
        ["g2"],
    ]


def test_thousands_of_keys_go_in_parts() -> None:
    script = ScriptedGroups()
    names = [f"group-{index}-0" for index in range(1200)]
    script.groups = {name: ScriptedGroup() for name in names}

    async def operation(cluster: Cluster) -> None:
        found = await groups.describe_groups(cluster, names)
        assert list(found) == names
        assert all(isinstance(group, Group) for group in found.values())

    with_script(script, operation)
    assert [len(request.groups) for request in script.seen(DescribeGroupsRequest)] == [500, 500, 200]


def test_a_broker_without_consumer_groups_is_not_asked_for_them() -> None:
    script = ScriptedGroups()
    script.groups = {"g": ScriptedGroup()}
    del script.handlers[ConsumerGroupDescribeRequest]
    script.ranges[DescribeGroupsRequest.API_KEY] = (0, 5)

    async def operation(cluster: Cluster) -> None:
        assert (await groups.describe_group(cluster, "g")).state == "Empty"
        # Before version 6 a group that is not there is dead, and nothing else is wrong with it.
        assert await groups.describe_or_absent(cluster, "nobody") is None

    with_script(script, operation)


def test_an_offset_that_waits_for_a_transaction_is_told_with_the_old_one() -> None:
    script = ScriptedGroups()
    script.groups = {"g": ScriptedGroup(offsets={("t", 0): 3, ("t", 1): 4}, pending={("t", 1)})}

    async def operation(cluster: Cluster) -> None:
        found = await committed_offsets(cluster, ["g", "nobody"])
        assert found == {
            "g": {
                TopicPartition("t", 0): Committed(3, -1, "m"),
                TopicPartition("t", 1): Committed(4, -1, "m", pending=True),
            },
            "nobody": {},
        }
        some = await committed_offsets(cluster, ["g"], [TopicPartition("t", 0), TopicPartition("t", 9)])
        assert list(some["g"]) == [TopicPartition("t", 0)]

    with_script(script, operation)


def test_a_broker_that_knows_only_one_group_at_a_time_is_too_old() -> None:
    script = ScriptedGroups()
    script.ranges[OffsetFetchRequest.API_KEY] = (1, 7)

    async def operation(cluster: Cluster) -> None:
        with pytest.raises(ApiMissing, match="OffsetFetch 8 or later"):
            await committed_offsets(cluster, ["g"])

    with_script(script, operation)


def test_a_state_that_the_broker_does_not_know_is_said() -> None:
    script = ScriptedTransactions()
    script.handlers[ListTransactionsRequest] = lambda request, _version: ListTransactionsResponse(
        unknown_state_filters=request.state_filters
    )

    async def operation(cluster: Cluster) -> None:
        with pytest.raises(ClientFailure, match="broker 0 knows no state Sleeping") as caught:
            await transactions.list_transactions(cluster, states=["Sleeping"])
        assert "Ongoing" in caught.value.hint

    with_script(script, operation)


@pytest.mark.parametrize(
    ("data", "partitions"),
    [
        (b"", []),
        (encoded_assignment([("t", 1), ("t", 0), ("a", 5)]), [("a", 5), ("t", 0), ("t", 1)]),
        (b"\x00\x63" + encoded_assignment([("t", 1)])[2:] + b"of a later version", [("t", 1)]),
        (b"\x00", []),
        (b"\x00\x00\x7f\xff\xff\xff", []),
    ],
)
def test_assignments_of_classic_members(data: bytes, partitions: list[tuple[str, int]]) -> None:
    assert classic_assignment(data) == partitions
