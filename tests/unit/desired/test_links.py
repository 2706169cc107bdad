"""Links in a file: what it may say of one, and what a plan makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.desired.changes import LinkChange, LinkCreation, LinkDeletion, TopicChange
from headrace.desired.link_reading import with_source_configs
from headrace.desired.links import Link
from headrace.desired.plan import Plan, plan
from headrace.desired.present import Present, PresentLink, PresentTopic
from headrace.desired.reading import read_document
from headrace.desired.writing import write_document
from headrace.desired.yaml_tree import DocumentError
from tests.unit.desired.drawn import RACKS

OWNS = "owns: {topics: ['*'], links: ['*']}\n"
COPY = PresentTopic({0: (1,), 1: (2,)}, {"retention.ms": "7"})
VALUES = {"source": "old:9092", "topic": "t", "state": "ACTIVE"}


def planned(text: str, *, prune: bool = False, **links: PresentLink) -> Plan:
    return plan(read_document(f"{OWNS}{text}".encode()), Present(racks=RACKS, links=links), prune=prune)


def test_everything_that_a_file_says_of_a_link() -> None:
    document = read_document(
        b"""
owns: {links: ['*']}
links:
  plain: {source: 'old:9092'}
  eu:
    source: old-1:9092,old-2:9092
    topic: orders
    client-config: old.properties
    source-config: admin.properties
    groups: [b*, a, b*]
    state: PAUSED
    replicas: 2
    settings: {cleanup.policy: [compact, delete], retention.ms: 1_000}
"""
    )
    assert with_source_configs(document, Path("/files")).links == {
        "plain": Link("old:9092", "plain"),
        "eu": Link(
            "old-1:9092,old-2:9092",
            "orders",
            "old.properties",
            "a,b*",
            "PAUSED",
            2,
            {"cleanup.policy": "compact,delete", "retention.ms": "1000"},
            "/files/admin.properties",
        ),
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("links: {t: {}}", "link t has no source"),
        ("links: {t: {source: 's:1', state: PROMOTED}}", "'PROMOTED' is no state that a file gives a link"),
        ("links: {t: {source: 's:1', client-config: /etc/x}}", "client-config of link t is a path"),
        ("links: {t: {source: 's:1', groups: ['a,b']}}", "a comma cannot be in a pattern"),
        ("links: {t: {source: 's:1', password: x}}", "'password' is not a field of link t"),
        ("links: {t: {source: 's:1', partitions: 3}}", "'partitions' is not a field of link t"),
        ("links: {t: {source: 's:1'}}\ntopics: {t: }", "t is a topic and a link here"),
        ("prune: true\ntopics: {}", "owns lists links, and the file has none"),
    ],
)
def test_what_cannot_stand_in_a_file(text: str, said: str) -> None:
    with pytest.raises(DocumentError) as raised:
        read_document(f"{OWNS}{text}".encode())
    assert said in str(raised.value)


def test_a_link_that_is_not_owned_cannot_stand_in_a_file() -> None:
    with pytest.raises(DocumentError, match="link t is not among what the file owns"):
        read_document(b"owns: {links: [other]}\nlinks: {t: {source: 's:1'}}")


def test_a_creation_that_went_no_further_than_the_link_is_made_once_more() -> None:
    begun = PresentLink({**VALUES, "groups": "old"}, None)
    (creation,) = planned("links: {t: {source: 'old:9092'}}", t=begun).changes
    assert creation == LinkCreation("t", Link("old:9092", "t"))
    assert write_document(Present(links={"t": begun}), read_document(OWNS.encode()).owns).endswith(
        "topics: {}\nlinks: {}\n"
    )


def test_the_source_is_another_log() -> None:
    text = "links: {t: {source: 'old:9092', topic: other}}"
    for topic in (COPY, None):
        (said,) = planned(text, t=PresentLink(VALUES, topic)).refused
        assert "it copies t and cannot copy other" in said


def test_what_a_file_does_not_say_of_a_copy_stays() -> None:
    there = PresentLink({**VALUES, "state": "PAUSED"}, COPY)
    assert planned("links: {t: {source: 'old:9092'}}", t=there) == Plan(())


def test_replicas_and_settings_of_a_copy_follow_the_file() -> None:
    text = "links: {t: {source: 'old:9092', replicas: 2, settings: {preallocate: true}}}"
    (change,) = planned(text, t=PresentLink(VALUES, COPY)).changes
    assert isinstance(change, TopicChange)
    assert (change.replicas, change.settings) == (("1", 2), {"preallocate": (None, "true")})
    assert {each.partition for each in change.moves} == {0, 1}
    moving = PresentLink(VALUES, COPY._replace(is_moving=True))
    assert planned("links: {t: {source: 'old:9092'}}", t=moving).moving == ("t",)


def test_groups_and_client_config_that_the_file_does_not_name_are_taken_away() -> None:
    there = PresentLink({**VALUES, "client-config": "old.properties", "groups": "a"}, COPY)
    assert planned("links: {t: {source: 'new:9092'}}", t=there).changes == (
        LinkChange(
            "t",
            {
                "source": ("old:9092", "new:9092"),
                "client-config": ("old.properties", None),
                "groups": ("a", None),
            },
        ),
    )


def test_a_deleted_copy_is_a_deleted_topic() -> None:
    """So it is asked who uses it."""
    copy, begun = PresentLink(VALUES, COPY), PresentLink(VALUES, None)
    nothing = "prune: true\ntopics: {}\nlinks: {}"
    assert planned(nothing, t=copy, begun=begun).stays == ("link begun", "link t")
    found = planned(nothing, prune=True, t=copy, begun=begun)
    assert found.changes == (LinkDeletion("begun", False), LinkDeletion("t", True))
    assert found.deleted_topics == ["t"]


@pytest.mark.parametrize("state", ["PROMOTING", "PROMOTED"])
def test_what_is_promoted_is_no_link_any_more(state: str) -> None:
    there = PresentLink({**VALUES, "state": state}, COPY)
    (said,) = planned("links: {t: {source: 'old:9092'}}", t=there).refused
    assert "it is promoted" in said
    assert planned("prune: true\nlinks: {}\ntopics: {}", prune=True, t=there) == Plan(())
