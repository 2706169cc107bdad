"""What Metadata and DescribeTopicPartitions tell a client whose rights end somewhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

import pytest

from headrace.broker.handlers import metadata as handler
from headrace.broker.requests.allowed_operations import NOT_ASKED, ON_CLUSTER, ON_TOPIC
from headrace.broker.requests.long_answers import EncodedRows
from headrace.core.ids import NO_TOPIC_ID
from headrace.protocol.messages.describe_cluster_request import DescribeClusterRequest
from headrace.protocol.messages.describe_topic_partitions_request import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from headrace.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from headrace.protocol.messages.metadata_response import MetadataResponse
from headrace.security.acl import AclRule, Operation
from tests.unit.broker.authorization.realm import (
    EVERYTHING,
    OPEN,
    SHUT,
    Realm,
    on_cluster,
    on_topic,
    rights_by,
)

DESCRIBE_BIT = 1 << Operation.DESCRIBE
SEES_OPEN = on_topic(Operation.DESCRIBE, OPEN)


def named(*names: str) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=name) for name in names]


def ask(realm: Realm, request: MetadataRequest, version: int, rules: Iterable[AclRule] | None) -> Any:
    """As it arrives at the client."""
    answer = realm.ask(request, version, None if rules is None else rights_by(rules))
    return MetadataResponse.from_bytes(answer.to_bytes(version), version)


def told(answer: MetadataResponse) -> dict[str | None, int]:
    names = [topic.name for topic in answer.topics]
    assert len(names) == len(set(names))
    return {topic.name: topic.error_code for topic in answer.topics}


def id_of(realm: Realm, name: str) -> UUID:
    topic = realm.context.metadata.image.topic(name)
    assert topic is not None
    return topic.topic_id


@pytest.mark.parametrize("version", range(13))
def test_by_name_a_denied_topic_looks_like_one_that_is_not_there(realm: Realm, version: int) -> None:
    """In every version, also where none is left to be served: an empty list would ask for all."""
    for rules in ([], SEES_OPEN):
        request = MetadataRequest(topics=named(OPEN, SHUT, "nowhere"), allow_auto_topic_creation=False)
        answer = ask(realm, request, version, rules)
        rows = {topic.name: topic for topic in answer.topics}
        assert set(rows) == {OPEN, SHUT, "nowhere"}
        assert rows[OPEN].error_code == (0 if rules else 29)
        rows[SHUT].name = "nowhere"
        assert rows[SHUT] == rows["nowhere"]
        assert (rows[SHUT].error_code, rows[SHUT].topic_id, rows[SHUT].partitions) == (29, NO_TOPIC_ID, [])
        assert answer.brokers, "where the brokers are may be known to all"


def test_in_version_0_the_denied_do_not_become_all(realm: Realm) -> None:
    """There an empty list asks for all topics, and this client may see one that it did not ask for."""
    request = MetadataRequest(topics=named(SHUT), allow_auto_topic_creation=False)
    assert told(ask(realm, request, 0, SEES_OPEN)) == {SHUT: 29}


def test_who_names_a_topic_hears_no_id_even_if_it_gives_one(realm: Realm) -> None:
    given = MetadataRequestTopic(name=SHUT, topic_id=id_of(realm, SHUT))
    answer = ask(realm, MetadataRequest(topics=[given]), 12, SEES_OPEN)
    assert [(topic.name, topic.topic_id) for topic in answer.topics] == [(SHUT, NO_TOPIC_ID)]


def test_by_id_a_denied_topic_has_no_name(realm: Realm) -> None:
    ids = [id_of(realm, OPEN), id_of(realm, SHUT), UUID(int=99)]
    request = MetadataRequest(topics=[MetadataRequestTopic(topic_id=each, name=None) for each in ids])
    answer = ask(realm, request, 12, SEES_OPEN)
    rows = {topic.topic_id: (topic.name, topic.error_code, len(topic.partitions)) for topic in answer.topics}
    assert rows == {ids[0]: (OPEN, 0, 1), ids[1]: (None, 29, 0), ids[2]: (None, 100, 0)}


def test_versions_that_cannot_ask_by_id_refuse_whatever_exists(realm: Realm) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(topic_id=id_of(realm, SHUT), name=None)])
    answer = realm.ask(request, 10, rights_by([]))
    assert [topic.error_code for topic in answer.topics] == [42]


@pytest.mark.parametrize("version", [0, 1, 8, 12])
@pytest.mark.parametrize("few", [handler.FEW_TOPICS, 1], ids=["at once", "in slices"])
def test_of_all_topics_those_that_may_be_described(
    realm: Realm, version: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler, "FEW_TOPICS", few)
    everything = MetadataRequest(topics=[] if version == 0 else None)
    assert told(ask(realm, everything, version, SEES_OPEN)) == {OPEN: 0}
    assert told(ask(realm, everything, version, [])) == {}
    assert {OPEN, SHUT} <= set(told(ask(realm, everything, version, EVERYTHING)))
    assert told(ask(realm, everything, version, SEES_OPEN)) == {OPEN: 0}, (
        "nothing is left of another's rights"
    )


@pytest.mark.parametrize("wide", [False, True], ids=["few partitions", "encoded rows"])
def test_operations_are_told_of_topics_that_do_not_exist_too(
    realm: Realm, wide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in Kafka: they follow from rules about names. Of what is denied none are told."""
    if wide:
        monkeypatch.setattr(handler, "FEW_PARTITIONS", 0)
    rules = on_topic(Operation.DESCRIBE, OPEN, "nowhere", "not a name")
    request = MetadataRequest(
        topics=named(OPEN, "nowhere", "not a name", SHUT, "elsewhere"),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )
    answer = ask(realm, request, 12, rules)
    rows = {topic.name: (topic.error_code, topic.topic_authorized_operations) for topic in answer.topics}
    assert rows == {
        OPEN: (0, DESCRIBE_BIT),
        "nowhere": (3, DESCRIBE_BIT),
        "not a name": (17, DESCRIBE_BIT),
        SHUT: (29, NOT_ASKED),
        "elsewhere": (29, NOT_ASKED),
    }


@pytest.mark.parametrize("wide", [False, True], ids=["few partitions", "encoded rows"])
def test_rows_that_are_kept_say_nothing_of_other_clients(
    realm: Realm, wide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operations of each client are its own, by name and of all, in any order of clients."""
    if wide:
        monkeypatch.setattr(handler, "FEW_PARTITIONS", 0)
        monkeypatch.setattr(handler, "FEW_TOPICS", 0)
    realm.context.answers.forget()
    clients: list[tuple[list[AclRule] | None, int]] = [
        (None, ON_TOPIC),
        (on_topic(Operation.DESCRIBE, OPEN), DESCRIBE_BIT),
        (EVERYTHING, ON_TOPIC),
        (on_topic(Operation.READ, OPEN), DESCRIBE_BIT | 1 << Operation.READ),
    ]
    for version in (8, 9, 12):
        for rules, mask in (*clients, *reversed(clients)):
            for topics in (named(OPEN), named(OPEN, SHUT), None):
                for asked in (True, False):
                    request = MetadataRequest(
                        topics=topics and [*topics],
                        include_topic_authorized_operations=asked,
                    )
                    answer = ask(realm, request, version, rules)
                    rows = {topic.name: topic.topic_authorized_operations for topic in answer.topics}
                    assert rows[OPEN] == (mask if asked else NOT_ASKED)
                    if rules not in (None, EVERYTHING):
                        assert rows.get(SHUT, NOT_ASKED) == NOT_ASKED, "a denied topic has none to show"


def test_denied_rows_join_encoded_ones(realm: Realm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handler, "FEW_PARTITIONS", 0)
    answer = realm.ask(MetadataRequest(topics=named(SHUT, OPEN)), 12, rights_by(SEES_OPEN))
    assert isinstance(answer.topics, EncodedRows)
    assert told(MetadataResponse.from_bytes(answer.to_bytes(12), 12)) == {OPEN: 0, SHUT: 29}


def test_operations_on_the_cluster(realm: Realm) -> None:
    """0 for a client that may do something, but not describe the cluster."""
    for rules, mask in (
        ([], 0),
        (on_cluster(Operation.CREATE), 0),
        (on_cluster(Operation.DESCRIBE), DESCRIBE_BIT),
        (EVERYTHING, ON_CLUSTER),
        (None, ON_CLUSTER),
    ):
        rights = None if rules is None else rights_by(rules)
        metadata = MetadataRequest(topics=[], include_cluster_authorized_operations=True)
        assert realm.ask(metadata, 8, rights).cluster_authorized_operations == mask
        cluster = DescribeClusterRequest(include_cluster_authorized_operations=True)
        described = realm.ask(cluster, 1, rights)
        assert described.cluster_authorized_operations == mask
        assert described.brokers
    asks_nothing = DescribeClusterRequest()
    assert realm.ask(asks_nothing, 1, rights_by([])).cluster_authorized_operations == NOT_ASKED


def test_a_question_creates_only_what_the_client_may_create(realm: Realm) -> None:
    image = realm.context.metadata.image
    sees = on_topic(Operation.DESCRIBE, "born", "unborn")
    rules = [*sees, *on_topic(Operation.CREATE, "born")]
    answer = realm.ask(MetadataRequest(topics=named("born", "unborn")), 12, rights_by(rules))
    assert told(answer) == {"born": 0, "unborn": 29}
    image = realm.context.metadata.image
    assert image.topic("born") is not None
    assert image.topic("unborn") is None
    forbids = MetadataRequest(topics=named("unborn"), allow_auto_topic_creation=False)
    assert told(realm.ask(forbids, 12, rights_by(sees))) == {"unborn": 3}
    hidden = MetadataRequest(topics=named("unborn"))
    assert told(realm.ask(hidden, 12, rights_by(on_cluster(Operation.CREATE)))) == {"unborn": 29}
    assert realm.context.metadata.image.topic("unborn") is None


def pages(realm: Realm, rules: Iterable[AclRule], **fields: Any) -> Any:
    return realm.ask(DescribeTopicPartitionsRequest(**fields), 0, rights_by(rules))


def test_pages_leave_out_what_may_not_be_described(realm: Realm) -> None:
    realm.create("page-a", "page-b", "page-c")
    rules = on_topic(Operation.DESCRIBE, "page-a", "page-c")
    first = pages(realm, rules, response_partition_limit=1)
    assert [topic.name for topic in first.topics] == ["page-a"]
    assert first.topics[0].topic_authorized_operations == DESCRIBE_BIT
    assert (first.next_cursor.topic_name, first.next_cursor.partition_index) == ("page-c", 0)
    cursor = Cursor(topic_name=first.next_cursor.topic_name, partition_index=0)
    second = pages(realm, rules, cursor=cursor)
    assert [topic.name for topic in second.topics] == ["page-c"]
    assert second.next_cursor is None
    from_hidden = pages(realm, rules, cursor=Cursor(topic_name="page-b", partition_index=1))
    assert [(topic.name, len(topic.partitions)) for topic in from_hidden.topics] == [("page-c", 1)]
    assert pages(realm, rules, cursor=Cursor(topic_name="page-b", partition_index=-1)).topics == []
    assert pages(realm, []).topics == []


def test_pages_of_named_topics(realm: Realm) -> None:
    """A denied topic is told of up to its place, and again with no later page."""
    realm.create("page-a", "page-b", "page-c")
    rules = on_topic(Operation.DESCRIBE, "page-a", "page-c")
    asked = [TopicRequest(name=name) for name in ("page-c", "page-b", "page-a")]
    first = pages(realm, rules, topics=[*asked], response_partition_limit=1)
    assert {topic.name: topic.error_code for topic in first.topics} == {"page-a": 0, "page-b": 29}
    denied = next(topic for topic in first.topics if topic.error_code)
    assert (denied.topic_id, denied.topic_authorized_operations) == (NO_TOPIC_ID, NOT_ASKED)
    cursor = Cursor(topic_name="page-c", partition_index=0)
    last = pages(realm, rules, topics=[*asked], cursor=cursor)
    assert {topic.name: topic.error_code for topic in last.topics} == {"page-c": 0}
    assert {topic.name for topic in pages(realm, [], topics=[*asked]).topics} == {
        "page-a",
        "page-b",
        "page-c",
    }
