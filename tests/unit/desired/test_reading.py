"""What a file may say, and what is said of one that is wrong."""

from __future__ import annotations

import pytest

from headrace.client.quotas import Entity
from headrace.desired.document import PasswordSource, Topic, User
from headrace.desired.reading import read_document
from headrace.desired.yaml_tree import DocumentError
from headrace.security.acl import Operation
from headrace.security.scram_credential import ScramMechanism

OWNS = "owns: {topics: ['*'], users: ['*'], acls: ['*'], quotas: ['*']}\n"


def settings(text: str) -> dict[str, str]:
    document = read_document(f"{OWNS}topics: {{t: {{settings: {{{text}}}}}}}".encode())
    return dict(document.topics["t"].settings)


def test_a_whole_file() -> None:
    document = read_document(
        b"""
owns: {topics: [shop.*, orders], users: [alice], acls: [alice, 'User:CN=*'], quotas: ['*']}
prune: true
topics:
  shop.a: {partitions: 3, replicas: 2, settings: {retention.ms: 1000}}
  orders:
users:
  alice: {password: {env: ALICE}, mechanisms: {SCRAM-SHA-256: 8192}}
acls:
  - {principal: alice, grant: produce, topic: shop., prefix: true}
  - {principal: 'User:CN=eve', operation: read, resource_type: topic, name: orders, permission: deny}
quotas:
  - {user: alice, client-id: app, producer_byte_rate: 1.5MB, request_percentage: 12.5}
  - {ip-default: true, connection_creation_rate: 3}
"""
    )
    assert document.prune
    assert document.topics == {
        "shop.a": Topic(3, 2, {"retention.ms": "1000"}),
        "orders": Topic(None, None, {}),
    }
    assert document.users == {"alice": User({ScramMechanism.SHA_256: 8192}, PasswordSource("env", "ALICE"))}
    assert {(each.principal, each.operation) for each in document.acls} == {
        ("User:alice", Operation.WRITE),
        ("User:alice", Operation.DESCRIBE),
        ("User:CN=eve", Operation.READ),
    }
    assert document.quotas == {
        (("client-id", "app"), ("user", "alice")): {"producer_byte_rate": 1.5e6, "request_percentage": 12.5},
        (("ip", None),): {"connection_creation_rate": 3.0},
    }


def test_settings_are_texts_as_kafka_writes_them() -> None:
    assert settings(
        "a: True, b: 'True', c: no, d: on, e: 1.10, f: 604_800_000, g: [compact, delete], h: -1"
    ) == {
        "a": "true",
        "b": "True",
        "c": "no",
        "d": "on",
        "e": "1.10",
        "f": "604800000",
        "g": "compact,delete",
        "h": "-1",
    }


def test_a_topic_may_be_called_no() -> None:
    assert set(read_document(f"{OWNS}topics: {{no: , 1.10: }}".encode()).topics) == {"no", "1.10"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1: the file is empty"),
        ("topics: {}", "does not say what it owns"),
        ("- a", "written as names with values"),
        (OWNS + "topic: {}", "line 2: 'topic' is not a field of the file; did you mean topics?"),
        (
            OWNS + "topics:\n  t:\n    partitons: 3",
            "line 4: 'partitons' is not a field of a topic; did you mean",
        ),
        (OWNS + "topics: {t: {partitions: 0}}", "partitions is a number from 1 on"),
        (OWNS + "topics: {t: {partitions: 1.5}}", "partitions is a number from 1 on"),
        (OWNS + "topics: {t: {partitions: }}", "partitions is a number from 1 on"),
        (OWNS + "topics: {t: {replicas: three}}", "replicas is a number from 1 on"),
        (OWNS + "topics: {t: {partitions: 99999999999999999999}}", "partitions is a number"),
        (OWNS + "topics: {t: 3}", "a topic is written as names with values"),
        (OWNS + "topics: {__consumer_offsets: {partitions: 3}}", "belongs to the brokers"),
        (OWNS + "topics: [t]", "topics is written as names with values"),
        (OWNS + "topics: {t: {settings: {retention.ms: }}}", "retention.ms has no value"),
        (
            OWNS + "topics: {t: {settings: {leader.replication.throttled.replicas: '*'}}}",
            "belongs to replicas that move",
        ),
        (OWNS + "topics: {t: {settings: {retention.ms: {a: 1}}}}", "retention.ms is one value"),
        ("owns: {topics: [a.*]}\ntopics: {b: }", "line 2: topic b is not among what the file owns"),
        ("owns: {topics: [a]}\nusers: {b: }", "line 2: there are users, and owns does not list them"),
        ("owns: {topics: [a*b]}", "a * can only be the last character"),
        ("owns: {topics: a}", "owns: topics is a list"),
        ("owns: {topic: [a]}", "did you mean topics?"),
        ("owns: {topics: ['*']}\nprune: true", "with prune that would delete all of them"),
        ("owns: {topics: ['*']}\nprune: true\ntopics:", "with prune that would delete all of them"),
        (OWNS + "prune: yes", "prune is true or false"),
        (OWNS + "users: {a: {password: hunter2}}", "a password never stands in this file"),
        (OWNS + "users: {a: {password: {env: A, file: b}}}", "one of them"),
        (OWNS + "users: {a: {password: {}}}", "one of them"),
        (OWNS + "users: {a: {mechanisms: {PLAIN: 4096}}}", "'PLAIN' is not a mechanism"),
        (OWNS + "users: {a: {mechanisms: {SCRAM-SHA-256: 1}}}", "is a number from 4096 to 16384"),
        (OWNS + "acls: {a: b}", "acls is a list"),
        (OWNS + "acls:\n- {principal: a, operation: READ}", "line 3: 'resource_type' is missing"),
        (OWNS + "acls: [{principal: a, grant: dance}]", "is one of produce, consume, admin"),
        (OWNS + "acls: [{principal: a, grant: consume, topic: t, prefix: maybe}]", "prefix is true or false"),
        (OWNS + "acls: [{pricipal: a}]", "did you mean principal?"),
        (
            "owns: {acls: [bob]}\nacls: [{principal: a, grant: produce, topic: t}]",
            "a rule of User:a is not among",
        ),
        (OWNS + "quotas: [{producer_byte_rate: 1}]", "say whose quota"),
        (OWNS + "quotas: [{user: a}]", "user a has no quota"),
        (OWNS + "quotas: [{user: a, user-default: true, request_percentage: 1}]", "exclude each other"),
        (OWNS + "quotas: [{user: a, ip: b, request_percentage: 1}]", "cannot be combined"),
        (OWNS + "quotas: [{user: a, producer_byte_rate: fast}]", "'fast' is not a rate"),
        (
            OWNS + "quotas: [{user: a, request_percentage: 1}, {user: a, request_percentage: 2}]",
            "a second time",
        ),
        ("owns: {quotas: [a]}\nquotas: [{user-default: true, request_percentage: 2}]", "is not among what"),
    ],
)
def test_what_is_wrong_is_a_sentence_with_its_line(text: str, said: str) -> None:
    with pytest.raises(DocumentError) as refused:
        read_document(text.encode())
    assert said in str(refused.value)


def test_a_password_is_not_repeated() -> None:
    with pytest.raises(DocumentError) as refused:
        read_document(f"{OWNS}users: {{a: {{password: hunter2}}}}".encode())
    assert "hunter2" not in f"{refused.value}{refused.value.hint}"


@pytest.mark.parametrize(
    ("entity", "patterns", "is_owned"),
    [
        ((("user", "shop-a"),), ["shop-*"], True),
        ((("client-id", "x"), ("user", "shop-a")), ["shop-*"], True),
        ((("client-id", "shop-a"), ("user", "other")), ["shop-*"], False),
        ((("client-id", "shop-a"),), ["shop-*"], True),
        ((("user", None),), ["shop-*"], False),
        ((("user", None),), ["*"], True),
        ((("client-id", "shop-a"), ("user", None)), ["shop-*"], False),
    ],
)
def test_whose_a_quota_is(entity: Entity, patterns: list[str], is_owned: bool) -> None:
    owns = read_document(f"owns: {{quotas: {patterns}}}".encode()).owns
    assert owns.quota(entity) is is_owned


def test_a_name_without_a_star_is_that_name_alone() -> None:
    owns = read_document(b"owns: {topics: [orders, shop.*], acls: [alice, 'User:shop-*', 'Group:*']}").owns
    assert [owns.topic(name) for name in ("orders", "orders2", "shop.a", "shop")] == [
        True,
        False,
        True,
        False,
    ]
    assert [
        owns.principal(each) for each in ("User:alice", "User:alice2", "User:shop-1", "Group:x", "User:x")
    ] == [
        True,
        False,
        True,
        True,
        False,
    ]
