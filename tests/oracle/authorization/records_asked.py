"""Produce, Fetch, ListOffsets, OffsetForLeaderEpoch, DeleteRecords, DescribeProducers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from headrace.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headrace.protocol.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from headrace.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from headrace.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headrace.protocol.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from headrace.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.oracle.authorization.person import Person
from tests.oracle.authorization.world import ABSENT, INTERNAL, NOBODYS_ID, TOPICS, World
from tests.oracle.conversation import versions
from tests.oracle.produce_script import batch

NAMED = (*TOPICS, *ABSENT)
FIRST_BATCH = len(batch(b"one", b"two"))
BY_NAME, BY_ID, PRODUCE_BY_ID = 12, 13, 13


def ask(person: Person, world: World) -> None:
    _produce(person, world)
    _fetch(person, world)
    _fetch_in_a_session(person, world)
    _fetch_as_a_replica(person, world)
    _offsets(person)
    _delete(person)
    _producers(person)


def _produced(topics: Iterable[tuple[str, UUID]], **fields: Any) -> ProduceRequest:
    data = [
        TopicProduceData(
            name=name,
            topic_id=topic_id,
            partition_data=[PartitionProduceData(index=0, records=memoryview(batch(b"more")))],
        )
        for name, topic_id in topics
    ]
    return ProduceRequest(**{"acks": -1, "timeout_ms": 5000, "topic_data": data, **fields})


def _produce(person: Person, world: World) -> None:
    nobody = UUID(int=0)
    for version in (3, 7, 9, 11, 12):
        person.ask("produce", _produced((name, nobody) for name in (*NAMED, INTERNAL[0])), version)
    for name in (*NAMED, *INTERNAL, "not a name"):
        person.ask(f"produce to {name}", _produced([(name, nobody)]), 11)
    by_id = [("", world.topics[name]) for name in TOPICS]
    person.ask("produce by id", _produced([*by_id, ("", NOBODYS_ID)]), PRODUCE_BY_ID)
    person.ask("produce by a denied id", _produced([("", world.topics["shut"])]), PRODUCE_BY_ID)
    person.ask("produce by nobody's id", _produced([("", NOBODYS_ID)]), PRODUCE_BY_ID)
    for name in ("pre-a", "shut", "absent"):
        person.ask(f"produce to {name} with strange acks", _produced([(name, nobody)], acks=2), 11)
        request = _produced([(name, nobody)])
        request.topic_data[0].partition_data[0].index = 7
        person.ask(f"produce to {name}-7", request, 11)
        body = _produced([(name, nobody)], acks=0).to_bytes(11)
        person.user.wire.send_body(0, 11, body)
        answer = person.ask(f"offsets after a produce to {name} without acks", _listed(["lit"]), 5)
        person.note(f"connection after a produce to {name} without acks", open=answer is not None)


def _fetched(topics: Iterable[tuple[str, UUID]], **fields: Any) -> FetchRequest:
    """The first batch, whatever was written behind it. Of what only brokers write, no partition at all."""
    asked = [
        FetchTopic(
            topic=name,
            topic_id=topic_id,
            partitions=[
                FetchPartition(partition=99 if name in INTERNAL else 0, partition_max_bytes=FIRST_BATCH)
            ],
        )
        for name, topic_id in topics
    ]
    base = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 20, "session_epoch": -1}
    return FetchRequest(topics=asked, **{**base, **fields})


def _ask(person: Person, step: str, request: FetchRequest, version: int) -> Any:
    """Headrace leaves out what it has to bring from a disk, or to verify again, where others give records."""

    def is_whole(answer: Any) -> bool:
        rows = [row for topic in answer.responses for row in topic.partitions]
        return all(row.error_code or row.high_watermark <= 0 or row.records for row in rows)

    return person.ask_until(is_whole, step, request, version)


def _fetch(person: Person, world: World) -> None:
    nobody = UUID(int=0)
    for version in (4, 11, 12):
        _ask(person, "fetch by name", _fetched((name, nobody) for name in (*NAMED, "not a name")), version)
    for name in ("shut", "absent", *INTERNAL[1:], "__cluster_metadata"):
        _ask(person, f"fetch {name}", _fetched([(name, nobody)]), BY_NAME)
    for version in versions(FetchRequest, BY_ID):
        by_id = [("", world.topics[name]) for name in TOPICS]
        _ask(person, "fetch by id", _fetched([*by_id, ("", NOBODYS_ID)]), version)
    waits = _fetched([("", world.topics["shut"])], max_wait_ms=200, min_bytes=1 << 20)
    _ask(person, "fetch with patience", waits, BY_ID)


def _fetch_in_a_session(person: Person, world: World) -> None:
    by_id = [("", world.topics[name]) for name in ("lit", "shut")]
    old = world.sessions.get(person.name)
    if old is not None:
        session_id, epoch = old
        goes_on = _fetched([], session_id=session_id, session_epoch=epoch)
        _ask(person, "go on in a session of other rights", goes_on, BY_ID)
    begun = _ask(person, "begin a session", _fetched(by_id, session_epoch=0), BY_ID)
    if begun.session_id:
        goes_on = _fetched([], session_id=begun.session_id, session_epoch=1)
        person.ask("go on in a session", goes_on, BY_ID)
        world.sessions[person.name] = begun.session_id, 2


def _fetch_as_a_replica(person: Person, world: World) -> None:
    nobody = UUID(int=0)
    _ask(person, "fetch as a replica", _fetched([("lit", nobody), ("shut", nobody)], replica_id=7), BY_NAME)
    asked = _fetched([("", world.topics["lit"])], replica_state=ReplicaState(replica_id=7, replica_epoch=1))
    _ask(person, "fetch as a replica", asked, 17)


def _listed(names: Iterable[str], **fields: Any) -> ListOffsetsRequest:
    topics = [
        ListOffsetsTopic(
            name=name,
            partitions=[ListOffsetsPartition(partition_index=each, timestamp=-2) for each in (0, 7)],
        )
        for name in names
    ]
    return ListOffsetsRequest(**{"replica_id": -1, "topics": topics, **fields})


def _offsets(person: Person) -> None:
    for version in versions(ListOffsetsRequest):
        person.ask("list offsets", _listed((*NAMED, "not a name")), version)
    person.ask("list offsets as a replica", _listed(NAMED, replica_id=7), 9)
    for version in versions(OffsetForLeaderEpochRequest):
        for replica_id in (-1, 7):
            topics = [
                OffsetForLeaderTopic(
                    topic=name, partitions=[OffsetForLeaderPartition(partition=each) for each in (0, 7)]
                )
                for name in NAMED
            ]
            asked = OffsetForLeaderEpochRequest(replica_id=replica_id, topics=topics)
            person.ask(f"ends of epochs, replica {replica_id}", asked, version)


def _delete(person: Person) -> None:
    """Up to the first offset: nothing goes."""
    for version in versions(DeleteRecordsRequest):
        topics = [
            DeleteRecordsTopic(
                name=name,
                partitions=[DeleteRecordsPartition(partition_index=each, offset=0) for each in (0, 7)],
            )
            for name in (*NAMED, INTERNAL[0])
        ]
        person.ask("delete records", DeleteRecordsRequest(topics=topics, timeout_ms=5000), version)


def _producers(person: Person) -> None:
    topics = [TopicRequest(name=name, partition_indexes=[0, 7]) for name in NAMED]
    person.ask("describe producers", DescribeProducersRequest(topics=topics), 0)
