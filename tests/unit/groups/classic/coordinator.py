"""A group coordinator without a broker: decisions are carried out here, and time is moved by hand.

Records pass through their bytes, as in a log. What a decision answers is known at once, as if everything were
committed at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Generic, TypeVar
from uuid import UUID

from headrace.coordinators.codec import decode, encode
from headrace.coordinators.decision import PARKED, CoordinatorRecord, Decision
from headrace.coordinators.kinds import GROUP_KINDS
from headrace.coordinators.shard import TimerOperation
from headrace.core.completion import Completion
from headrace.groups.classic.group import ClassicGroup
from headrace.groups.classic.joins import Client
from headrace.groups.group_config import GroupConfig
from headrace.groups.shard import GroupShard
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.heartbeat_request import HeartbeatRequest
from headrace.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.protocol.messages.join_group_response import JoinGroupResponse
from headrace.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from headrace.protocol.messages.leave_group_response import LeaveGroupResponse
from headrace.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from headrace.protocol.messages.sync_group_response import SyncGroupResponse
from headrace.protocol.records import Record

R = TypeVar("R")

GROUP = "g"
SESSION_MS = 10_000
REBALANCE_MS = 60_000
DELAY_MS = 3_000
START_MS = 1_000_000
Protocols = Sequence[tuple[str, bytes]]
RANGE: Protocols = (("range", b"r"),)


class Asked(Generic[R]):
    """One request. Its answer is there, or comes with a later decision."""

    __slots__ = ("completion",)

    def __init__(self) -> None:
        self.completion: Completion[R] = Completion()

    @property
    def is_parked(self) -> bool:
        return not self.completion.is_done

    @property
    def answer(self) -> R:
        return self.completion.result()

    @property
    def error(self) -> ErrorCode:
        return ErrorCode(self.answer.error_code)  # type: ignore[attr-defined]  # every answer here has one


class NoTopics:
    version = 0

    def names(self) -> list[str]:
        return []

    def id_of(self, _name: str) -> UUID | None:
        return None

    def name_of(self, _topic_id: UUID) -> str | None:
        return None

    def partition_count(self, _name: str) -> int | None:
        return None

    def racks(self, _name: str, _partition: int) -> tuple[str, ...]:
        return ()


@dataclass
class Coordinator:
    config: GroupConfig = field(default_factory=GroupConfig)
    log: list[CoordinatorRecord] = field(default_factory=list)
    now_ms: int = START_MS
    random: Random = field(default_factory=lambda: Random(7))
    records_are_too_large: bool = False
    """The runtime then refuses a decision as a whole, and the one who asked."""
    written_ms: list[int] = field(default_factory=list)
    """When each record of the log was written; of those that a test made, now."""

    def __post_init__(self) -> None:
        self.timers: dict[object, tuple[int, int, TimerOperation]] = {}
        self._armed = 0
        self.parked: dict[Completion[Any], None] = {}
        self.shard = GroupShard(self, NoTopics(), self.config, self.random)
        self._replay_log()
        self._carry_out(self.shard.on_loaded(self.now_ms), None)

    def failover(self) -> Coordinator:
        """Another broker leads the partition: it has the log, and nothing else."""
        return Coordinator(
            self.config, list(self.log), self.now_ms, self.random, written_ms=list(self.written_ms)
        )

    def _replay_log(self) -> None:
        self.written_ms += [self.now_ms] * (len(self.log) - len(self.written_ms))
        for offset, (record, written_ms) in enumerate(zip(self.log, self.written_ms, strict=True)):
            self.shard.replay(record, offset, written_ms)

    # --- timers, as the shard sees them

    def set(self, name: object, delay_ms: float, operation: TimerOperation) -> None:
        self._armed += 1
        self.timers[name] = (self.now_ms + int(delay_ms), self._armed, operation)

    def cancel(self, name: object) -> None:
        self.timers.pop(name, None)

    def advance(self, by_ms: int) -> None:
        end = self.now_ms + by_ms
        while True:
            due = [(at, order, name) for name, (at, order, _) in self.timers.items() if at <= end]
            if not due:
                break
            at, _, name = min(due, key=lambda each: each[:2])
            self.now_ms = max(self.now_ms, at)
            operation = self.timers.pop(name)[2]
            self._carry_out(operation(self.now_ms), None)
        self.now_ms = end

    # --- decisions

    def _carry_out(self, decision: Decision[Any], completion: Completion[Any] | None) -> None:
        if decision.records and self.records_are_too_large:
            return
        for record in decision.records:
            stored = _through_bytes(record, len(self.log), self.now_ms)
            self.shard.replay(stored, len(self.log), self.now_ms)
            self.log.append(stored)
            self.written_ms.append(self.now_ms)
        if completion is not None:
            if decision.response is PARKED:
                self.parked[completion] = None
            else:
                completion.complete(decision.response)
        for earlier, answer in decision.answers:
            assert not earlier.is_done, "answered twice"
            del self.parked[earlier]
            earlier.complete(answer)

    def _ask(self, operation: Callable[[Completion[R]], Decision[R]]) -> Asked[R]:
        asked: Asked[R] = Asked()
        self._carry_out(operation(asked.completion), asked.completion)
        return asked

    def join(
        self,
        member_id: str = "",
        *,
        instance: str | None = None,
        protocols: Protocols = RANGE,
        protocol_type: str = "consumer",
        version: int = 9,
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        group: str = GROUP,
    ) -> Asked[JoinGroupResponse]:
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols],
        )
        client = Client(version, "client", "/127.0.0.1")
        return self._ask(lambda completion: self.shard.join(request, client, completion, self.now_ms))

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        instance: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        group: str = GROUP,
    ) -> Asked[SyncGroupResponse]:
        request = SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=[
                SyncGroupRequestAssignment(member_id=each, assignment=data)
                for each, data in (assignments or {}).items()
            ],
        )
        return self._ask(lambda completion: self.shard.sync(request, completion, self.now_ms))

    def heartbeat(
        self, member_id: str, generation: int, *, instance: str | None = None, group: str = GROUP
    ) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=group, generation_id=generation, member_id=member_id, group_instance_id=instance
        )
        return self._ask(lambda _: self.shard.heartbeat(request, self.now_ms)).error

    def leave(self, *members: tuple[str, str | None], group: str = GROUP) -> list[ErrorCode]:
        request = LeaveGroupRequest(
            group_id=group,
            members=[
                MemberIdentity(member_id=each, group_instance_id=instance) for each, instance in members
            ],
        )
        asked: Asked[LeaveGroupResponse] = self._ask(lambda _: self.shard.leave(request, self.now_ms))
        assert [(each.member_id, each.group_instance_id) for each in asked.answer.members] == list(members)
        return [ErrorCode(each.error_code) for each in asked.answer.members]

    # --- what several steps have in common

    @property
    def group(self) -> ClassicGroup:
        group = self.shard.groups.require(GROUP)
        assert isinstance(group, ClassicGroup)
        return group

    def new_id(self, **rest: Any) -> str:
        """The id that a dynamic member is given before it joins."""
        asked = self.join(**rest)
        assert asked.error is ErrorCode.MEMBER_ID_REQUIRED
        return asked.answer.member_id

    def stable_group(self, size: int = 2, **rest: Any) -> tuple[list[str], int]:
        """Ids of the members, the leader first, and the generation."""
        ids = [self.new_id(**rest) for _ in range(size)]
        asked = [self.join(member_id, **rest) for member_id in ids]
        self.advance(2 * DELAY_MS)
        return ids, self.assign(asked)

    def assign(self, joins: Sequence[Asked[JoinGroupResponse]]) -> int:
        """All of them sync; each is assigned its own id."""
        generation = joins[0].answer.generation_id
        ids = [each.answer.member_id for each in joins]
        leader = joins[0].answer.leader
        followers = [self.sync(each, generation) for each in ids if each != leader]
        synced = self.sync(leader, generation, {each: each.encode() for each in ids})
        assert synced.error is ErrorCode.NONE
        assert all(each.error is ErrorCode.NONE for each in followers)
        assert not self.parked
        return generation

    def described(self) -> Any:
        """Everything of the groups that outlives a coordinator."""
        return {group.group_id: _lasting(group) for group in self.shard.groups}


def _lasting(group: Any) -> Any:
    assert isinstance(group, ClassicGroup)
    return (
        group.state,
        group.generation,
        group.protocol_type,
        group.protocol_name,
        group.leader,
        group.state_since_ms,
        group.static_members,
        {
            member.member_id: (
                member.instance_id,
                member.client_id,
                member.client_host,
                member.session_timeout_ms,
                member.rebalance_timeout_ms,
                member.metadata(group.protocol_name),
                member.assignment,
            )
            for member in group.members.values()
        },
    )


def _through_bytes(record: CoordinatorRecord, offset: int, now_ms: int) -> CoordinatorRecord:
    value, key, _, _ = encode(record, now_ms)
    stored = decode(Record(offset, now_ms, key, value, ()), GROUP_KINDS)
    assert stored is not None
    assert stored == record
    return stored
