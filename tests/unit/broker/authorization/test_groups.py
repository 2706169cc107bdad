"""Groups: patterns that match only what the member may describe, and operations that are shown."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.broker.requests.allowed_operations import NOT_ASKED, ON_GROUP
from headrace.broker.requests.api import Api
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from headrace.protocol.messages.consumer_group_describe_response import (
    Assignment,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from headrace.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from headrace.protocol.messages.describe_groups_request import DescribeGroupsRequest
from headrace.protocol.messages.list_groups_request import ListGroupsRequest
from headrace.protocol.messages.sync_group_request import SyncGroupRequest
from headrace.security.acl import AclRule, Operation
from tests.unit.broker.authorization import unwritten_handlers
from tests.unit.broker.authorization.realm import (
    EVERYTHING,
    OPEN,
    SHUT,
    Realm,
    on_group,
    on_topic,
    rights_by,
)


def beat(realm: Realm, rules: list[AclRule], group: str, **fields: Any) -> Any:
    request = ConsumerGroupHeartbeatRequest(
        group_id=group, member_id="m", rebalance_timeout_ms=60_000, topic_partitions=[], **fields
    )
    return realm.ask(request, 1, rights_by(rules))


def topics_of(realm: Realm, answer: Any) -> set[str]:
    image = realm.context.metadata.image
    known = [image.topic_by_id(each.topic_id) for each in answer.assignment.topic_partitions]
    return {topic.name for topic in known if topic is not None}


def test_a_pattern_never_matches_what_the_member_may_not_describe(realm: Realm) -> None:
    realm.create("pat-open", "pat-shut")
    rules = [*on_group(Operation.READ, "pat-1", "pat-2"), *on_topic(Operation.DESCRIBE, "pat-open")]
    joined = beat(realm, rules, "pat-1", subscribed_topic_regex="pat-.*")
    assert joined.error_code == 0
    assert topics_of(realm, joined) == {"pat-open"}
    everything = beat(realm, EVERYTHING, "pat-2", subscribed_topic_regex="pat-.*")
    assert topics_of(realm, everything) == {"pat-open", "pat-shut"}, (
        "the look-up is shared, the rights are not"
    )


def test_one_denied_name_refuses_the_subscription(realm: Realm) -> None:
    rules = [*on_group(Operation.READ, "names"), *on_topic(Operation.DESCRIBE, OPEN)]
    refused = beat(realm, rules, "names", subscribed_topic_names=[OPEN, SHUT])
    assert (refused.error_code, refused.member_epoch, refused.assignment) == (29, 0, None)
    listed = realm.ask(ListGroupsRequest(), 5, rights_by(EVERYTHING))
    assert "names" not in {group.group_id for group in listed.groups}, "and makes no group"


def test_operations_on_a_group(realm: Realm) -> None:
    rules = [*on_group(Operation.READ, OPEN), *on_group(Operation.DELETE, "none-such")]
    for asked in (True, False):
        request = DescribeGroupsRequest(groups=[OPEN, SHUT], include_authorized_operations=asked)
        rows = {row.group_id: row for row in realm.ask(request, 5, rights_by(rules)).groups}
        mask = 1 << Operation.READ | 1 << Operation.DESCRIBE
        assert rows[OPEN].authorized_operations == (mask if asked else NOT_ASKED)
        assert (rows[SHUT].error_code, rows[SHUT].authorized_operations) == (30, NOT_ASKED)
    request = DescribeGroupsRequest(groups=[OPEN], include_authorized_operations=True)
    assert realm.ask(request, 5, None).groups[0].authorized_operations == ON_GROUP


def test_operations_on_a_consumer_group(realm: Realm) -> None:
    realm.create("ops")
    beat(realm, EVERYTHING, "ops", subscribed_topic_names=["ops"])
    rules = [*on_group(Operation.DESCRIBE, "ops"), *on_topic(Operation.DESCRIBE, "ops")]
    request = ConsumerGroupDescribeRequest(group_ids=["ops"], include_authorized_operations=True)
    row = realm.ask(request, 1, rights_by(rules)).groups[0]
    assert (row.error_code, row.authorized_operations) == (0, 1 << Operation.DESCRIBE)
    assert row.members[0].assignment.topic_partitions[0].topic_name == "ops"
    request = ConsumerGroupDescribeRequest(group_ids=["ops"], include_authorized_operations=True)
    hidden = realm.ask(request, 1, rights_by(on_group(Operation.DESCRIBE, "ops"))).groups[0]
    assert (hidden.error_code, hidden.members, hidden.authorized_operations) == (29, [], NOT_ASKED)


@pytest.mark.parametrize("field", ["assignment", "target_assignment"])
def test_what_a_member_has_counts_as_much_as_what_it_should_have(
    realm: Realm, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: Any = {field: Assignment(topic_partitions=[TopicPartitions(topic_name=SHUT, partitions=[0])])}
    described = ConsumerGroupDescribeResponse(
        groups=[
            DescribedGroup(group_id="hidden", members=[Member(member_id="m", **held)]),
            DescribedGroup(group_id="shown", members=[Member(subscribed_topic_names=[SHUT])]),
        ]
    )
    request = ConsumerGroupDescribeRequest(group_ids=["hidden", "shown"])
    key = ApiKey.CONSUMER_GROUP_DESCRIBE
    api = Api(key, 0, 1, ConsumerGroupDescribeRequest, lambda *_: described)
    monkeypatch.setitem(unwritten_handlers.APIS, key, api)
    rights = rights_by(on_group(Operation.DESCRIBE, "hidden", "shown"))
    rows = {row.group_id: row for row in realm.ask(request, 1, rights).groups}
    assert (rows["hidden"].error_code, rows["hidden"].members) == (29, [])
    assert (rows["shown"].error_code, len(rows["shown"].members)) == (0, 1)


@pytest.mark.parametrize("group", [OPEN, SHUT, "nowhere"])
def test_a_sync_without_a_protocol_is_refused_before_anybody_asks_for_rights(
    realm: Realm, group: str
) -> None:
    """As in Kafka. It says nothing of the group."""
    answer = realm.ask(SyncGroupRequest(group_id=group), 5, rights_by([]))
    assert answer.error_code == 23
    assert realm.ask(SyncGroupRequest(group_id=group), 4, rights_by([])).error_code == 30
