"""Plans over drawn clusters and files: what they promise, whatever the two are."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.desired.changes import (
    OF_BROKER,
    OF_SOURCE,
    LinkCreation,
    LinkDeletion,
    RuleAddition,
    RuleRemoval,
    TopicCreation,
    TopicDeletion,
)
from headrace.desired.document import Document
from headrace.desired.links import WIRE_NAMES
from headrace.desired.ownership import Ownership
from headrace.desired.plan import Plan, plan
from headrace.desired.present import Present
from headrace.desired.reading import read_document
from headrace.desired.writing import write_document
from tests.unit.desired.drawn import CLUSTERS, EVERYTHING, OWNED, documents
from tests.unit.desired.model_cluster import (
    OF_SOURCES,
    PARTITIONS_OF_SOURCES,
    Facts,
    Interrupted,
    ModelCluster,
)

_FEW = settings(max_examples=40)
"""Of each property: a drawn cluster with a drawn file is large."""


def feasible(document: Document, present: Present) -> Document:
    """The same, but no topic is to shrink, no topic to become a copy or a copy a topic, and no copy to copy
    something else."""
    whole = ModelCluster(present)
    promoted = {name for name, each in present.links.items() if each.is_promoted}
    links = {}
    for name, link in document.links.items():
        values = whole.links.get(name)
        if name in document.topics or name in promoted or (values is None and name in whole.replicas):
            continue
        links[name] = link if values is None else link._replace(topic=values["topic"])
    copies = whole.present(document.owns).copies
    topics = {}
    for name, topic in document.topics.items():
        if name in copies:
            continue
        there = len(whole.replicas.get(name, ()))
        shrinks = topic.partitions is not None and topic.partitions < there
        topics[name] = topic._replace(partitions=there) if shrinks else topic
    return replace(document, topics=topics, links=links)


def planned_for(document: Document, cluster: ModelCluster, prune: bool) -> Plan:
    found = plan(document, cluster.present(document.owns), prune=prune)
    assert not found.refused, found.refused
    return found


CASES = st.tuples(CLUSTERS, documents()).map(lambda drawn: (drawn[0], feasible(drawn[1], drawn[0])))
Case = tuple[Present, Document]


@_FEW
@given(CLUSTERS, OWNED, st.booleans())
def test_what_was_exported_changes_nothing(present: Present, owns: Ownership, prune: bool) -> None:
    there = ModelCluster(present).present(owns)
    text = write_document(there, owns)
    if prune:
        text = f"prune: true\n{text}"
    found = plan(read_document(text.encode()), there, prune=prune)
    assert found == Plan(())


@_FEW
@given(CLUSTERS)
def test_an_export_says_the_same_whatever_the_order(present: Present) -> None:
    turned = Present(
        present.racks,
        dict(reversed(list(present.topics.items()))),
        dict(reversed(list(present.users.items()))),
        present.acls,
        dict(reversed(list(present.quotas.items()))),
        dict(reversed(list(present.subjects.items()))),
        dict(reversed(list(present.connectors.items()))),
        dict(reversed(list(present.links.items()))),
    )
    assert write_document(present, EVERYTHING) == write_document(turned, EVERYTHING)


@_FEW
@given(CASES, st.booleans())
def test_twice_is_once(case: Case, prune: bool) -> None:
    present, document = case
    cluster = ModelCluster(present)
    cluster.apply(planned_for(document, cluster, prune))
    again = plan(document, cluster.present(document.owns), prune=prune)
    assert again.changes_nothing, again.changes


@_FEW
@given(CASES, st.booleans())
def test_what_happens_is_what_the_plan_said(case: Case, prune: bool) -> None:
    present, document = case
    cluster = ModelCluster(present)
    before = cluster.facts()
    planned = planned_for(document, cluster, prune)
    cluster.apply(planned)
    after = cluster.facts()
    happened = {
        key: (before.get(key), after.get(key))
        for key in {**before, **after}
        if before.get(key) != after.get(key)
    }
    assert said_by(planned, before, after) == happened


def said_by(
    planned: Plan, before: Facts, after: Facts
) -> dict[tuple[str, str, str], tuple[str | None, str | None]]:
    said: dict[tuple[str, str, str], tuple[str | None, str | None]] = {}
    for change in planned.changes:
        if isinstance(change, TopicDeletion | LinkDeletion):  # a link goes with its topic
            of_it = [key for key in before if key[0] in ("topic", "link") and key[1] == change.name]
            said.update({key: (before[key], None) for key in of_it})
        elif isinstance(change, LinkCreation):
            said.update(said_by_creation(change, after))
            continue
        elif isinstance(change, RuleAddition):
            said["rule", change.name, ""] = None, ""
        elif isinstance(change, RuleRemoval):
            said["rule", change.name, ""] = "", None
        for what, old, new in change.differences:
            key = change.kind, change.name, what
            if isinstance(change, TopicCreation) and new == "(the broker's)":
                new = after[key]
            if what != "password":
                said[key] = old, new
    return said


def said_by_creation(
    creation: LinkCreation, after: Facts
) -> dict[tuple[str, str, str], tuple[str | None, str | None]]:
    """What the plan leaves to the source and to brokers is what these have."""
    name = creation.name
    said: dict[tuple[str, str, str], tuple[str | None, str | None]] = {}
    said.update({("topic", name, key): (None, value) for key, value in OF_SOURCES.items()})
    said["topic", name, "partitions"] = None, str(PARTITIONS_OF_SOURCES)
    said["link", name, "state"] = None, "ACTIVE"
    left = {OF_SOURCE, OF_BROKER}
    for what, old, new in creation.differences:
        kind = "link" if what in WIRE_NAMES else "topic"
        if new not in left:
            said[kind, name, what] = old, new
    said.setdefault(("topic", name, "replicas"), (None, after["topic", name, "replicas"]))
    return said


@_FEW
@given(CASES, st.booleans())
def test_nothing_is_deleted_without_both_words(case: Case, prune: bool) -> None:
    present, document = case
    document = replace(document, prune=document.prune and not prune)
    cluster = ModelCluster(present)
    cluster.apply(planned_for(document, cluster, prune))
    assert set(present.topics) <= set(cluster.replicas)
    assert present.acls <= cluster.acls
    assert set(present.quotas) <= set(cluster.quotas)
    assert set(present.subjects) <= set(cluster.subjects)
    assert set(present.connectors) <= set(cluster.connectors)
    assert set(present.links) <= set(cluster.links)
    assert all(set(mechanisms) <= set(cluster.users[name]) for name, mechanisms in present.users.items())


@_FEW
@given(CASES)
def test_with_both_words_what_is_owned_is_what_the_file_names(case: Case) -> None:
    present, document = case
    document = replace(document, prune=True)
    cluster = ModelCluster(present)
    found = planned_for(document, cluster, True)
    cluster.apply(found)
    there = cluster.present(document.owns)
    assert set(there.topics) == set(document.topics)
    assert set(there.copies) == set(document.links)
    assert set(there.users) == set(document.users)
    assert there.acls == document.acls
    assert there.quotas == document.quotas
    assert set(there.subjects) == set(document.schemas)
    assert there.connectors == document.connectors
    assert not found.stays


@_FEW
@given(CASES, st.booleans())
def test_what_is_not_owned_is_not_touched(case: Case, prune: bool) -> None:
    present, document = case
    cluster, owns = ModelCluster(present), document.owns
    cluster.apply(planned_for(document, cluster, prune))
    for name, topic in present.topics.items():
        if not owns.topic(name):
            assert (cluster.replicas[name], cluster.settings[name]) == (topic.replicas, topic.settings)
    for name, link in present.links.items():
        if not owns.link(name) and not owns.topic(name):
            assert link.topic is not None
            assert (cluster.links[name], cluster.replicas[name]) == (link.values, link.topic.replicas)
    assert all(cluster.users[name] == each for name, each in present.users.items() if not owns.user(name))
    assert {rule for rule in present.acls if not owns.principal(rule.principal)} <= cluster.acls
    assert all(cluster.quotas[key] == each for key, each in present.quotas.items() if not owns.quota(key))
    assert all(
        cluster.subjects[key] == each for key, each in present.subjects.items() if not owns.subject(key)
    )
    assert all(
        cluster.connectors[key] == each for key, each in present.connectors.items() if not owns.connector(key)
    )


@_FEW
@given(CASES, st.booleans(), st.integers(0, 12))
def test_interrupted_anywhere_a_second_run_completes(case: Case, prune: bool, made: int) -> None:
    present, document = case
    whole, interrupted = ModelCluster(present), ModelCluster(present)
    whole.apply(planned_for(document, whole, prune))
    try:
        interrupted.apply(planned_for(document, interrupted, prune), interrupt_after=made)
    except Interrupted:
        second = plan(document, interrupted.present(document.owns), prune=prune)
        assert not second.refused
        interrupted.apply(second)
    assert interrupted.facts() == whole.facts()
