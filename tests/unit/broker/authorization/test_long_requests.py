"""Requests that are carried out in parts: each part is guarded, and the whole is answered as one."""

from __future__ import annotations

from collections import Counter
from typing import Any

from headrace.broker.authorization.table import GUARDS
from headrace.broker.requests.long_requests import LongRequests
from headrace.broker.requests.request_parts import is_long
from headrace.broker.requests.request_shapes import shape_of
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.message import Message
from headrace.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from headrace.protocol.messages.metadata_response import MetadataResponse
from headrace.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.protocol.messages.offset_commit_response import OffsetCommitResponse
from headrace.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from headrace.protocol.messages.offset_fetch_response import OffsetFetchResponse
from headrace.security.acl import AclRule, Operation
from tests.unit.broker.authorization.realm import (
    BOTH,
    OPEN,
    SHUT,
    Realm,
    api_of,
    on_group,
    on_topic,
    rights_by,
)

MANY = range(1300)


def ask(realm: Realm, request: Message, version: int, rules: list[AclRule], response: type[Message]) -> Any:
    shape = shape_of(request.API_KEY, version)
    assert is_long(request, shape)
    call = realm.call(version, rights_by(rules))
    served = LongRequests(realm.context, GUARDS).carry_out(
        api_of(ApiKey(request.API_KEY)), request, call, shape
    )
    return response.from_bytes(realm.cluster.run(served).to_bytes(version), version)


def test_many_topics_by_name(realm: Realm) -> None:
    names = [f"long-{number}" for number in range(333)] + [*BOTH]
    seen = [*names[:333:3], OPEN]
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False
    )
    answer = ask(realm, request, 12, on_topic(Operation.DESCRIBE, *seen), MetadataResponse)
    codes = {topic.name: topic.error_code for topic in answer.topics}
    assert len(answer.topics) == len(names)
    assert codes == {name: 29 if name not in seen else 0 if name == OPEN else 3 for name in names}


def test_many_partitions_of_several_groups(realm: Realm) -> None:
    rules = [*on_group(Operation.DESCRIBE, OPEN), *on_topic(Operation.DESCRIBE, OPEN)]
    groups = [
        OffsetFetchRequestGroup(
            group_id=group,
            topics=[OffsetFetchRequestTopics(name=name, partition_indexes=[*MANY]) for name in BOTH],
        )
        for group in BOTH
    ]
    answer = ask(realm, OffsetFetchRequest(groups=groups), 9, rules, OffsetFetchResponse)
    assert [(group.group_id, group.error_code) for group in answer.groups] == [(OPEN, 0), (SHUT, 30)]
    topics = {topic.name: topic.partitions for topic in answer.groups[0].topics}
    assert len(topics) == len(answer.groups[0].topics) == 2
    for name, code in ((OPEN, 0), (SHUT, 29)):
        assert [row.partition_index for row in topics[name]] == [*MANY]
        assert {row.error_code for row in topics[name]} == {code}
    assert answer.groups[1].topics == []


def test_many_partitions_of_topics_that_are_allowed_and_denied(realm: Realm) -> None:
    rules = [*on_group(Operation.READ, OPEN), *on_topic(Operation.READ, OPEN)]
    topics = [
        OffsetCommitRequestTopic(
            name=name, partitions=[OffsetCommitRequestPartition(partition_index=index) for index in MANY[1:]]
        )
        for name in (SHUT, OPEN)
    ]
    request = OffsetCommitRequest(group_id=OPEN, topics=topics)
    answer = ask(realm, request, 8, rules, OffsetCommitResponse)
    told = Counter(
        (topic.name, each.partition_index, each.error_code)
        for topic in answer.topics
        for each in topic.partitions
    )
    assert set(told.values()) == {1}
    assert set(told) == {(name, index, code) for name, code in ((OPEN, 3), (SHUT, 29)) for index in MANY[1:]}
