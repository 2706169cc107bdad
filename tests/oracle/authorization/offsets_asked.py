"""OffsetCommit, OffsetFetch, OffsetDelete."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.protocol.messages.offset_commit_request import OffsetCommitRequest
from headrace.protocol.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from headrace.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.oracle.authorization.person import Person
from tests.oracle.authorization.world import ABSENT, GROUPS, NOBODYS_ID, TOPICS, World, commit_all
from tests.oracle.conversation import versions
from tests.oracle.offsets_script import Rows, commit_request

NAMED = (*TOPICS, *ABSENT)
BY_ID, SEVERAL_GROUPS = 10, 8
PREFIXES = ("g-pre-", "g-shut-")


def ask(person: Person, world: World) -> None:
    _commit(person, world)
    _fetch_of_one(person)
    _fetch_of_several(person, world)
    _fetch_as_a_member(person)
    _delete(person)


def _commit(person: Person, world: World) -> None:
    rows: Rows = [(name, 0, 2, "") for name in NAMED]
    rows += [("lit", 7, 2, ""), ("shut", 7, 2, "")]
    for version in versions(OffsetCommitRequest):
        ids = {**world.topics, "absent": NOBODYS_ID} if version >= BY_ID else None
        known = [row for row in rows if ids is None or row[0] in ids]
        for prefix in PREFIXES:
            group = person.fresh(f"{prefix}commits-")
            person.ask(f"commit in {prefix}", commit_request(group, known, ids), version)
    person.ask("commit what is denied", commit_request("g-lit", [("shut", 0, 1, "")]), 8)
    person.ask("commit nothing", commit_request("g-lit", []), 8)


def _fetch_of_one(person: Person) -> None:
    for version in range(1, SEVERAL_GROUPS):
        for group in (*GROUPS, "g-pre-absent"):
            topics = [OffsetFetchRequestTopic(name=name, partition_indexes=[0, 7]) for name in NAMED]
            asked = OffsetFetchRequest(group_id=group, topics=topics)
            person.ask(f"offsets of {group}", asked, version)
            if version >= 2:
                everything = OffsetFetchRequest(group_id=group, topics=None)
                person.ask(f"all offsets of {group}", everything, version)


def _fetch_of_several(person: Person, world: World) -> None:
    def group(name: str, topics: Iterable[OffsetFetchRequestTopics] | None) -> OffsetFetchRequestGroup:
        return OffsetFetchRequestGroup(group_id=name, topics=None if topics is None else list(topics))

    for version in versions(OffsetFetchRequest, SEVERAL_GROUPS):
        if version >= BY_ID:
            ids = [*(world.topics[name] for name in TOPICS), NOBODYS_ID]
            topics = [OffsetFetchRequestTopics(topic_id=each, partition_indexes=[0]) for each in ids]
        else:
            topics = [OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in NAMED]
        groups = [*GROUPS, "g-pre-absent", "g-absent"]
        some = OffsetFetchRequest(groups=[group(name, topics) for name in groups])
        person.ask("offsets of groups", some, version)
        everything = OffsetFetchRequest(groups=[group(name, None) for name in groups], require_stable=True)
        person.ask("all offsets of groups", everything, version)
        denied = OffsetFetchRequest(groups=[group("g-shut", topics[-1:])])
        person.ask("offsets of one group", denied, version)


def _fetch_as_a_member(person: Person) -> None:
    """A group that refuses the member says that, whatever topics are denied."""
    topics = [OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in NAMED]
    groups = [
        OffsetFetchRequestGroup(group_id=group, member_id="stranger", member_epoch=3, topics=asked)
        for group, asked in (("g-pre-new", topics), ("g-shut-new", None), ("g-pre-a", topics))
    ]
    person.ask("offsets as a member", OffsetFetchRequest(groups=groups), 9)


def _delete(person: Person) -> None:
    for prefix in PREFIXES:
        gone = person.fresh(f"{prefix}forgets-")
        commit_all(person.admin, gone, TOPICS)
        for group in (gone, f"{prefix}absent"):
            partitions = [OffsetDeleteRequestPartition(partition_index=0)]
            topics = [OffsetDeleteRequestTopic(name=name, partitions=partitions) for name in NAMED]
            kind = "gone" if group == gone else "absent"
            asked = OffsetDeleteRequest(group_id=group, topics=topics)
            person.ask(f"delete offsets of {prefix}{kind}", asked, 0)
