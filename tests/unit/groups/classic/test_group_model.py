"""Members that come, go, fall silent and start again in any order, with coordinators that fail over.

Each client only knows what it was told. What must hold whatever happens stands in the invariants.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headrace.groups.classic.group import ClassicGroup
from headrace.groups.classic.sessions import NEW_MEMBER_JOIN_TIMEOUT_MS
from headrace.groups.classic.states import ClassicState
from headrace.groups.group_config import GroupConfig
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.join_group_response import JoinGroupResponse
from headrace.protocol.messages.sync_group_response import SyncGroupResponse
from tests.unit.groups.classic.coordinator import GROUP, REBALANCE_MS, SESSION_MS, Asked, Coordinator

NAMES = range(5)
STATIC = {3: "a", 4: "b"}
WISHES = [(("range", b"1"),), (("range", b"2"), ("sticky", b"2")), (("sticky", b"3"), ("range", b"3"))]


@dataclass
class Process:
    """One client as it sees itself."""

    name: int
    member_id: str = ""
    generation: int = -1
    leader: bool = False
    others: tuple[str, ...] = ()
    join: Asked[JoinGroupResponse] | None = None
    sync: Asked[SyncGroupResponse] | None = None
    assignment: bytes | None = None

    @property
    def is_waiting(self) -> bool:
        return self.join is not None or self.sync is not None


class Groups(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.coordinator = Coordinator(GroupConfig(group_max_size=4))
        self.processes = {name: Process(name) for name in NAMES}
        self.generation_members: dict[int, frozenset[str]] = {}
        self.newest = 0

    # --- what clients do

    @rule(name=st.sampled_from(NAMES), wish=st.sampled_from(WISHES))
    def joins(self, name: int, wish: tuple[tuple[str, bytes], ...]) -> None:
        process = self.processes[name]
        if process.sync is not None:
            return
        process.join = self.coordinator.join(
            process.member_id, instance=STATIC.get(name), protocols=wish, rebalance_ms=REBALANCE_MS
        )
        self.hear()

    @rule(names=st.lists(st.sampled_from(NAMES), min_size=2, unique=True))
    def several_join(self, names: list[int]) -> None:
        """Chance alone seldom brings several members into one generation."""
        for _ in range(2):
            for name in names:
                if not self.processes[name].is_waiting:
                    self.joins(name, WISHES[1])
        self.time_passes(3_000)
        self.time_passes(3_000)

    @rule(name=st.sampled_from(NAMES))
    def syncs(self, name: int) -> None:
        process = self.processes[name]
        if process.join is not None or process.generation < 0:
            return
        assignments = {each: each.encode() for each in process.others} if process.leader else {}
        process.sync = self.coordinator.sync(
            process.member_id, process.generation, assignments, instance=STATIC.get(name)
        )
        self.hear()

    @rule(name=st.sampled_from(NAMES))
    def beats(self, name: int) -> None:
        process = self.processes[name]
        if process.generation >= 0 and not process.is_waiting:
            self.coordinator.heartbeat(process.member_id, process.generation, instance=STATIC.get(name))

    @rule(name=st.sampled_from(NAMES))
    def leaves(self, name: int) -> None:
        process = self.processes[name]
        if process.member_id or name in STATIC:
            self.coordinator.leave((process.member_id, STATIC.get(name)))
            self.processes[name] = Process(name)
        self.hear()

    @rule(name=st.sampled_from(NAMES))
    def starts_again(self, name: int) -> None:
        self.processes[name] = Process(name)

    # --- what happens to them

    @rule(by_ms=st.sampled_from([1, 500, 3_000, SESSION_MS - 1, SESSION_MS, REBALANCE_MS]))
    def time_passes(self, by_ms: int) -> None:
        self.coordinator.advance(by_ms)
        self.hear()

    @rule()
    def coordinator_fails_over(self) -> None:
        """Who waits loses its connection. Only what was assigned is known afterwards."""
        self.coordinator = self.coordinator.failover()
        for process in self.processes.values():
            process.join = process.sync = None
        self.newest = self.group.generation if self.group is not None else 0
        for generation in [each for each in self.generation_members if each > self.newest]:
            del self.generation_members[generation]

    @precondition(lambda self: self.group is not None and self.group.is_empty())
    @rule()
    def group_is_deleted(self) -> None:
        self.coordinator._carry_out(self.coordinator.shard.delete_groups([GROUP]), None)

    def hear(self) -> None:
        for process in self.processes.values():
            if process.join is not None and not process.join.is_parked:
                self.hear_of_join(process, process.join.answer)
                process.join = None
            if process.sync is not None and not process.sync.is_parked:
                if process.sync.error is ErrorCode.NONE:
                    process.assignment = process.sync.answer.assignment
                process.sync = None

    def hear_of_join(self, process: Process, answer: JoinGroupResponse) -> None:
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            process.member_id, process.generation = answer.member_id, answer.generation_id
            process.leader = answer.leader == answer.member_id
            process.others = tuple(each.member_id for each in answer.members)
            if process.leader:
                members = frozenset(process.others)
                if not answer.skip_assignment:
                    known = self.generation_members.setdefault(answer.generation_id, members)
                    assert known == members, "two leaders were told different members of one generation"
        elif code is ErrorCode.MEMBER_ID_REQUIRED:
            process.member_id = answer.member_id
        elif code is not ErrorCode.REBALANCE_IN_PROGRESS:
            process.member_id, process.generation = "", -1

    # --- what always holds

    @property
    def group(self) -> ClassicGroup | None:
        return self.coordinator.shard.groups.of_class(GROUP, ClassicGroup)

    @invariant()
    def the_group_agrees_with_itself(self) -> None:
        group = self.group
        if group is None:
            return
        members = group.members
        assert group.joined == sum(each.awaiting_join is not None for each in members.values())
        assert group.static_members == {
            each.instance_id: each.member_id for each in members.values() if each.instance_id is not None
        }
        assert group.leader in members if members else group.leader is None
        assert set(group.pending_syncs) <= set(members)
        assert not set(group.pending_joins) & set(members)
        assert (group.state is ClassicState.EMPTY) == (not members and group.state.value == "Empty")
        assert group.state is not ClassicState.STABLE or members
        counted: dict[str, int] = {}
        for each in members.values():
            for name, _ in each.protocols:
                counted[name] = counted.get(name, 0) + 1
        assert group.supporters == counted
        assert len(members) <= 4 or group.state is ClassicState.PREPARING_REBALANCE

    @invariant()
    def generations_only_grow(self) -> None:
        group = self.group
        if group is None:
            # Deleted, or empty and without offsets for so long that it was forgotten.
            self.newest = 0
            self.generation_members.clear()
        else:
            assert group.generation >= self.newest
            self.newest = group.generation

    @invariant()
    def only_members_wait_and_each_in_its_phase(self) -> None:
        group = self.group
        waiting = set()
        for each in group.members.values() if group is not None else ():
            assert group is not None
            if each.awaiting_join is not None:
                assert group.state is ClassicState.PREPARING_REBALANCE
                waiting.add(each.awaiting_join)
            if each.awaiting_sync is not None:
                assert group.state is ClassicState.COMPLETING_REBALANCE
                waiting.add(each.awaiting_sync)
        assert waiting == set(self.coordinator.parked), "who is parked and no member waits for ever"

    @invariant()
    def every_member_is_watched(self) -> None:
        group = self.group
        if group is None:
            return
        for each in group.members.values():
            assert each in self.coordinator.timers or each.is_satisfied
        for pending in group.pending_joins.values():
            assert pending in self.coordinator.timers
        if group.state is ClassicState.PREPARING_REBALANCE or group.pending_syncs:
            assert group in self.coordinator.timers

    @invariant()
    def a_stable_generation_is_who_joined_it(self) -> None:
        group = self.group
        if group is None or group.state is not ClassicState.STABLE:
            return
        joined = self.generation_members.get(group.generation)
        if joined is not None:
            dynamic = {each for each in joined if not each.startswith(("a-", "b-"))}
            now = {each.member_id for each in group.members.values() if each.instance_id is None}
            assert now == dynamic
            assert len(group.members) == len(joined)

    @invariant()
    def the_log_says_the_same(self) -> None:
        group = self.group
        if group is not None and group.state in (ClassicState.STABLE, ClassicState.EMPTY):
            copy = self.coordinator.failover().shard.groups.of_class(GROUP, ClassicGroup)
            assert copy is not None
            assert (copy.state, copy.generation, copy.leader) == (group.state, group.generation, group.leader)
            assert {each: copy.members[each].assignment for each in copy.members} == {
                each: group.members[each].assignment for each in group.members
            }

    def teardown(self) -> None:
        """Time alone answers everybody, and in the end nobody is left."""
        self.coordinator.advance(2 * (NEW_MEMBER_JOIN_TIMEOUT_MS + REBALANCE_MS + SESSION_MS))
        assert not self.coordinator.parked
        assert self.group is None or self.group.is_empty()
        assert self.group is None or not self.group.pending_joins


TestGroups = Groups.TestCase
TestGroups.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
