"""Offsets of topics that are named by id, and of groups that are refused beside others."""

from __future__ import annotations

from uuid import UUID

import pytest

from headrace.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from headrace.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.protocol.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from headrace.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from headrace.security.acl import Operation
from tests.unit.broker.authorization.realm import BOTH, OPEN, SHUT, Realm, on_group, on_topic, rights_by

NOBODY = UUID(int=321)


def ids(realm: Realm) -> list[UUID]:
    known = [realm.context.metadata.image.topic(name) for name in BOTH]
    return [topic.topic_id for topic in known if topic is not None] + [NOBODY]


def test_commits_by_id(realm: Realm) -> None:
    rules = [*on_group(Operation.READ, OPEN), *on_topic(Operation.READ, OPEN)]
    topics = [
        OffsetCommitRequestTopic(topic_id=each, partitions=[OffsetCommitRequestPartition(committed_offset=7)])
        for each in ids(realm)
    ]
    answer = realm.ask(OffsetCommitRequest(group_id=OPEN, topics=topics), 10, rights_by(rules))
    codes = {topic.topic_id: topic.partitions[0].error_code for topic in answer.topics}
    assert codes == dict(zip(ids(realm), (0, 29, 100), strict=True))
    shut = next(topic for topic in answer.topics if topic.partitions[0].error_code == 29)
    assert shut.name == ""


@pytest.mark.parametrize("everything", [False, True])
def test_fetches_by_id(realm: Realm, everything: bool) -> None:
    rules = [*on_group(Operation.DESCRIBE, OPEN), *on_topic(Operation.DESCRIBE, OPEN)]
    topics = [OffsetFetchRequestTopics(topic_id=each, partition_indexes=[0]) for each in ids(realm)]
    groups = [
        OffsetFetchRequestGroup(group_id=name, topics=None if everything else [*topics]) for name in BOTH
    ]
    answer = realm.ask(OffsetFetchRequest(groups=groups), 10, rights_by(rules))
    assert {group.group_id: group.error_code for group in answer.groups} == {OPEN: 0, SHUT: 30}
    rows = {
        (group.group_id, topic.topic_id): (
            topic.partitions[0].error_code,
            topic.partitions[0].committed_offset,
        )
        for group in answer.groups
        for topic in group.topics
    }
    known, hidden, nobody = ids(realm)
    if everything:
        assert rows == {(OPEN, known): (0, 7)}
    else:
        assert rows == {(OPEN, known): (0, 7), (OPEN, hidden): (29, -1), (OPEN, nobody): (100, -1)}


def test_before_groups_were_several(realm: Realm) -> None:
    rules = [*on_group(Operation.DESCRIBE, OPEN), *on_topic(Operation.DESCRIBE, OPEN)]
    topics = [OffsetFetchRequestTopic(name=name, partition_indexes=[0]) for name in BOTH]
    answer = realm.ask(OffsetFetchRequest(group_id=OPEN, topics=[*topics]), 5, rights_by(rules))
    rows = {topic.name: topic.partitions[0] for topic in answer.topics}
    assert {name: (row.error_code, row.committed_offset) for name, row in rows.items()} == {
        OPEN: (0, 7),
        SHUT: (29, -1),
    }
    refused = realm.ask(OffsetFetchRequest(group_id=SHUT, topics=[*topics]), 5, rights_by(rules))
    assert (refused.error_code, refused.topics) == (30, [])
    oldest = realm.ask(OffsetFetchRequest(group_id=SHUT, topics=[*topics]), 1, rights_by(rules))
    assert [topic.partitions[0].error_code for topic in oldest.topics] == [30, 30]


@pytest.mark.parametrize("everything", [False, True])
def test_a_group_that_refuses_the_member_says_only_that(realm: Realm, everything: bool) -> None:
    """Whatever topics of it are denied."""
    joins = ConsumerGroupHeartbeatRequest(
        group_id="fenced",
        member_id="m",
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[OPEN],
        topic_partitions=[],
    )
    realm.ask(joins, 1, None)
    topics = [OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in BOTH]
    group = OffsetFetchRequestGroup(
        group_id="fenced", member_id="stranger", member_epoch=1, topics=None if everything else topics
    )
    rules = [*on_group(Operation.DESCRIBE, "fenced"), *on_topic(Operation.DESCRIBE, OPEN)]
    answer = realm.ask(OffsetFetchRequest(groups=[group]), 9, rights_by(rules))
    assert [(each.error_code, each.topics) for each in answer.groups] == [(25, [])]


def test_a_group_that_cannot_be_asked_says_only_that(realm: Realm) -> None:
    rules = [*on_group(Operation.DELETE, "none-such"), *on_topic(Operation.READ, OPEN)]
    topics = [
        OffsetDeleteRequestTopic(name=name, partitions=[OffsetDeleteRequestPartition()]) for name in BOTH
    ]
    answer = realm.ask(OffsetDeleteRequest(group_id="none-such", topics=topics), 0, rights_by(rules))
    assert (answer.error_code, answer.topics) == (69, [])
