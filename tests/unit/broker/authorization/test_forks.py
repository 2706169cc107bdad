"""A fork shows what its origin holds: CREATE is not enough, and DESCRIBE beside it neither."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from headrace.config.tiering import FORK, ForkPoint, fork_text
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headrace.protocol.messages.create_topics_response import CreatableTopicResult
from headrace.security.acl import AclRule, Operation
from tests.unit.broker.authorization.realm import Realm, on_cluster, on_topic, rights_by

DENIED, UNKNOWN = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_ID
CREATE = on_cluster(Operation.CREATE)
READ = on_topic(Operation.READ, "fork-origin")
NOBODYS = UUID(int=123)


@pytest.fixture(scope="module")
def origin(realm: Realm) -> UUID:
    realm.create("fork-origin")
    return id_of(realm, "fork-origin")


@pytest.fixture
def handed_on(realm: Realm, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the controller is asked to create."""
    names: list[str] = []
    original = realm.context.controller.create_topics

    def create_topics(wanted: Any, *others: Any, **named: Any) -> Any:
        names.extend(item.name for item in wanted)
        return original(wanted, *others, **named)

    monkeypatch.setattr(realm.context.controller, "create_topics", create_topics)
    return names


def id_of(realm: Realm, name: str) -> UUID:
    topic = realm.context.metadata.image.topic(name)
    assert topic is not None
    return topic.topic_id


def point(origin: UUID) -> str:
    return fork_text(ForkPoint(origin, (0,)))


def create(realm: Realm, rules: list[AclRule], **forks: tuple[str, ...]) -> dict[str, CreatableTopicResult]:
    """`forks`: what each new topic is said to be a fork of; a setting may stand there twice."""
    topics = [
        CreatableTopic(
            name=name,
            num_partitions=1,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=FORK, value=each) for each in values],
        )
        for name, values in forks.items()
    ]
    answer = realm.ask(CreateTopicsRequest(topics=topics, timeout_ms=10_000), 7, rights_by(rules))
    return {row.name: row for row in answer.topics}


@pytest.mark.parametrize("operation", [None, Operation.DESCRIBE, Operation.WRITE, Operation.DESCRIBE_CONFIGS])
def test_without_read_on_the_origin_it_is_denied(
    realm: Realm, origin: UUID, handed_on: list[str], operation: Operation | None
) -> None:
    rules = [*CREATE, *(on_topic(operation, "fork-origin") if operation else [])]
    row = create(realm, rules, forked=(point(origin),))["forked"]
    assert row.error_code == DENIED
    assert row.error_message == "the principal may not read the topic that is to be forked: READ on it"
    assert handed_on == []


def test_with_both_the_controller_decides(realm: Realm, origin: UUID, handed_on: list[str]) -> None:
    row = create(realm, [*CREATE, *READ], forked=(point(origin),))["forked"]
    assert handed_on == ["forked"]
    assert row.error_code == ErrorCode.INVALID_CONFIG, "this cluster has no store"


def test_read_without_create_is_denied_as_any_other_topic(
    realm: Realm, origin: UUID, handed_on: list[str]
) -> None:
    row = create(realm, READ, forked=(point(origin),))["forked"]
    assert (row.error_code, row.error_message) == (DENIED, "the principal may not do this with the topic")
    assert handed_on == []


def test_each_topic_of_a_request_is_judged_by_itself(
    realm: Realm, origin: UUID, handed_on: list[str]
) -> None:
    rows = create(realm, CREATE, plain=(), forked=(point(origin),), lost=(point(NOBODYS),))
    assert {name: row.error_code for name, row in rows.items()} == {
        "plain": 0,
        "forked": DENIED,
        "lost": UNKNOWN,
    }
    assert handed_on == ["plain"]


def test_an_origin_that_this_broker_does_not_know_is_not_handed_on(
    realm: Realm, handed_on: list[str]
) -> None:
    """The controller may know it already, and asks nobody for rights."""
    row = create(realm, [*CREATE, *on_topic(Operation.ALL, "*")], forked=(point(NOBODYS),))["forked"]
    assert row.error_code == UNKNOWN
    assert "knows no topic" in (row.error_message or "")
    assert handed_on == []


@pytest.mark.parametrize("first", ["no point", ""])
def test_a_second_setting_of_the_same_name_is_judged_too(
    realm: Realm, origin: UUID, handed_on: list[str], first: str
) -> None:
    row = create(realm, CREATE, forked=(first, point(origin)))["forked"]
    assert row.error_code == DENIED
    assert handed_on == []
