"""ConsumerGroupHeartbeat and ConsumerGroupDescribe: groups of the server-side protocol, and of both."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any
from uuid import UUID

from headrace.coordinators.partitioning import partition_for
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from headrace.protocol.messages.consumer_group_heartbeat_request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from headrace.protocol.messages.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
    TopicPartition,
)
from headrace.protocol.messages.delete_groups_request import DeleteGroupsRequest
from headrace.protocol.messages.describe_groups_request import DescribeGroupsRequest
from headrace.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from headrace.protocol.messages.list_groups_request import ListGroupsRequest
from headrace.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.protocol.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from headrace.protocol.messages.sync_group_request import SyncGroupRequestAssignment
from tests.oracle.classic_groups_script import JOIN, Member, keep, subscription
from tests.oracle.conversation import Conversation, versions

BEAT = 1
OFFSETS_PARTITIONS = 50
"""Of both brokers, by default."""
TOPIC = "of-consumers"
Owned = Sequence[tuple[UUID, Sequence[int]]]
CLASSIC = (("range", subscription(TOPIC)),)


def run(talk: Conversation) -> None:
    wait_for_coordinator(talk)
    topic_id = talk.topic(TOPIC, 4)
    _refused(talk)
    _life_of_a_member(talk)
    _two_members(talk, topic_id)
    _fencing(talk, topic_id)
    _static_members(talk)
    _subscriptions(talk, topic_id)
    _patterns(talk)
    _offsets(talk, topic_id)
    _classic_members(talk)
    _changing_protocols(talk)
    _admin(talk)


class Consumer:
    def __init__(self, talk: Conversation, group: str, name: str, *, instance: str | None = None) -> None:
        self.talk = talk
        self.group = group
        self.name = name
        self.instance = instance
        self.epoch = 0

    def request(self, version: int = BEAT, **rest: Any) -> ConsumerGroupHeartbeatRequest:
        joins = self.epoch == 0
        fields: dict[str, Any] = {
            "group_id": self.group,
            "member_id": self.name,
            "member_epoch": self.epoch,
            "instance_id": self.instance,
            "rebalance_timeout_ms": 30_000 if joins else -1,
            "subscribed_topic_names": [TOPIC] if joins else None,
            "topic_partitions": [] if joins else None,
        }
        owned: Owned | None = rest.pop("owned", None)
        if owned is not None:
            fields["topic_partitions"] = [
                TopicPartitions(topic_id=topic_id, partitions=list(numbers)) for topic_id, numbers in owned
            ]
        return ConsumerGroupHeartbeatRequest(**{**fields, **rest})

    def beat(self, step: str, version: int = BEAT, **rest: Any) -> Any:
        answer = self.talk.ask(f"{self.group}: {self.name} {step}", self.request(version, **rest), version)
        if answer.error_code == ErrorCode.NONE:
            self.epoch = answer.member_epoch
        return answer

    def leave(self, step: str, epoch: int = -1, **rest: Any) -> None:
        fields = {"group_id": self.group, "member_id": self.name, "instance_id": self.instance, **rest}
        request = ConsumerGroupHeartbeatRequest(member_epoch=epoch, **fields)
        self.talk.ask(f"{self.group}: {self.name} {step}", request, BEAT)
        self.epoch = 0


def describe(talk: Conversation, step: str, *groups: str, version: int = 1, operations: bool = False) -> None:
    request = ConsumerGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=operations)
    answer = talk.quietly(request, version)
    for group in answer.groups:
        group.members.sort(key=lambda each: str(talk.symbols.of("member_id", each.member_id)))

    keep(talk, f"describe {', '.join(groups)}, {step}", answer, version)


def wait_for_coordinator(talk: Conversation) -> None:
    def known() -> bool:
        found = talk.quietly(FindCoordinatorRequest(coordinator_keys=["g"], key_type=0), 4)
        if found.coordinators[0].error_code != ErrorCode.NONE:
            return False
        beat = talk.quietly(ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=1), BEAT)
        return bool(beat.error_code == ErrorCode.GROUP_ID_NOT_FOUND)

    talk.wait_until(known, 60)


def wait_for_topic(talk: Conversation, topic: str, group: str) -> None:
    """Until the group's coordinator has heard of the topic: of Kafka's, each partition's hears for itself.
    Another group of the same coordinator asks."""
    place = partition_for(group, OFFSETS_PARTITIONS)
    others = (f"{group}-{number}" for number in count())
    other = next(each for each in others if partition_for(each, OFFSETS_PARTITIONS) == place)

    def known() -> bool:
        asking = Consumer(talk, other, "m")
        answer = talk.quietly(asking.request(subscribed_topic_names=[topic]), BEAT)
        asking.epoch = -1
        talk.quietly(asking.request(), BEAT)
        return answer.assignment is not None and bool(answer.assignment.topic_partitions)

    talk.wait_until(known)


def _refused(talk: Conversation) -> None:
    wrong: dict[str, dict[str, Any]] = {
        "without a group": {"group_id": ""},
        "with a blank group": {"group_id": " "},
        "without an id": {"member_id": ""},
        "with an empty instance": {"instance_id": ""},
        "with an empty rack": {"rack_id": ""},
        "without a timeout": {"rebalance_timeout_ms": -1},
        "without partitions": {"topic_partitions": None},
        "with partitions": {"owned": [(UUID(int=1), [0])]},
        "without topics": {"subscribed_topic_names": None},
        "with an epoch of -3": {"member_epoch": -3},
        "away without an instance": {"member_epoch": -2},
        "with an assignor": {"server_assignor": "sticky"},
        "with an epoch and no group": {"member_epoch": 3},
        "leaving no group": {"member_epoch": -1},
    }
    for version in versions(ConsumerGroupHeartbeatRequest):
        for step, change in wrong.items():
            if version == 0 and step == "without an id":
                continue
            Consumer(talk, f"declined-{version}", "m").beat(step, version, **change)
    for regex in ("(a", "a**", "[b-a]", "(?=a)", "\\1"):
        Consumer(talk, "declined", "m").beat(f"with {regex}", subscribed_topic_regex=regex)


def _life_of_a_member(talk: Conversation) -> None:
    for version in versions(ConsumerGroupHeartbeatRequest):
        one = Consumer(talk, f"single-{version}", "m1")
        one.beat("joins", version, rack_id="r", server_assignor="range")
        one.beat("reports", version)
        one.beat(
            "reports everything",
            version,
            rebalance_timeout_ms=30_000,
            subscribed_topic_names=[TOPIC],
            topic_partitions=[],
        )
        describe(talk, "stable", one.group, version=version, operations=True)
        one.beat("subscribes to something else", version, subscribed_topic_names=["not-there"], owned=[])
        describe(talk, "subscribed to something else", one.group, version=version)
        one.leave(f"leaves {version}")
        one.leave(f"leaves {version} again")
        describe(talk, "empty", one.group, version=version)
        describe(talk, "not there", "nowhere", "", version=version, operations=True)
        one.epoch = 1
        one.beat("reports when it is gone", version)


def _two_members(talk: Conversation, topic_id: UUID) -> None:
    one, two = Consumer(talk, "pair", "m1"), Consumer(talk, "pair", "m2")
    one.beat("joins")
    two.beat("joins")
    describe(talk, "before the first knows", "pair")
    one.beat("hears of it")
    describe(talk, "while the first gives up", "pair")
    one.beat("still has all", owned=[(topic_id, range(4))])
    two.beat("waits")
    one.beat("has given up", owned=[(topic_id, [0, 1])])
    describe(talk, "before the second knows", "pair")
    two.beat("gets the rest")
    describe(talk, "stable", "pair")
    two.leave("leaves")
    describe(talk, "when the second is gone", "pair")
    one.beat("gets all back")
    one.beat("has all back", owned=[(topic_id, range(4))])
    describe(talk, "with one", "pair")


def _fencing(talk: Conversation, topic_id: UUID) -> None:
    one, two = Consumer(talk, "fencing", "m1"), Consumer(talk, "fencing", "m2")
    one.beat("joins")
    two.beat("joins")
    one.beat("gives up", owned=[(topic_id, range(4))])
    one.beat("has given up", owned=[(topic_id, [0, 1])])
    two.beat("gets the rest")
    one.beat("is ahead", member_epoch=9)
    one.beat("is one behind", member_epoch=one.epoch - 1, owned=[(topic_id, [0])])
    one.beat("is one behind and has too much", member_epoch=1, owned=[(topic_id, [3])])
    one.beat("is one behind and says nothing", member_epoch=1)
    Consumer(talk, "fencing", "stranger").beat("reports", member_epoch=1)
    one.epoch = 0
    one.beat("joins again")
    describe(talk, "in the end", "fencing")


def _static_members(talk: Conversation) -> None:
    one = Consumer(talk, "instances", "m1", instance="i1")
    one.beat("joins")
    Consumer(talk, "instances", "m2", instance="i1").beat("joins in its place too early")
    Consumer(talk, "instances", "m2", instance="i1").beat("reports in its place", member_epoch=1)
    Consumer(talk, "instances", "m2", instance="i2").beat("reports as nobody", member_epoch=1)
    Consumer(talk, "instances", "m2", instance="i1").leave("leaves in its place")
    Consumer(talk, "instances", "m2", instance="i2").leave("leaves as nobody")
    one.leave("is away", -2)
    describe(talk, "while it is away", "instances")
    two = Consumer(talk, "instances", "m2", instance="i1")
    two.beat("joins in its place")
    one.epoch = 1
    one.beat("reports too late")
    describe(talk, "replaced", "instances")
    two.leave("leaves for good")
    describe(talk, "empty", "instances")


def _subscriptions(talk: Conversation, topic_id: UUID) -> None:
    one = Consumer(talk, "subscriptions", "m1")
    one.beat("joins without topics", subscribed_topic_names=[])
    describe(talk, "without topics", "subscriptions")
    one.beat("takes a topic", subscribed_topic_names=[TOPIC, TOPIC], owned=[])
    one.beat("drops it and still has it", subscribed_topic_names=[], owned=[(topic_id, range(4))])
    describe(talk, "while it gives up", "subscriptions")
    one.beat("has given up", owned=[])
    describe(talk, "dropped", "subscriptions")


def _patterns(talk: Conversation) -> None:
    """Kafka looks a pattern up by the way, so the assignment comes with some later heartbeat."""
    one = Consumer(talk, "patterns", "m1")
    one.beat("joins", subscribed_topic_names=None, subscribed_topic_regex=f"{TOPIC[:-1]}.|nothing")

    def assigned() -> bool:
        answer = talk.quietly(one.request(), BEAT)
        one.epoch = answer.member_epoch
        described = talk.quietly(ConsumerGroupDescribeRequest(group_ids=["patterns"]), 1).groups[0]
        return bool(described.members[0].assignment.topic_partitions)

    talk.wait_until(assigned)
    one.beat("reports")
    describe(talk, "in the end", "patterns")
    one.leave("leaves")


def _offsets(talk: Conversation, topic_id: UUID) -> None:
    one = Consumer(talk, "committing", "m1")
    one.beat("joins")

    def commit(step: str, version: int, **rest: Any) -> None:
        topic = OffsetCommitRequestTopic(
            name=TOPIC if version < 10 else "",
            topic_id=topic_id if version >= 10 else UUID(int=0),
            partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=7)],
        )
        fields: dict[str, Any] = {
            "group_id": "committing",
            "member_id": "m1",
            "generation_id_or_member_epoch": one.epoch,
        }
        talk.ask(f"commit {step}", OffsetCommitRequest(**{**fields, **rest}, topics=[topic]), version)

    for version in versions(OffsetCommitRequest, 8):
        commit("with the epoch", version)
        commit("with a later epoch", version, generation_id_or_member_epoch=one.epoch + 1)
        commit("with an earlier epoch", version, generation_id_or_member_epoch=one.epoch - 1)
        commit("as a stranger", version, member_id="m2")
        commit("as nobody", version, member_id="", generation_id_or_member_epoch=-1)
    for version in versions(OffsetFetchRequest, 9):
        for name, epoch in (("m1", 1), ("m1", 2), ("m1", 3), ("m2", 1), (None, -1)):
            group = OffsetFetchRequestGroup(
                group_id="committing", member_id=name, member_epoch=epoch, topics=None
            )
            talk.ask(f"fetch offsets as {name} at {epoch}", OffsetFetchRequest(groups=[group]), version)


def _classic_members(talk: Conversation) -> None:
    """A classic member in a group of the other protocol."""
    new, old = Consumer(talk, "mixed", "new"), Member(talk, "mixed", "old")
    new.beat("joins")
    old.join(protocols=CLASSIC)
    describe(talk, "with both", "mixed")
    new.beat("hears of it")
    new.beat("has given up", owned=[(next(iter(_ids(talk))), [0, 1])])
    old.sync("syncs")
    old.beat("is told to join again")
    old.join("joins again", protocols=CLASSIC)
    old.sync("syncs again")
    old.beat("is content")
    old.beat("is of another generation", generation_id=99)
    old.sync("syncs with another protocol", protocol_name="sticky")
    old.sync("syncs as another type", protocol_type="connect")
    old.sync("syncs in another generation", generation_id=99)
    Member(talk, "mixed", "stranger").beat("beats", member_id="stranger", generation_id=1)
    Member(talk, "mixed", "as the new one").beat("beats", member_id="new", generation_id=new.epoch)
    stranger = Member(talk, "mixed", "third")
    stranger.ask("joins as another type", stranger.join_request(JOIN, protocol_type="connect"), JOIN)
    other = (("sticky", subscription(TOPIC)),)
    stranger.ask("joins with another protocol", stranger.join_request(JOIN, protocols=other), JOIN)
    describe(talk, "in the end", "mixed")
    old.leave()
    describe(talk, "when the old one is gone", "mixed")


def _ids(talk: Conversation) -> list[UUID]:
    return [talk.metadata(TOPIC).topic_id]


def _changing_protocols(talk: Conversation) -> None:
    old = Member(talk, "changing", "old")
    old.join(protocols=CLASSIC)
    # With it, nothing is left to the order in which Kafka's hash map has the members.
    given = ConsumerProtocolAssignment(
        assigned_partitions=[TopicPartition(topic=TOPIC, partitions=[0, 1])], user_data=None
    )
    mine = SyncGroupRequestAssignment(member_id=old.member_id, assignment=b"\0\0" + given.to_bytes(0))
    old.sync("syncs", assignments=[mine])
    new = Consumer(talk, "changing", "new")
    new.epoch = 1
    new.beat("reports to a classic group")
    new.leave("leaves a classic group")
    describe(talk, "classic", "changing")
    new.beat("joins", member_epoch=0, rebalance_timeout_ms=30_000, subscribed_topic_names=[TOPIC], owned=[])
    describe(talk, "upgraded", "changing")
    old.beat("hears of it")
    old.join("joins the new one", protocols=CLASSIC)
    old.sync("syncs with the new one")
    new.leave("leaves")
    talk.wait_until(lambda: _classic_state(talk, "changing") != "Dead")
    describe(talk, "downgraded", "changing")
    old.beat("hears that it is classic again")
    old.join("joins the classic one", protocols=CLASSIC)
    old.sync("syncs with the classic one", old)
    old.leave("leaves at last")
    Consumer(talk, "changing", "again").beat("joins the empty group")
    describe(talk, "of one protocol again", "changing")


def _classic_state(talk: Conversation, group: str) -> str:
    return str(talk.quietly(DescribeGroupsRequest(groups=[group]), 5).groups[0].group_state)


def _admin(talk: Conversation) -> None:
    for version in versions(ListGroupsRequest, 4):
        answer = talk.quietly(ListGroupsRequest(), version)
        answer.groups = sorted(
            (each for each in answer.groups if each.group_id in ("pair", "instances", "mixed")),
            key=lambda each: str(each.group_id),
        )

        keep(talk, "list consumer groups", answer, version)
    answer = talk.quietly(DeleteGroupsRequest(groups_names=["pair", "instances"]), 2)
    answer.results.sort(key=lambda each: str(each.group_id))

    keep(talk, "delete consumer groups", answer, 2)
    talk.ask("describe classically", DescribeGroupsRequest(groups=["pair"]), 6)
