"""Creating and deleting topics with some of the rights."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from headrace.core.ids import NO_TOPIC_ID
from headrace.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from headrace.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from headrace.security.acl import AclRule, Operation
from tests.unit.broker.authorization.realm import Realm, on_cluster, on_topic, rights_by


def delete(realm: Realm, rules: list[AclRule], *topics: DeleteTopicState) -> dict[Any, int]:
    answer = realm.ask(DeleteTopicsRequest(topics=[*topics]), 6, rights_by(rules))
    rows = {(row.name, row.topic_id): row.error_code for row in answer.responses}
    assert len(rows) == len(answer.responses)
    return rows


def exists(realm: Realm, name: str) -> bool:
    return realm.context.metadata.image.topic(name) is not None


def id_of(realm: Realm, name: str) -> UUID:
    topic = realm.context.metadata.image.topic(name)
    assert topic is not None
    return topic.topic_id


def test_by_id_the_name_is_told_to_those_who_may_describe_it(realm: Realm) -> None:
    realm.create("del-seen", "del-hidden")
    seen, hidden, nobody = id_of(realm, "del-seen"), id_of(realm, "del-hidden"), UUID(int=123)
    rows = delete(
        realm,
        on_topic(Operation.DESCRIBE, "del-seen"),
        *(DeleteTopicState(name=None, topic_id=each) for each in (seen, hidden, nobody)),
    )
    assert rows == {("del-seen", seen): 29, (None, hidden): 29, (None, nobody): 100}
    assert exists(realm, "del-seen")
    assert exists(realm, "del-hidden")


def test_by_name_no_id_is_told(realm: Realm) -> None:
    """A topic that is not there is unknown to those who may describe it, and denied to others."""
    realm.create("del-seen")
    rules = on_topic(Operation.DESCRIBE, "del-seen", "del-nowhere")
    names = ("del-seen", "del-nowhere", "del-elsewhere")
    rows = delete(realm, rules, *(DeleteTopicState(name=name) for name in names))
    assert rows == {
        ("del-seen", NO_TOPIC_ID): 29,
        ("del-nowhere", NO_TOPIC_ID): 3,
        ("del-elsewhere", NO_TOPIC_ID): 29,
    }


def test_what_does_not_exist_yet_is_not_handed_on(realm: Realm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the guard and the controller it may be created: the handler must not be asked to delete it."""
    realm.create("del-mine")
    handed_on: list[Any] = []
    original = realm.context.controller.delete_topics

    def delete_topics(wanted: Any) -> Any:
        handed_on.extend(item.name for item in wanted)
        return original(wanted)

    monkeypatch.setattr(realm.context.controller, "delete_topics", delete_topics)
    rules = [*on_topic(Operation.DESCRIBE, "del-late"), *on_topic(Operation.DELETE, "del-mine")]
    rows = delete(realm, rules, DeleteTopicState(name="del-late"), DeleteTopicState(name="del-mine"))
    assert handed_on == ["del-mine"]
    assert sorted(rows.values()) == [0, 3]
    assert not exists(realm, "del-mine")


def create(realm: Realm, rules: list[AclRule], version: int, *names: str) -> dict[str, Any]:
    topics = [CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in names]
    request = CreateTopicsRequest(topics=topics, timeout_ms=10_000)
    return {row.name: row for row in realm.ask(request, version, rights_by(rules)).topics}


def test_configs_are_told_to_those_who_may_describe_them(realm: Realm) -> None:
    rules = [*on_cluster(Operation.CREATE), *on_topic(Operation.DESCRIBE_CONFIGS, "con-a")]
    rows = create(realm, rules, 7, "con-a", "con-b")
    assert [rows[name].error_code for name in ("con-a", "con-b")] == [0, 0]
    assert rows["con-a"].num_partitions == 2
    assert rows["con-a"].configs
    hidden = rows["con-b"]
    assert (hidden.topic_config_error_code, hidden.configs) == (29, [])
    assert (hidden.num_partitions, hidden.replication_factor) == (-1, -1)
    assert hidden.topic_id == id_of(realm, "con-b")
    partly = create(realm, on_topic(Operation.CREATE, "con-c"), 7, "con-c", "con-d")
    assert (partly["con-c"].error_code, partly["con-c"].topic_config_error_code) == (0, 29)
    assert partly["con-d"].error_code == 29
    assert not exists(realm, "con-d")


def test_a_denied_topic_is_denied_whether_or_not_it_exists(realm: Realm) -> None:
    realm.create("con-there")
    rows = create(realm, [], 4, "con-there", "con-nowhere")
    assert {name: row.error_code for name, row in rows.items()} == {"con-there": 29, "con-nowhere": 29}
