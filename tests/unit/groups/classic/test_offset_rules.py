"""What a classic group lets be committed, deleted and forgotten."""

from __future__ import annotations

import pytest

from headrace.core.errors import (
    FencedInstance,
    HeadraceError,
    IllegalGeneration,
    NonEmptyGroup,
    RebalanceInProgress,
    UnknownMember,
)
from headrace.groups.classic.group import NOT_KNOWN, ClassicGroup
from headrace.groups.classic.states import ClassicState
from headrace.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from tests.unit.groups.classic.coordinator import DELAY_MS, Coordinator

COMMITTED_MS = 77


def subscription(*topics: str, version: int = 3) -> bytes:
    message = ConsumerProtocolSubscription(topics=list(topics), user_data=None)
    return version.to_bytes(2, "big") + message.to_bytes(version)


def refusal(
    group: ClassicGroup,
    member_id: str = "",
    generation: int = -1,
    instance: str | None = None,
    *,
    transactional: bool = False,
) -> type[HeadraceError] | None:
    try:
        group.validate_offset_commit(member_id, instance, generation, 9, transactional=transactional)
    except HeadraceError as error:
        return type(error)
    return None


class TestCommits:
    def test_an_empty_group_takes_those_of_anybody_without_a_generation(self) -> None:
        group = ClassicGroup("g")
        assert refusal(group) is None
        assert refusal(group, "m") is None
        assert refusal(group, "m", 0) is UnknownMember
        assert refusal(group, transactional=True) is None

    def test_a_stable_group_takes_those_of_its_generation(self) -> None:
        coordinator = Coordinator()
        ids, generation = coordinator.stable_group()
        group = coordinator.group
        assert refusal(group, ids[1], generation) is None
        assert refusal(group, ids[1], generation - 1) is IllegalGeneration
        assert refusal(group, ids[1], generation + 1) is IllegalGeneration
        assert refusal(group, ids[1]) is IllegalGeneration
        assert refusal(group, "stranger", generation) is UnknownMember
        assert refusal(group, ids[1], generation, "i") is UnknownMember
        assert refusal(group) is UnknownMember

    def test_older_transactional_clients_name_no_member(self) -> None:
        coordinator = Coordinator()
        ids, generation = coordinator.stable_group()
        assert refusal(coordinator.group, transactional=True) is None
        assert refusal(coordinator.group, ids[0], generation, transactional=True) is None
        assert refusal(coordinator.group, ids[0], generation + 1, transactional=True) is IllegalGeneration

    def test_a_fenced_static_member_commits_nothing(self) -> None:
        coordinator = Coordinator()
        first = coordinator.join(instance="a")
        coordinator.advance(DELAY_MS)
        generation = coordinator.assign([first])
        old = first.answer.member_id
        assert refusal(coordinator.group, old, generation, "a") is None
        coordinator.join(instance="a")
        assert refusal(coordinator.group, old, generation, "a") is FencedInstance

    def test_while_members_join_the_old_generation_may_commit(self) -> None:
        coordinator = Coordinator()
        ids, generation = coordinator.stable_group()
        coordinator.join(coordinator.new_id())
        assert coordinator.group.state is ClassicState.PREPARING_REBALANCE
        assert refusal(coordinator.group, ids[0], generation) is None

    def test_and_the_new_one_only_once_it_is_assigned(self) -> None:
        coordinator = Coordinator()
        member_id = coordinator.new_id()
        coordinator.join(member_id)
        coordinator.advance(DELAY_MS)
        assert refusal(coordinator.group, member_id, 1) is RebalanceInProgress
        assert refusal(coordinator.group, member_id, 1, transactional=True) is None
        assert refusal(coordinator.group, member_id, 0) is IllegalGeneration


class TestSubscriptions:
    @pytest.mark.parametrize("version", [0, 1, 3])
    def test_of_all_members_together(self, version: int) -> None:
        coordinator = Coordinator()
        wishes = [[("range", subscription("a", "b", version=version))], [("range", subscription("c"))]]
        joins = [coordinator.join(coordinator.new_id(protocols=each), protocols=each) for each in wishes]
        coordinator.advance(2 * DELAY_MS)
        coordinator.assign(joins)
        assert coordinator.group.topics() == frozenset({"a", "b", "c"})
        assert coordinator.group.is_subscribed_to("c")
        assert not coordinator.group.is_subscribed_to("d")

    def test_follow_the_generation(self) -> None:
        coordinator = Coordinator()
        ids, _ = coordinator.stable_group(1, protocols=[("range", subscription("a"))])
        assert coordinator.group.is_subscribed_to("a")
        coordinator.assign([coordinator.join(ids[0], protocols=[("range", subscription("b"))])])
        assert coordinator.group.topics() == frozenset({"b"})
        coordinator.leave((ids[0], None))
        assert coordinator.group.topics() == frozenset()
        assert not coordinator.group.is_subscribed_to("b")

    def test_that_cannot_be_read_stand_for_everything(self) -> None:
        coordinator = Coordinator()
        coordinator.stable_group(1, protocols=[("range", b"\x00\x01nonsense")])
        assert coordinator.group.topics() is None
        assert coordinator.group.is_subscribed_to("anything")

    def test_are_not_known_while_somebody_joins_who_does_not_know_the_protocol(self) -> None:
        coordinator = Coordinator()
        both = [("range", subscription("a")), ("sticky", subscription("a"))]
        ids, _ = coordinator.stable_group(1, protocols=both)
        assert coordinator.group.is_subscribed_to("a")
        coordinator.assign([coordinator.join(ids[0], protocols=both)])
        other = [("sticky", subscription("b"))]
        late = coordinator.join(coordinator.new_id(protocols=other), protocols=other)
        assert coordinator.group.state is ClassicState.PREPARING_REBALANCE
        for _ in range(2):
            assert coordinator.group.topics() is None
            assert coordinator.group.is_subscribed_to("a")
            assert coordinator.group.is_subscribed_to("anything")
        coordinator.assign([coordinator.join(ids[0], protocols=both), late])
        assert coordinator.group.topics() == frozenset({"a", "b"})

    def test_of_other_protocol_types_are_not_looked_at(self) -> None:
        coordinator = Coordinator()
        coordinator.stable_group(1, protocol_type="connect", protocols=[("range", subscription("a"))])
        assert not coordinator.group.is_subscribed_to("a")


class TestExpiry:
    def test_without_a_protocol_type_offsets_age_from_their_commit(self) -> None:
        assert ClassicGroup("g", 5).offsets_expire_from(0, COMMITTED_MS, "a") == COMMITTED_MS

    def test_of_an_empty_group_from_when_it_became_empty(self) -> None:
        coordinator = Coordinator()
        ids, _ = coordinator.stable_group(1)
        coordinator.leave((ids[0], None))
        emptied_ms = coordinator.now_ms
        coordinator.advance(1_000)
        assert coordinator.group.offsets_expire_from(0, COMMITTED_MS, "a") == emptied_ms
        coordinator.group.state_since_ms = NOT_KNOWN
        assert coordinator.group.offsets_expire_from(0, COMMITTED_MS, "a") == COMMITTED_MS

    def test_of_an_empty_group_from_a_commit_that_came_later(self) -> None:
        coordinator = Coordinator()
        ids, _ = coordinator.stable_group(1)
        coordinator.leave((ids[0], None))
        later_ms = coordinator.now_ms + 5
        assert coordinator.group.offsets_expire_from(0, later_ms, "a") == later_ms

    def test_of_a_stable_group_only_in_topics_that_it_does_not_read(self) -> None:
        coordinator = Coordinator()
        ids, _ = coordinator.stable_group(1, protocols=[("range", subscription("a"))])
        assert coordinator.group.offsets_expire_from(0, COMMITTED_MS, "a") is None
        assert coordinator.group.offsets_expire_from(0, COMMITTED_MS, "b") == COMMITTED_MS
        coordinator.new_id()
        coordinator.join(ids[0])
        assert coordinator.group.state is ClassicState.PREPARING_REBALANCE
        assert coordinator.group.offsets_expire_from(0, COMMITTED_MS, "b") is None

    def test_of_other_members_than_consumers_never_while_there_are_any(self) -> None:
        coordinator = Coordinator()
        coordinator.stable_group(1, protocol_type="connect")
        assert coordinator.group.offsets_expire_from(0, COMMITTED_MS, "b") is None


def test_offsets_may_be_deleted_of_consumers_and_of_empty_groups() -> None:
    coordinator = Coordinator()
    ids, _ = coordinator.stable_group(1)
    coordinator.group.validate_offset_delete()
    coordinator.leave((ids[0], None))
    coordinator.group.validate_offset_delete()
    coordinator.stable_group(1, protocol_type="connect")
    with pytest.raises(NonEmptyGroup):
        coordinator.group.validate_offset_delete()


def test_anybody_may_fetch() -> None:
    ClassicGroup("g").validate_offset_fetch(None, -1)
    ClassicGroup("g").validate_offset_fetch("m", 4)
