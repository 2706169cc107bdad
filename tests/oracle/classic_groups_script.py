"""JoinGroup, SyncGroup, Heartbeat, LeaveGroup, DescribeGroups, ListGroups, DeleteGroups: classic groups."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from headrace.protocol.messages.delete_groups_request import DeleteGroupsRequest
from headrace.protocol.messages.describe_groups_request import DescribeGroupsRequest
from headrace.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from headrace.protocol.messages.heartbeat_request import HeartbeatRequest
from headrace.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from headrace.protocol.messages.list_groups_request import ListGroupsRequest
from headrace.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from tests.oracle.conversation import Conversation, response_class, versions
from tests.oracle.plain import flatten

JOIN, SYNC, BEAT, LEAVE = 9, 5, 4, 5


def subscription(topic: str) -> bytes:
    """Kafka opens it, and never answers a member whose metadata it cannot read."""
    return b"\0\0" + ConsumerProtocolSubscription(topics=[topic], user_data=None).to_bytes(0)


RANGE = (("range", subscription("t")),)
SESSION_MS = 10_000
PATIENCE_SECONDS = 15.0
"""A join is answered once the group's first delay is over, or when all others have joined."""
WRONG: dict[str, dict[str, Any]] = {
    "of another generation": {"generation_id": 7},
    "as a stranger": {"member_id": "stranger"},
    "without a group": {"group_id": ""},
    "with no such group": {"group_id": "nowhere"},
}


def run(talk: Conversation) -> None:
    _wait_for_coordinator(talk)
    _one_member(talk)
    _refused_joins(talk)
    _refused_requests(talk)
    _two_members(talk)
    _static_members(talk)
    _leaving(talk)
    _listing(talk)
    _deleting(talk)


class Member:
    """A client with a connection of its own: its join may wait while others are asked."""

    def __init__(self, talk: Conversation, group: str, name: str, *, instance: str | None = None) -> None:
        self.talk = talk
        self.group = group
        self.name = name
        self.instance = instance
        self.member_id = ""
        self.generation = -1
        self.wire = talk.another(PATIENCE_SECONDS)
        self._sent: tuple[str, Message, int, int] | None = None

    def begin(self, step: str, request: Message, version: int) -> None:
        """Send, and wait for the answer later."""
        key = type(request).API_KEY
        self._sent = (step, request, version, self.wire.send_body(key, version, request.to_bytes(version)))

    def finish(self) -> Any:
        assert self._sent is not None
        step, request, version, number = self._sent
        body = self.wire.receive_body(type(request).API_KEY, version, number)
        answer: Any = response_class(request).from_bytes(body, version)
        new_id = getattr(answer, "member_id", "")
        if new_id and new_id != self.member_id:
            self.member_id = new_id
            self.talk.symbols.define(new_id, f"{self.name} of {self.group}, {_form(new_id)}")
        if getattr(answer, "generation_id", -1) >= 0:
            self.generation = answer.generation_id
        keep(self.talk, f"{self.group}: {self.name} {step}", answer, version)
        return answer

    def ask(self, step: str, request: Message, version: int) -> Any:
        self.begin(step, request, version)
        return self.finish()

    def join_request(self, version: int = JOIN, **rest: Any) -> JoinGroupRequest:
        protocols: Sequence[tuple[str, bytes]] = rest.pop("protocols", RANGE)
        fields: dict[str, Any] = {
            "group_id": self.group,
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": 20_000 if version >= 1 else -1,
            "member_id": self.member_id,
            "group_instance_id": self.instance if version >= 5 else None,
            "protocol_type": "consumer",
            "protocols": [JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols],
        }
        return JoinGroupRequest(**{**fields, **rest})

    def begin_join(self, step: str = "joins", version: int = JOIN, **rest: Any) -> None:
        """With an id: where one is required first, it is asked for."""
        if not self.member_id and self.instance is None and version >= 4:
            self.ask(f"{step}, and is given an id", self.join_request(version, **rest), version)
        self.begin(step, self.join_request(version, **rest), version)

    def join(self, step: str = "joins", version: int = JOIN, **rest: Any) -> Any:
        self.begin_join(step, version, **rest)
        return self.finish()

    def sync_request(self, version: int = SYNC, *members: Member, **rest: Any) -> SyncGroupRequest:
        fields: dict[str, Any] = {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance if version >= 3 else None,
            "protocol_type": "consumer" if version >= 5 else None,
            "protocol_name": "range" if version >= 5 else None,
            "assignments": [
                SyncGroupRequestAssignment(member_id=each.member_id, assignment=each.name.encode())
                for each in members
            ],
        }
        return SyncGroupRequest(**{**fields, **rest})

    def sync(self, step: str = "syncs", *members: Member, version: int = SYNC, **rest: Any) -> Any:
        return self.ask(step, self.sync_request(version, *members, **rest), version)

    def beat(self, step: str = "beats", version: int = BEAT, **rest: Any) -> Any:
        fields: dict[str, Any] = {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance if version >= 3 else None,
        }
        return self.ask(step, HeartbeatRequest(**{**fields, **rest}), version)

    def leave(self, step: str = "leaves", version: int = LEAVE) -> Any:
        if version < 3:
            request = LeaveGroupRequest(group_id=self.group, member_id=self.member_id)
        else:
            identity = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance)
            request = LeaveGroupRequest(group_id=self.group, members=[identity])
        return self.ask(step, request, version)


def keep(talk: Conversation, step: str, answer: Any, version: int) -> None:
    """Arrays of members have no order in Kafka."""
    for members in (getattr(answer, "members", None), *(each.members for each in _groups(answer))):
        if members:
            members.sort(key=lambda each: str(talk.symbols.of("member_id", each.member_id)))
    name = f"{step} v{version}"
    assert name not in talk.answers, f"two steps are called {name}"
    talk.answers[name] = flatten(answer, talk.symbols)


def _groups(answer: Any) -> list[Any]:
    return [each for each in getattr(answer, "groups", ()) if hasattr(each, "members")]


def _form(member_id: str) -> str:
    """What the id begins with, and how long it is."""
    return f"{member_id[:-36]}+{len(member_id[-36:])}"


def _wait_for_coordinator(talk: Conversation) -> None:
    def known() -> bool:
        found = talk.quietly(FindCoordinatorRequest(coordinator_keys=["g"], key_type=0), 4)
        if found.coordinators[0].error_code != ErrorCode.NONE:
            return False
        beat = talk.quietly(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), BEAT)
        listed = talk.quietly(ListGroupsRequest(), 5)
        return bool(beat.error_code == ErrorCode.UNKNOWN_MEMBER_ID and listed.error_code == ErrorCode.NONE)

    talk.wait_until(known, 60)


def describe(
    talk: Conversation, step: str, group: str, version: int = 6, *, operations: bool = False
) -> None:
    request = DescribeGroupsRequest(groups=[group], include_authorized_operations=operations)
    keep(talk, f"describe {group}, {step}", talk.quietly(request, version), version)


def _one_member(talk: Conversation) -> None:
    for version in versions(JoinGroupRequest):
        member = Member(talk, f"one-{version}", "member")
        member.join(version=version)
        member.join("joins again before it syncs", version=version)
        describe(talk, "before the sync", member.group)
        sync = min(version, SYNC)
        member.sync("syncs", member, version=sync)
        member.sync("syncs again", version=sync)
        describe(talk, "stable", member.group, min(version, 6), operations=version >= 3)
        beat = min(version, BEAT)
        member.beat(version=beat)
        member.join("joins again as the leader", version=version)
        member.beat("beats after that", version=beat)
        member.sync("syncs once more", member, version=sync)
        member.leave(version=min(version, LEAVE))
        member.leave("leaves again", version=min(version, LEAVE))
        describe(talk, "empty", member.group, min(version, 6))
        member.beat("beats when it is gone", version=beat)
        member.sync("syncs when it is gone", version=sync)
        member.join("joins when it is gone", version=version)
        describe(talk, "never there", f"none-{version}", min(version, 6), operations=version >= 3)


def _refused_joins(talk: Conversation) -> None:
    def refused(step: str, group: str = "refused", version: int = JOIN, **rest: Any) -> None:
        stranger = Member(talk, group, "stranger")
        stranger.ask(f"joins {step}", stranger.join_request(version, **rest), version)

    for version in versions(JoinGroupRequest):
        refused("without a group", "", version)
        refused("with an id, and no group", "nowhere", version, member_id="m")
        refused("with too short a session", "short", version, session_timeout_ms=5_999)
        refused("with too long a session", "long", version, session_timeout_ms=1_800_001)
        refused("without a protocol", f"none-{version}", version, protocols=())
        refused("without a type", f"typeless-{version}", version, protocol_type="")
        member = Member(talk, f"refusing-{version}", "member")
        member.join(version=version)
        refused("as another type", member.group, version, protocol_type="connect")
        refused("with another protocol", member.group, version, protocols=(("sticky", subscription("t")),))
        refused("as a stranger", member.group, version, member_id="stranger")
        describe(talk, "after an empty join", f"none-{version}")
    refused("as a static stranger", "refusing-9", member_id="m", group_instance_id="i")


def _refused_requests(talk: Conversation) -> None:
    member = Member(talk, "particular", "member")
    member.join()
    for version in versions(SyncGroupRequest):
        for name, rest in WRONG.items():
            member.sync(f"syncs {name}", version=version, **rest)
    member.sync("syncs as another type", protocol_type="connect")
    member.sync("syncs with another protocol", protocol_name="sticky")
    member.sync("syncs without a type", protocol_type=None)
    member.sync("syncs without a protocol", protocol_name=None)
    member.sync("syncs as an instance", group_instance_id="i")
    for version in versions(HeartbeatRequest):
        for name, rest in WRONG.items():
            member.beat(f"beats {name}", version=version, **rest)
    member.beat("beats as an instance", group_instance_id="i")


def _two_members(talk: Conversation) -> None:
    first, second = Member(talk, "two", "first"), Member(talk, "two", "second")
    protocols = (("range", subscription("1")), ("roundrobin", subscription("2")))
    first.join(protocols=protocols)
    first.sync("syncs", first)
    second.begin_join(protocols=protocols[::-1])
    _until(first, ErrorCode.REBALANCE_IN_PROGRESS)
    first.beat("beats while the other joins")
    describe(talk, "preparing", "two")
    first.sync("syncs while the other joins")
    first.join("joins with the other", protocols=protocols)
    second.finish()
    describe(talk, "completing", "two")
    second.begin("syncs before the leader", second.sync_request(), SYNC)
    first.sync("syncs as the leader", first, second)
    second.finish()
    describe(talk, "of two", "two")
    second.join("joins again unchanged", protocols=protocols[::-1])
    second.begin_join("joins again changed", protocols=(("range", subscription("3")),))
    _until(first, ErrorCode.REBALANCE_IN_PROGRESS)
    first.leave("leaves during a rebalance")
    second.finish()
    second.sync("is the leader, and syncs", second)
    describe(talk, "of the second alone", "two")


def _until(member: Member, code: ErrorCode) -> None:
    """The other's join has arrived once this one hears of it."""
    request = HeartbeatRequest(
        group_id=member.group,
        generation_id=member.generation,
        member_id=member.member_id,
        group_instance_id=member.instance,
    )
    deadline = time.monotonic() + 60
    while member.talk.quietly(request, BEAT).error_code != code:
        assert time.monotonic() < deadline, f"{code.name} did not come"
        time.sleep(0.02)


def _static_members(talk: Conversation) -> None:
    for version in (5, 8, 9):
        group = f"static-{version}"
        first = Member(talk, group, "first", instance="a")
        first.join(version=version)
        first.sync("syncs", first)
        again = Member(talk, group, "again", instance="a")
        again.join("joins in its place", version)
        again.sync("syncs in its place")
        first.beat("beats though it is fenced")
        first.sync("syncs though it is fenced")
        first.join("joins though it is fenced", version)
        first.leave("leaves though it is fenced")
        again.beat("beats in its place")
        describe(talk, "static", group)
        other = Member(talk, group, "other", instance="b")
        other.begin_join(version=version)
        _until(again, ErrorCode.REBALANCE_IN_PROGRESS)
        again.begin_join("joins with another", version)
        other.finish()
        again.finish()
        other.begin("syncs early", other.sync_request(), SYNC)
        again.sync("syncs with another", again, other)
        other.finish()
        third = Member(talk, group, "third", instance="b")
        third.join("follows the other", version)
        third.sync("syncs as the follower")
        fourth = Member(talk, group, "fourth", instance="b")
        fourth.begin_join("changes its protocol", version, protocols=(("range", subscription("x")),))
        fourth.finish()


def _leaving(talk: Conversation) -> None:
    member = Member(talk, "leaving", "member", instance="a")
    member.join()
    for version in versions(LeaveGroupRequest, 3):
        identities = [
            MemberIdentity(member_id="stranger"),
            MemberIdentity(member_id="", group_instance_id=None),
            MemberIdentity(member_id="", group_instance_id="nobody"),
            MemberIdentity(member_id="stranger", group_instance_id="a"),
            MemberIdentity(member_id=member.member_id, group_instance_id="b"),
        ]
        member.ask("leaves wrongly", LeaveGroupRequest(group_id="leaving", members=identities), version)
        for group in ("", "nowhere"):
            request = LeaveGroupRequest(group_id=group, members=identities[:1])
            member.ask(f"leaves group {group!r}", request, version)
        member.ask("leaves nobody", LeaveGroupRequest(group_id="leaving", members=[]), version)
    for version in range(3):
        for group, name in (("", "m"), ("nowhere", "m"), ("leaving", "stranger")):
            request = LeaveGroupRequest(group_id=group, member_id=name)
            member.ask(f"leaves {group!r} as {name}", request, version)
    by_instance = [MemberIdentity(member_id="", group_instance_id="a")]
    member.ask("is taken out by its instance", LeaveGroupRequest(group_id="leaving", members=by_instance), 5)
    pending = Member(talk, "leaving", "pending")
    pending.ask("is given an id", pending.join_request(), JOIN)
    pending.leave("leaves without having joined")


def _listing(talk: Conversation) -> None:
    def ask(step: str, version: int, **filters: list[str]) -> None:
        answer = talk.quietly(ListGroupsRequest(**filters), version)
        answer.groups = sorted(
            (each for each in answer.groups if each.group_id in ("two", "leaving", "one-9")),
            key=lambda each: str(each.group_id),
        )
        keep(talk, f"list {step}", answer, version)

    for version in versions(ListGroupsRequest):
        ask("everything", version)
    for states in (["Stable"], ["stable", "EMPTY"], ["nonsense"], [" Stable "]):
        ask(f"in {states}", 4, states_filter=states)
    for types in (["classic"], ["Consumer"], ["CLASSIC", "share"], ["nonsense"]):
        ask(f"of {types}", 5, types_filter=types)


def _deleting(talk: Conversation) -> None:
    for version in versions(DeleteGroupsRequest):
        request = DeleteGroupsRequest(groups_names=["two", "nowhere", f"one-{version}", ""])
        answer = talk.quietly(request, version)
        answer.results.sort(key=lambda each: str(each.group_id))
        keep(talk, "delete several", answer, version)
        describe(talk, f"deleted {version}", f"one-{version}")
