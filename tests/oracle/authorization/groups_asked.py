"""FindCoordinator, members of both protocols, DescribeGroups, ListGroups, DeleteGroups."""

from __future__ import annotations

from headrace.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from headrace.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from headrace.protocol.messages.delete_groups_request import DeleteGroupsRequest
from headrace.protocol.messages.describe_groups_request import DescribeGroupsRequest
from headrace.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from headrace.protocol.messages.heartbeat_request import HeartbeatRequest
from headrace.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from headrace.protocol.messages.list_groups_request import ListGroupsRequest
from headrace.protocol.messages.sync_group_request import SyncGroupRequest
from tests.oracle.authorization.person import Person
from tests.oracle.authorization.world import CONSUMERS, GROUPS, IDS, MEMBERS, TOPICS, World, commit_all
from tests.oracle.classic_groups_script import subscription
from tests.oracle.conversation import versions

PREFIXES = ("g-pre-", "g-shut-")


def ask(person: Person, world: World) -> None:
    del world
    _coordinators(person)
    _strangers(person)
    _members(person)
    _consumers(person)
    _patterns(person)
    _describe(person)
    _list(person)
    _delete(person)


def _coordinators(person: Person) -> None:
    for version in range(4):
        for group in ("g-lit", "g-pre-x", "g-shut"):
            person.ask(f"coordinator of {group}", FindCoordinatorRequest(key=group), version)
        for name in ("x-lit", "x-pre-x", "x-shut") if version >= 1 else ():
            asked = FindCoordinatorRequest(key=name, key_type=1)
            person.ask(f"coordinator of {name}", asked, version)
    for version in versions(FindCoordinatorRequest, 4):
        groups = FindCoordinatorRequest(coordinator_keys=[*GROUPS, "g-absent", ""])
        person.ask("coordinators of groups", groups, version)
        ids = FindCoordinatorRequest(coordinator_keys=[*IDS, "x-absent", ""], key_type=1)
        person.ask("coordinators of transactions", ids, version)


def _join(group: str, member: str = "") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=1_800_000,
        rebalance_timeout_ms=20_000,
        member_id=member,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription("lit"))],
    )


def _sync(group: str, protocol_type: str | None, protocol_name: str | None) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=group,
        generation_id=1,
        member_id="stranger",
        protocol_type=protocol_type,
        protocol_name=protocol_name,
    )


def _strangers(person: Person) -> None:
    """Members that nobody has: nothing changes."""
    for group in (*MEMBERS, "g-absent"):
        for version in versions(JoinGroupRequest):
            person.ask(f"join {group}", _join(group, "stranger"), version)
        for version in versions(SyncGroupRequest):
            protocol = ("consumer", "range") if version >= 5 else (None, None)
            person.ask(f"sync {group}", _sync(group, *protocol), version)
        person.ask(f"sync {group} without a protocol", _sync(group, None, None), 5)
        for version in versions(HeartbeatRequest):
            beat = HeartbeatRequest(group_id=group, generation_id=1, member_id="stranger")
            person.ask(f"heartbeat {group}", beat, version)
        for version in versions(LeaveGroupRequest):
            members = [MemberIdentity(member_id="stranger")] if version >= 3 else []
            leave = LeaveGroupRequest(
                group_id=group, member_id="" if version >= 3 else "stranger", members=members
            )
            person.ask(f"leave {group}", leave, version)


def _members(person: Person) -> None:
    for prefix in PREFIXES:
        group = person.fresh(f"{prefix}joined-")
        joined = person.ask(f"join a new {prefix}", _join(group), 3)
        if joined.error_code:
            continue
        fields = {"group_id": group, "generation_id": joined.generation_id, "member_id": joined.member_id}
        person.ask(f"sync a new {prefix}", SyncGroupRequest(**fields), 3)
        person.ask(f"heartbeat a new {prefix}", HeartbeatRequest(**fields), 3)
        members = [MemberIdentity(member_id=joined.member_id)]
        person.ask(f"leave a new {prefix}", LeaveGroupRequest(group_id=group, members=members), 3)


def _beat(group: str, *names: str, regex: str | None = None) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=f"member of {group}",
        member_epoch=0,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=list(names) if regex is None else None,
        subscribed_topic_regex=regex,
        topic_partitions=[],
    )


def _consumers(person: Person) -> None:
    for version in versions(ConsumerGroupHeartbeatRequest):
        for prefix in PREFIXES:
            for names in (("lit",), ("lit", "shut"), ("absent", "pre-a"), ("shut-absent",), ("pre-b",)):
                asked = _beat(person.fresh(f"{prefix}new-"), *names)
                person.ask(f"consume {' '.join(names)} in {prefix}", asked, version)
        stranger = ConsumerGroupHeartbeatRequest(
            group_id="g-pre-new", member_id="stranger", member_epoch=3, subscribed_topic_names=None
        )
        person.ask("heartbeat of a strange consumer", stranger, version)


def _patterns(person: Person) -> None:
    """What a pattern stands for is what the member may describe. Kafka looks it up after its first answer."""
    for prefix in PREFIXES:
        group = person.fresh(f"{prefix}pattern-")
        joined = person.user.quietly(_beat(group, regex="lit|shut|pre-(a|b|shut)"), 1)
        person.note(f"join by a pattern in {prefix}", error_code=joined.error_code)
        if joined.error_code:
            continue
        person.note(f"topics of a pattern in {prefix}", topics=" ".join(_assigned(person, group, joined)))


def _assigned(person: Person, group: str, joined: object) -> list[str]:
    """Of the group's one member, when two descriptions in a row say the same."""
    last: list[list[str] | None] = [None]
    epoch = [getattr(joined, "member_epoch", 0)]

    def settled() -> bool:
        beat = ConsumerGroupHeartbeatRequest(
            group_id=group, member_id=f"member of {group}", member_epoch=epoch[0]
        )
        epoch[0] = person.user.quietly(beat, 1).member_epoch
        described = person.admin.quietly(ConsumerGroupDescribeRequest(group_ids=[group]), 1)
        (member,) = described.groups[0].members
        found = sorted(topic.topic_name for topic in member.target_assignment.topic_partitions)
        same, last[0] = found == last[0] and epoch[0] > 1, found
        return same

    try:
        person.admin.wait_until(settled, 1)
    except AssertionError:
        pass  # it matches nothing, so that the epoch stays
    return last[0] or []


def _describe(person: Person) -> None:
    for version in versions(DescribeGroupsRequest):
        groups = [*GROUPS, *MEMBERS, "g-absent", "g-pre-absent"]
        asked = DescribeGroupsRequest(groups=groups, include_authorized_operations=version >= 3)
        person.ask("describe groups", asked, version)
    person.ask("describe groups without operations", DescribeGroupsRequest(groups=list(GROUPS)), 6)
    for version in versions(ConsumerGroupDescribeRequest):
        for flag in (True, False):
            names = [*CONSUMERS, "g-lit", "g-absent", "g-pre-absent"]
            wanted = ConsumerGroupDescribeRequest(group_ids=names, include_authorized_operations=flag)
            person.ask(f"describe consumer groups, operations {flag}", wanted, version)


def _list(person: Person) -> None:
    for version in versions(ListGroupsRequest):
        person.ask("list groups", ListGroupsRequest(), version)
    person.ask("list stable groups", ListGroupsRequest(states_filter=["Stable"]), 5)
    person.ask("list consumer groups", ListGroupsRequest(types_filter=["consumer"]), 5)


def _delete(person: Person) -> None:
    for version in versions(DeleteGroupsRequest):
        groups = [person.fresh(f"{prefix}gone-") for prefix in PREFIXES]
        for group in groups:
            commit_all(person.admin, group, TOPICS[:1])
        asked = DeleteGroupsRequest(
            groups_names=[*groups, *MEMBERS, "g-absent", "g-pre-absent", "g-shut-absent"]
        )
        person.ask("delete groups", asked, version)
