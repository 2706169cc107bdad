"""DescribeGroups, ListGroups, DeleteGroups."""

from __future__ import annotations

import pytest

from headrace.core.errors import GroupNotFound, NonEmptyGroup
from headrace.groups.listing import filter_of
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.describe_groups_response import DescribedGroup, DescribedGroupMember
from headrace.protocol.messages.list_groups_response import ListedGroup
from tests.unit.groups.classic.coordinator import DELAY_MS, GROUP, Coordinator


def describe(coordinator: Coordinator, version: int = 6, group: str = GROUP) -> DescribedGroup:
    (described,) = coordinator.shard.describe_groups([group], version).response  # type: ignore[misc]  # never parked
    assert isinstance(described, DescribedGroup)
    return described


def listed(coordinator: Coordinator, states: list[str], types: list[str]) -> list[ListedGroup]:
    response = coordinator.shard.list_groups(filter_of(states), filter_of(types)).response
    assert isinstance(response, list)
    return response


class TestDescribe:
    def test_a_stable_group_with_everything(self) -> None:
        coordinator = Coordinator()
        (member_id,), _ = coordinator.stable_group(1)
        assert describe(coordinator) == DescribedGroup(
            group_id=GROUP,
            group_state="Stable",
            protocol_type="consumer",
            protocol_data="range",
            members=[
                DescribedGroupMember(
                    member_id=member_id,
                    client_id="client",
                    client_host="/127.0.0.1",
                    member_metadata=b"r",
                    member_assignment=member_id.encode(),
                )
            ],
        )

    def test_another_without_protocol_and_metadata(self) -> None:
        coordinator = Coordinator()
        asked = coordinator.join(instance="a")
        preparing = describe(coordinator)
        assert (preparing.group_state, preparing.protocol_data) == ("PreparingRebalance", "")
        assert preparing.members[0].member_metadata == b""
        assert preparing.members[0].group_instance_id == "a"
        coordinator.advance(DELAY_MS)
        assert describe(coordinator).group_state == "CompletingRebalance"
        coordinator.assign([asked])
        coordinator.leave(("", "a"))
        empty = describe(coordinator)
        assert (empty.group_state, empty.protocol_type, empty.members) == ("Empty", "consumer", [])

    def test_one_that_does_not_exist(self) -> None:
        coordinator = Coordinator()
        assert describe(coordinator, 5) == DescribedGroup(group_id=GROUP, group_state="Dead")
        said = describe(coordinator, 6)
        assert said.group_state == "Dead"
        assert said.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert said.error_message == "Group g not found."


class TestList:
    @pytest.fixture
    def coordinator(self) -> Coordinator:
        coordinator = Coordinator()
        coordinator.stable_group(1)
        coordinator.new_id(group="new")
        return coordinator

    def test_everything(self, coordinator: Coordinator) -> None:
        assert listed(coordinator, [], []) == [
            ListedGroup(group_id=GROUP, protocol_type="consumer", group_state="Stable", group_type="classic"),
            ListedGroup(group_id="new", protocol_type="", group_state="Empty", group_type="classic"),
        ]

    @pytest.mark.parametrize(
        ("states", "types", "expected"),
        [
            (["stable"], [], [GROUP]),
            ([" EMPTY "], [], ["new"]),
            (["Empty", "Stable"], ["classic"], [GROUP, "new"]),
            (["Dead"], [], []),
            (["nonsense"], [], []),
            ([], ["consumer"], []),
            ([], ["nonsense"], []),
        ],
    )
    def test_filters(
        self, coordinator: Coordinator, states: list[str], types: list[str], expected: list[str]
    ) -> None:
        assert [each.group_id for each in listed(coordinator, states, types)] == expected


class TestDelete:
    def test_only_groups_without_members(self) -> None:
        coordinator = Coordinator()
        ids, _ = coordinator.stable_group(1)
        coordinator.new_id(group="new")
        decision = coordinator.shard.delete_groups([GROUP, "new", "none", "new"])
        outcomes = decision.response
        assert isinstance(outcomes, dict)
        assert {name: type(error) for name, error in outcomes.items()} == {
            GROUP: NonEmptyGroup,
            "new": type(None),
            "none": GroupNotFound,
        }
        coordinator._carry_out(decision, None)
        assert [group.group_id for group in coordinator.shard.groups] == [GROUP]
        assert coordinator.heartbeat(ids[0], 1) is ErrorCode.NONE

    def test_ids_that_were_given_out_do_not_outlive_it(self) -> None:
        coordinator = Coordinator()
        idle = set(coordinator.timers)
        pending = coordinator.new_id()
        coordinator._carry_out(coordinator.shard.delete_groups([GROUP]), None)
        assert coordinator.join(pending).error is ErrorCode.UNKNOWN_MEMBER_ID
        assert set(coordinator.timers) == idle
