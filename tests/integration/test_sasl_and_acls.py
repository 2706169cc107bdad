"""A broker with SASL_SSL and ACLs: who may do what, seen by librdkafka, and what a removed rule ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramMechanism,
)

from tests.guarded_broker import PASSWORD, SECONDS, Guarded

ANY: Any = None
ALL = AclBindingFilter(
    ResourceType.ANY,
    ANY,
    ResourcePatternType.ANY,
    ANY,
    ANY,
    AclOperation.ANY,
    AclPermissionType.ANY,
)


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Guarded]:
    made = Guarded(tmp_path)
    with made.broker:
        for future in made.admin.create_topics([NewTopic("t", 1, 1)]).values():
            future.result(SECONDS)
        made.add_user("alice")
        yield made


def first_of(consumer: Consumer) -> bytes | int:
    """The first record, or the code of the first error."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        message = consumer.poll(1.0)
        if message is not None:
            error = message.error()
            value = message.value()
            return error.code() if error is not None else value if value is not None else b""
    raise AssertionError("neither a record nor an error")


def test_a_user_may_do_what_rules_allow_and_nothing_else(guarded: Guarded) -> None:
    denied = guarded.produce(b"too early")
    assert denied is not None
    assert denied.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    guarded.allow(ResourceType.TOPIC, "t", AclOperation.WRITE)
    assert guarded.produce(b"allowed") is None
    settings = {**guarded.client(), "group.id": "g", "auto.offset.reset": "earliest"}
    with closing(Consumer(settings)) as consumer:
        consumer.subscribe(["t"])
        assert first_of(consumer) in (
            KafkaError.TOPIC_AUTHORIZATION_FAILED,
            KafkaError.GROUP_AUTHORIZATION_FAILED,
        )
    guarded.allow(ResourceType.TOPIC, "t", AclOperation.READ)
    guarded.allow(ResourceType.GROUP, "g", AclOperation.READ)
    with closing(Consumer(settings)) as consumer:
        consumer.subscribe(["t"])
        assert first_of(consumer) == b"allowed"
    assert len(guarded.admin.describe_acls(ALL).result(SECONDS)) == 3
    alice = AdminClient(guarded.client())
    assert list(alice.describe_acls(ALL).result(SECONDS)) == [], (
        "it is refused, which the library does not tell"
    )


def test_topics_of_others_are_not_even_named(guarded: Guarded) -> None:
    guarded.allow(ResourceType.GROUP, "g", AclOperation.READ)
    alice = AdminClient(guarded.client())
    assert "t" not in alice.list_topics(timeout=SECONDS).topics
    guarded.allow(ResourceType.TOPIC, "t", AclOperation.DESCRIBE)
    assert "t" in alice.list_topics(timeout=SECONDS).topics


def test_a_removed_rule_ends_a_poll_that_waits(guarded: Guarded) -> None:
    """Its fetch waits for up to a minute. It is told at once."""
    rule = guarded.allow(ResourceType.TOPIC, "t", AclOperation.READ)
    guarded.allow(ResourceType.GROUP, "g", AclOperation.READ)
    guarded.allow(ResourceType.TOPIC, "t", AclOperation.DESCRIBE)
    settings: dict[str, Any] = {
        **guarded.client(),
        "group.id": "g",
        "fetch.wait.max.ms": 60_000,
        "socket.timeout.ms": 90_000,
        "enable.auto.commit": "false",
    }
    with closing(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition("t", 0, 0)])
        assert consumer.poll(2.0) is None
        remover = threading.Timer(0.5, guarded.forbid_again, (rule,))
        remover.start()
        began = time.monotonic()
        told = first_of(consumer)
        took = time.monotonic() - began
        remover.join()
    assert told == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert took < 50, "before the wait of the fetch is over"


@pytest.mark.parametrize("mechanism", [ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512])
def test_either_hash_proves_who_it_is(guarded: Guarded, mechanism: ScramMechanism) -> None:
    guarded.add_user("alice", mechanism)
    guarded.allow(ResourceType.TOPIC, "t", AclOperation.WRITE)
    name = mechanism.name.replace("_", "-")
    assert guarded.produce(b"x", mechanism=name) is None


def test_passwords_are_in_no_file_and_no_line(guarded: Guarded) -> None:
    guarded.allow(ResourceType.TOPIC, "t", AclOperation.WRITE)
    assert guarded.produce(b"x") is None
    files = [path for path in guarded.broker.directory.rglob("*") if path.is_file()]
    assert len(files) > 5
    assert [path for path in files if PASSWORD.encode() in path.read_bytes()] == []


def test_shadow_mode_denies_nothing_and_tells_what_it_would(tmp_path: Path) -> None:
    made = Guarded(tmp_path, **{"headrace.authorizer.mode": "shadow"})
    with made.broker:
        for future in made.admin.create_topics([NewTopic("t", 1, 1)]).values():
            future.result(SECONDS)
        made.add_user("alice")
        assert made.produce(b"x") is None
