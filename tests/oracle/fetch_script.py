"""Fetch, ListOffsets, OffsetForLeaderEpoch, DeleteRecords: what is read, from where, and how much of it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from headrace.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headrace.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
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
from tests.oracle.conversation import Conversation, versions
from tests.oracle.produce_script import BASE_MS, batch, produce_request
from tests.requests import fetch_request

TOPIC = "fetch"
BY_NAME = 12
BY_ID = 13


def run(talk: Conversation) -> None:
    topic_id = talk.topic(TOPIC, 3)
    # Partition 0: three batches of two records; partition 1: one large record; partition 2: nothing.
    for number in range(3):
        talk.quietly(produce_request(TOPIC, batch(b"%d" % number, b"%d+" % number)), 9)
    talk.quietly(produce_request(TOPIC, batch(b"x" * 20_000), partition=1), 9)
    _versions(talk, topic_id)
    _places(talk)
    _limits(talk)
    _epochs(talk)
    _ids(talk, topic_id)
    _sessions(talk, topic_id)
    _list_offsets(talk)
    _leader_epochs(talk)
    _delete_records(talk)


def _request(*partitions: FetchPartition, topic_id: UUID | None = None, **fields: Any) -> FetchRequest:
    topic = FetchTopic(topic=TOPIC, partitions=list(partitions))
    if topic_id is not None:
        topic.topic_id = topic_id
    base: dict[str, Any] = {
        "max_wait_ms": 0,
        "min_bytes": 0,
        "max_bytes": 1 << 20,
        "session_epoch": -1,
        **fields,
    }
    return FetchRequest(topics=[topic], **base)


def _at(partition: int, offset: int, limit: int = 1 << 20, **fields: Any) -> FetchPartition:
    return FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=limit, **fields)


def _versions(talk: Conversation, topic_id: UUID) -> None:
    for version in versions(FetchRequest):
        request = _request(_at(0, 0), _at(1, 0), _at(2, 0), topic_id=topic_id)
        talk.ask("fetch three partitions", request, version)
        request = _request(_at(0, 0), topic_id=topic_id, isolation_level=1)
        talk.ask("fetch committed", request, version)


def _places(talk: Conversation) -> None:
    for offset in (0, 1, 2, 3, 5, 6):
        talk.ask(f"from offset {offset}", _request(_at(0, offset)), BY_NAME)
    for offset in (7, 1000, -1, -5):
        talk.ask(f"from offset {offset}", _request(_at(0, offset)), BY_NAME)
    talk.ask("unknown partition", _request(_at(9, 0)), BY_NAME)
    talk.ask("unknown topic", fetch_request("fetch-nowhere"), BY_NAME)
    talk.ask("the end, with patience", _request(_at(0, 6), max_wait_ms=50, min_bytes=1), BY_NAME)
    talk.ask("same partition twice", _request(_at(0, 0), _at(0, 2)), BY_NAME)
    talk.ask("no topics", FetchRequest(max_wait_ms=0, min_bytes=0, session_epoch=-1, topics=[]), BY_NAME)


def _limits(talk: Conversation) -> None:
    talk.ask("first batch larger than all limits", _request(_at(1, 0, 1), max_bytes=1), BY_NAME)
    talk.ask("limit of the partition", _request(_at(0, 0, 100), _at(1, 0, 100)), BY_NAME)
    talk.ask("limit of the answer", _request(_at(0, 0), _at(1, 0), max_bytes=200), BY_NAME)
    talk.ask("large one first", _request(_at(1, 0), _at(0, 0), max_bytes=200), BY_NAME)
    talk.ask("limit of nothing", _request(_at(0, 0), max_bytes=0), BY_NAME)
    talk.ask("partition limit of nothing", _request(_at(0, 0, 0)), BY_NAME)
    talk.ask("empty partition before a large one", _request(_at(2, 0, 1), _at(1, 0, 1), max_bytes=1), BY_NAME)


def _epochs(talk: Conversation) -> None:
    for epoch in (0, 5, -1):
        talk.ask(f"current leader epoch {epoch}", _request(_at(0, 0, current_leader_epoch=epoch)), BY_NAME)
    for epoch in (0, 3):
        talk.ask(f"last fetched epoch {epoch}", _request(_at(0, 3, last_fetched_epoch=epoch)), BY_NAME)


def _ids(talk: Conversation, topic_id: UUID) -> None:
    highest = versions(FetchRequest)[-1]
    stranger = UUID(int=77)
    talk.ask("unknown topic id", _request(_at(0, 0), topic_id=stranger), BY_ID)
    talk.ask("unknown topic id", _request(_at(0, 0), topic_id=stranger), highest)
    talk.ask("zero topic id", _request(_at(0, 0)), BY_ID)
    talk.ask("known id, unknown partition", _request(_at(9, 0), topic_id=topic_id), highest)
    talk.ask("known id, out of range", _request(_at(0, 99), topic_id=topic_id), highest)


def _sessions(talk: Conversation, topic_id: UUID) -> None:
    highest = versions(FetchRequest)[-1]
    for version in (7, 11, BY_NAME, BY_ID, highest):
        full = _request(_at(0, 0), _at(1, 0), _at(2, 0), topic_id=topic_id, session_epoch=0)
        session = talk.ask("session opened", full, version).session_id

        def more(step: str, request: FetchRequest, version: int = version) -> None:
            talk.ask(f"session {step}", request, version)

        empty: dict[str, Any] = {
            "max_wait_ms": 0,
            "min_bytes": 0,
            "max_bytes": 1 << 20,
            "session_id": session,
        }
        more("nothing changed", FetchRequest(topics=[], session_epoch=1, **empty))
        advanced = _request(_at(0, 6), topic_id=topic_id, session_id=session, session_epoch=2)
        more("one advanced to its end", advanced)
        more("asked again", FetchRequest(topics=[], session_epoch=3, **empty))
        forgotten = ForgottenTopic(topic=TOPIC, topic_id=topic_id, partitions=[1])
        more(
            "one forgotten",
            FetchRequest(topics=[], forgotten_topics_data=[forgotten], session_epoch=4, **empty),
        )
        more("wrong epoch", FetchRequest(topics=[], session_epoch=9, **empty))
        more("out of range", _request(_at(0, 500), topic_id=topic_id, session_id=session, session_epoch=5))
        more("closed", FetchRequest(topics=[], session_epoch=-1, **empty))
        more("after it was closed", FetchRequest(topics=[], session_epoch=6, **empty))
        more("unknown", FetchRequest(topics=[], session_epoch=1, **{**empty, "session_id": 12345}))


def _list_offsets(talk: Conversation) -> None:
    def ask(step: str, version: int, *partitions: ListOffsetsPartition, topic: str = TOPIC) -> None:
        asked = ListOffsetsTopic(name=topic, partitions=list(partitions))
        talk.ask(step, ListOffsetsRequest(topics=[asked], timeout_ms=5000), version)

    def moment(timestamp: int, partition: int = 0, epoch: int = -1) -> ListOffsetsPartition:
        return ListOffsetsPartition(
            partition_index=partition, timestamp=timestamp, current_leader_epoch=epoch
        )

    for version in versions(ListOffsetsRequest):
        for name, timestamp in (
            ("latest", -1),
            ("earliest", -2),
            ("first", BASE_MS),
            ("second", BASE_MS + 1),
        ):
            ask(f"offset of {name}", version, moment(timestamp), moment(timestamp, 2))
        ask("offset after all", version, moment(BASE_MS + 2))
        ask("offset at time 0", version, moment(0), moment(0, 2))
        ask("offset of unknown partition", version, moment(-1, 9))
        ask("offset of unknown topic", version, moment(-1), topic="fetch-nowhere")
        if version >= 4:
            for epoch in (0, 9):
                ask(f"offset in epoch {epoch}", version, moment(-1, epoch=epoch))
    for special in (-3, -4, -5, -6, -99):
        for version in (6, 7, versions(ListOffsetsRequest)[-1]):
            ask(f"offset of special {special}", version, moment(special), moment(special, 2))
    ask("offset of one partition twice", 5, moment(-1), moment(-2))


def _leader_epochs(talk: Conversation) -> None:
    for version in versions(OffsetForLeaderEpochRequest):
        for epoch in (0, 1, -1):
            for current in (-1, 0, 4):
                partitions = [
                    OffsetForLeaderPartition(
                        partition=index, leader_epoch=epoch, current_leader_epoch=current
                    )
                    for index in (0, 2, 9)
                ]
                asked = [
                    OffsetForLeaderTopic(topic=name, partitions=partitions)
                    for name in (TOPIC, "fetch-nowhere")
                ]
                request = OffsetForLeaderEpochRequest(replica_id=-2 if version >= 3 else -1, topics=asked)
                talk.ask(f"end of epoch {epoch} as of {current}", request, version)


def _delete_records(talk: Conversation) -> None:
    def ask(step: str, version: int, partition: int, offset: int, topic: str = "fetch-deleted") -> None:
        asked = DeleteRecordsTopic(
            name=topic, partitions=[DeleteRecordsPartition(partition_index=partition, offset=offset)]
        )
        talk.ask(step, DeleteRecordsRequest(topics=[asked], timeout_ms=5000), version)

    talk.topic("fetch-deleted", 2)
    for _ in range(4):
        talk.quietly(produce_request("fetch-deleted", batch(b"a", b"b")), 9)
    for version in versions(DeleteRecordsRequest):
        ask(f"delete before {version + 1}", version, 0, version + 1)
    ask("delete before an earlier offset", 2, 0, 1)
    ask("delete past the end", 2, 0, 9)
    ask("delete before a negative offset", 2, 0, -2)
    ask("delete in an unknown partition", 2, 5, 0)
    ask("delete in an unknown topic", 2, 0, 0, "fetch-nowhere")
    ask("delete in an empty partition", 2, 1, 0)
    talk.ask("fetch from the new start", fetch_request("fetch-deleted", 0, 3), BY_NAME)
    talk.ask("fetch from before the new start", fetch_request("fetch-deleted", 0, 2), BY_NAME)
    ask("delete everything", 2, 0, -1)
    talk.ask("fetch from the emptied partition", fetch_request("fetch-deleted", 0, 8), BY_NAME)
