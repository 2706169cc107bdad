"""Where Kafka answers in the order of the request, so is what is partly denied."""

from __future__ import annotations

import pytest

from headrace.broker.authorization.needed_rights import Right
from headrace.protocol.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from headrace.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from headrace.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from headrace.protocol.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from headrace.security.acl import Operation, ResourceType
from tests.unit.broker.authorization.realm import OPEN, SHUT, Realm, allow, on_group, on_topic, rights_by

ORDERS = [[SHUT, OPEN, "absent"], [OPEN, SHUT, "absent"], ["absent", SHUT, OPEN]]


@pytest.mark.parametrize("names", ORDERS)
@pytest.mark.parametrize("key_type", [0, 1])
def test_coordinators(realm: Realm, names: list[str], key_type: int) -> None:
    kind = ResourceType.TRANSACTIONAL_ID if key_type else ResourceType.GROUP
    rights = rights_by([allow(Right(Operation.DESCRIBE, kind), OPEN)])
    answer = realm.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=[*names]), 6, rights)
    assert [row.key for row in answer.coordinators] == names
    assert [row.error_code == 0 for row in answer.coordinators] == [name == OPEN for name in names]


@pytest.mark.parametrize("names", ORDERS)
def test_offsets_of_groups(realm: Realm, names: list[str]) -> None:
    groups = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in names]
    answer = realm.ask(OffsetFetchRequest(groups=groups), 9, rights_by(on_group(Operation.DESCRIBE, OPEN)))
    assert [group.group_id for group in answer.groups] == names
    assert [group.error_code for group in answer.groups] == [0 if name == OPEN else 30 for name in names]


@pytest.mark.parametrize("names", ORDERS)
def test_transactions(realm: Realm, names: list[str]) -> None:
    rights = rights_by([allow(Right(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID), OPEN)])
    answer = realm.ask(DescribeTransactionsRequest(transactional_ids=[*names]), 0, rights)
    assert [row.transactional_id for row in answer.transaction_states] == names
    assert [row.error_code for row in answer.transaction_states] == [
        0 if name == OPEN else 53 for name in names
    ]


@pytest.mark.parametrize("names", ORDERS)
def test_producers(realm: Realm, names: list[str]) -> None:
    topics = [TopicRequest(name=name, partition_indexes=[0]) for name in names]
    rights = rights_by(on_topic(Operation.READ, OPEN))
    answer = realm.ask(DescribeProducersRequest(topics=topics), 0, rights)
    assert [row.name for row in answer.topics] == names
    assert [row.partitions[0].error_code for row in answer.topics] == [
        0 if name == OPEN else 29 for name in names
    ]
