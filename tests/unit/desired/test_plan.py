"""What a plan refuses, and how it says what it would do."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.desired.changes import Difference, TopicChange, TopicCreation, UserChange
from headrace.desired.passwords import read_passwords
from headrace.desired.plan import Plan, plan
from headrace.desired.present import Present, PresentTopic, Use
from headrace.desired.reading import read_document
from headrace.desired.writing import write_document
from headrace.security.scram_credential import ScramMechanism
from tests.unit.desired.drawn import EVERYTHING, RACKS

OWNS = "owns: {topics: ['*'], users: ['*'], acls: ['*'], quotas: ['*']}\n"


def planned(text: str, present: Present, *, new_passwords: tuple[str, ...] = ()) -> Plan:
    return plan(read_document(f"{OWNS}{text}".encode()), present, new_passwords=new_passwords)


def topic(*replicas: tuple[int, ...], settings: dict[str, str] | None = None) -> PresentTopic:
    return PresentTopic(dict(enumerate(replicas)), settings or {})


def cluster(**topics: PresentTopic) -> Present:
    return Present(racks=RACKS, topics=topics)


def test_a_topic_cannot_shrink() -> None:
    (said,) = planned("topics: {t: {partitions: 1}}", cluster(t=topic((1,), (2,)))).refused
    assert said == (
        "topic t has 2 partitions and cannot have 1: fewer would lose records; make a new topic and copy what"
        " shall stay"
    )


def test_more_replicas_than_brokers() -> None:
    text = "topics: {t: {replicas: 4}, new: {replicas: 5}}"
    assert planned(text, cluster(t=topic((1,)))).refused == (
        "topic new: 5 replicas need as many brokers; 3 live",
        "topic t: 4 replicas need as many brokers; 3 live",
    )


def test_a_broker_that_is_down_keeps_the_topics_it_holds_where_they_are() -> None:
    """A plan would empty it, because a broker is away for a restart."""
    there = cluster(t=topic((1, 9), (9, 2)))
    (said,) = planned("topics: {t: {replicas: 3}}", there).refused
    assert "while broker 9 is down" in said
    assert planned("topics: {t: {replicas: 2, partitions: 3}}", there).refused == ()


def test_all_refusals_at_once() -> None:
    text = "topics: {t: {partitions: 1}, u: {replicas: 9}}\nusers: {a: }"
    assert len(planned(text, cluster(t=topic((1,), (1,)))).refused) == 3


def test_one_change_for_a_topic_with_old_and_new() -> None:
    there = cluster(t=topic((1,), settings={"retention.ms": "1", "a": "x", "same": "0.50"}))
    text = "topics: {t: {partitions: 2, replicas: 2, settings: {retention.ms: 2, b: y, same: 0.5}}}"
    (change,) = planned(text, there).changes
    assert change.differences == [
        Difference("partitions", "1", "2"),
        Difference("replicas", "1", "2"),
        Difference("a", "x", None),
        Difference("b", None, "y"),
        Difference("retention.ms", "1", "2"),
    ]


def test_topics_that_move_together_are_spread_together() -> None:
    """One by one, each would take the first broker that it does not have."""
    there = cluster(**{f"t{number}": topic((1,)) for number in range(10)})
    text = "topics: {" + ", ".join(f"t{number}: {{replicas: 2}}" for number in range(10)) + "}"
    added = [
        broker
        for change in planned(text, there).changes
        if isinstance(change, TopicChange)
        for move in change.moves.values()
        for broker in move.adding
    ]
    assert {2, 3} <= set(added)
    assert abs(added.count(2) - added.count(3)) <= 1


def test_a_topic_that_says_nothing_is_made_by_the_brokers_defaults() -> None:
    assert planned("topics: {t: }", cluster()).changes == (TopicCreation("t", None, None, {}),)


def test_a_topic_on_its_way_is_told_of() -> None:
    there = cluster(t=topic((1, 2))._replace(is_moving=True))
    assert planned("topics: {t: {replicas: 2}}", there).moving == ("t",)


def test_what_is_owned_and_not_named_stays_and_is_told_of() -> None:
    found = planned("topics: {}", cluster(t=topic((1,))))
    assert (found.changes, found.stays) == ((), ("topic t",))


def test_users_without_a_source_of_passwords_are_refused_only_if_one_is_needed() -> None:
    present = Present(racks=RACKS, users={"old": {ScramMechanism.SHA_512: 4096}})
    found = planned("users: {old: , new: }", present)
    assert len(found.refused) == 1
    assert found.refused[0].startswith("user new needs a password")


def test_a_new_password_is_set_if_it_is_asked_for() -> None:
    present = Present(racks=RACKS, users={"alice": {ScramMechanism.SHA_512: 4096}})
    text = "users: {alice: {password: {env: A}}}"
    assert planned(text, present).changes == ()
    (change,) = planned(text, present, new_passwords=("alice",)).changes
    assert change.differences == [Difference("password", None, "of the environment, A")]
    (said,) = planned(text, present, new_passwords=("alice", "bob")).refused
    assert said == "user bob gets no new password: the file does not name it"


def test_a_mechanism_that_the_file_does_not_name_stays_without_prune() -> None:
    both = {ScramMechanism.SHA_256: 4096, ScramMechanism.SHA_512: 4096}
    found = planned("users: {a: {password: {env: A}}}", Present(racks=RACKS, users={"a": both}))
    assert (found.changes, found.stays) == ((), ("SCRAM-SHA-256 of user a",))


@pytest.mark.parametrize(
    ("source", "content", "said"),
    [
        ("env: MISSING", None, "no such variable"),
        ("env: EMPTY", None, "it is empty"),
        ("env: LONG", None, "more than 1024 characters"),
        ("file: missing", None, "No such file"),
        ("file: p", b"", "it is empty"),
        ("file: p", b"one\ntwo\n", "one line"),
        ("file: p", b"\xff", "not UTF-8"),
        ("file: .", None, "Is a directory"),
    ],
)
def test_a_password_that_cannot_be_read_is_a_sentence(
    tmp_path: Path, source: str, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / "p").write_bytes(content)
    found = planned(f"users: {{a: {{password: {{{source}}}}}}}", cluster())
    passwords, lacking = read_passwords(found, {"EMPTY": "", "LONG": "x" * 2000}, tmp_path)
    assert passwords == {}
    assert said in lacking[0]


def test_passwords_come_from_beside_the_file_and_are_in_no_plan(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("from the file\r\n")
    found = planned("users: {a: {password: {file: p}}, b: {password: {env: B}}}", cluster())
    passwords, lacking = read_passwords(found, {"B": "hunter2"}, tmp_path)
    assert {name: each.reveal() for name, each in passwords.items()} == {"a": "from the file", "b": "hunter2"}
    assert not lacking
    assert "hunter2" not in repr([each.differences for each in found.changes if isinstance(each, UserChange)])


def test_variables_of_users_are_each_their_own() -> None:
    mechanisms = {ScramMechanism.SHA_512: 4096}
    text = write_document(
        Present(users=dict.fromkeys(["a-b", "a_b", "a.b", "a.b_2"], mechanisms)), EVERYTHING
    )
    users = read_document(text.encode()).users
    assert len({each.password for each in users.values()}) == 4


def test_partitions_that_differ_leave_the_number_of_replicas_open() -> None:
    text = write_document(cluster(t=topic((1,), (1, 2))), EVERYTHING)
    assert read_document(text.encode()).topics["t"].replicas is None


def test_the_use_of_a_topic_in_words() -> None:
    assert str(Use(1, ())) == "has 1 record"
    assert str(Use(1204, ("a", "b", "c", "d"))) == "has 1,204 records and is read by a, b, c and others"
    assert not Use(0, ())
