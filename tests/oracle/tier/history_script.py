"""Topics whose history is in a store: what is asked of it, by requests that both brokers get."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from headrace.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headrace.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from headrace.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
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
from headrace.protocol.records import NewRecord, encode_batch
from tests.oracle.conversation import Conversation, versions
from tests.oracle.produce_script import BASE_MS, produce_request
from tests.oracle.transactional_records_script import Producer

LATEST, EARLIEST, MAX_TIME, LOCAL, TIERED, PENDING = -1, -2, -3, -4, -5, -6
BY_NAME: Final = 12
BY_ID: Final = 13
BATCHES: Final = 14
"""Of two records, four of them in a segment: three sealed ones, and two batches in the active one."""
ACTIVE: Final = 24
TRADED_ACTIVE: Final = 20
"""Where the active segment of the topic with transactions begins."""
TIERED_TOPIC: Final = {
    "remote_storage_enable": "true",
    "internal_segment_bytes": "4000",
    "local_retention_bytes": "1",
    "retention_ms": "-1",
}


def run(talk: Conversation) -> None:
    topic_id = filled(talk, "history")
    ask_ends(talk, "history")
    _times(talk, "history")
    _reads(talk, "history", topic_id)
    _epochs(talk, "history")
    _deletions(talk, "history")
    _retention(talk)
    _another_topic(talk)


def run_transactions(talk: Conversation) -> None:
    """Committed and aborted in turn, each over two segments, read from every offset."""
    topic = "traded"
    talk.topic(topic, 1, **{**TIERED_TOPIC, "internal_segment_bytes": "320"})
    producer = Producer(talk, "trader")
    sequence = 0
    for number in range(6):
        for _ in range(3):
            answer = talk.quietly(producer.request(sequence, topic=topic), 12)
            assert not answer.responses[0].partition_responses[0].error_code, answer
            sequence += 1
        before = producer.epoch
        producer.end(5, commit=number % 2 == 0)
        sequence = sequence if producer.epoch == before else 0
        talk.wait_completed("trader")
    end = 6 * 4
    talk.wait_until(lambda: offset_of(talk, topic, TIERED) == TRADED_ACTIVE - 1, 120)
    talk.wait_until(lambda: offset_of(talk, topic, LOCAL) == TRADED_ACTIVE, 120)
    ask_ends(talk, topic, only=(10,))
    for offset in range(end + 1):
        for level in (0, 1):
            asked = fetch(topic, offset, isolation_level=level)
            talk.ask(f"transactions from {offset} at level {level}", asked, BY_NAME)


# --- what is there ---------------------------------------------------------------------------------------


def filled(talk: Conversation, topic: str, **configs: str) -> UUID:
    topic_id = talk.topic(topic, 1, **{**TIERED_TOPIC, **configs})
    for number in range(BATCHES):
        records = [
            NewRecord(b"%04d" % number * 100, key=b"k", timestamp=BASE_MS + number * 1000 + 10 * index)
            for index in range(2)
        ]
        talk.quietly(produce_request(topic, encode_batch(records)), 9)
    talk.wait_until(lambda: offset_of(talk, topic, TIERED) == ACTIVE - 1, 120)
    talk.wait_until(lambda: offset_of(talk, topic, LOCAL) == ACTIVE, 120)
    return topic_id


def listing(topic: str, timestamp: int, epoch: int = -1, level: int = 0) -> ListOffsetsRequest:
    row = ListOffsetsPartition(partition_index=0, timestamp=timestamp, current_leader_epoch=epoch)
    return ListOffsetsRequest(
        topics=[ListOffsetsTopic(name=topic, partitions=[row])], isolation_level=level, timeout_ms=10_000
    )


def offset_of(talk: Conversation, topic: str, timestamp: int) -> int:
    (row,) = talk.quietly(listing(topic, timestamp), 9).topics[0].partitions
    return int(row.offset) if not row.error_code else -99


# --- what is asked ---------------------------------------------------------------------------------------


def ask_ends(talk: Conversation, topic: str, only: tuple[int, ...] = (), step: str = "as it is") -> None:
    for version in only or versions(ListOffsetsRequest):
        for timestamp in (LATEST, EARLIEST, MAX_TIME, LOCAL, TIERED, PENDING):
            talk.ask(f"{topic} {step}: end {timestamp}", listing(topic, timestamp), version)


def _times(talk: Conversation, topic: str) -> None:
    for number in (-1, 0, 3, 4, 7, 11, 12, 13, 14):
        for shift in (0, 1, 10, 11):
            asked = listing(topic, BASE_MS + number * 1000 + shift)
            talk.ask(f"{topic}: batch {number} and {shift} ms", asked, 10)
    for version in versions(ListOffsetsRequest):
        talk.ask(f"{topic}: a time in the store", listing(topic, BASE_MS + 5000), version)
    for epoch in (0, 5):
        talk.ask(f"{topic}: a time in epoch {epoch}", listing(topic, BASE_MS + 5000, epoch), 10)
    talk.ask(f"{topic}: time 0", listing(topic, 0), 10)
    talk.ask(f"{topic}: a time, committed", listing(topic, BASE_MS + 5000, level=1), 10)


def fetch(topic: str, offset: int, limit: int = 1 << 20, **fields: Any) -> FetchRequest:
    row: dict[str, Any] = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": limit}
    row |= {
        name: fields.pop(name) for name in ("current_leader_epoch", "last_fetched_epoch") if name in fields
    }
    found = FetchTopic(topic=topic, partitions=[FetchPartition(**row)])
    if "topic_id" in fields:
        found.topic_id = fields.pop("topic_id")
    base: dict[str, Any] = {"max_wait_ms": 10_000, "min_bytes": 1, "max_bytes": 1 << 20, "session_epoch": -1}
    return FetchRequest(topics=[found], **{**base, **fields})


def _reads(talk: Conversation, topic: str, topic_id: UUID) -> None:
    for offset in (0, 1, 2, 7, 8, ACTIVE - 1, ACTIVE, ACTIVE + 1, 29, -1, 100):
        talk.ask(f"{topic} from {offset}", fetch(topic, offset), BY_NAME)
    talk.ask(f"{topic} from its end", fetch(topic, 2 * BATCHES, max_wait_ms=10), BY_NAME)
    for version in versions(FetchRequest):
        talk.ask(f"{topic} from 3", fetch(topic, 3, topic_id=topic_id), version)
        talk.ask(f"{topic} from 3, committed", fetch(topic, 3, topic_id=topic_id, isolation_level=1), version)
    for limit in (0, 1, 900, 1000, 2000, 1 << 30):
        talk.ask(f"{topic}, {limit} bytes of the partition", fetch(topic, 1, limit), BY_NAME)
        talk.ask(f"{topic}, {limit} bytes of the answer", fetch(topic, 1, max_bytes=limit), BY_NAME)
    for epoch in (0, 4):
        talk.ask(f"{topic} as of epoch {epoch}", fetch(topic, 1, current_leader_epoch=epoch), BY_NAME)
        talk.ask(f"{topic} after epoch {epoch}", fetch(topic, 2, last_fetched_epoch=epoch), BY_NAME)
    talk.ask(f"{topic} for nobody's replica", fetch(topic, 0, replica_id=7), BY_NAME)


def _epochs(talk: Conversation, topic: str) -> None:
    for epoch in (0, 1):
        row = OffsetForLeaderPartition(partition=0, leader_epoch=epoch, current_leader_epoch=-1)
        asked = OffsetForLeaderEpochRequest(
            replica_id=-2, topics=[OffsetForLeaderTopic(topic=topic, partitions=[row])]
        )
        talk.ask(f"{topic}: end of epoch {epoch}", asked, 4)


def _deletions(talk: Conversation, topic: str) -> None:
    def delete(offset: int) -> None:
        row = DeleteRecordsPartition(partition_index=0, offset=offset)
        asked = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=topic, partitions=[row])], timeout_ms=20_000
        )
        talk.ask(f"{topic}: records before {offset} are deleted", asked, 2)

    for offset in (3, 2, 9, ACTIVE - 1, ACTIVE + 2, 99, -1):
        delete(offset)
        start = offset_of(talk, topic, EARLIEST)
        ask_ends(talk, topic, only=(10,), step=f"after {offset} was deleted")
        for at in sorted({0, start - 1, start}):
            talk.ask(
                f"{topic} from {at} after {offset} was deleted", fetch(topic, at, max_wait_ms=50), BY_NAME
            )
        for number in (0, 4, 13):
            asked = listing(topic, BASE_MS + number * 1000)
            talk.ask(f"{topic}: batch {number} after {offset} was deleted", asked, 10)


def _retention(talk: Conversation) -> None:
    """Two segments and the active one fit."""
    filled(talk, "retained", retention_bytes=str(1 << 20))
    from tests.oracle.tier.settings_script import alter

    alter(talk, "retained: less is kept", "retained", retention_bytes="8000", local_retention_bytes="1")
    talk.wait_until(lambda: offset_of(talk, "retained", EARLIEST) >= 8, 120)
    ask_ends(talk, "retained", only=(10,), step="after retention")
    for offset in (0, 7, 8):
        talk.ask(f"retained from {offset}", fetch("retained", offset), BY_NAME)


def _another_topic(talk: Conversation) -> None:
    """Deleted, and made again with the same name."""
    old = filled(talk, "again")
    talk.quietly(DeleteTopicsRequest(topics=[DeleteTopicState(name="again")], timeout_ms=10_000), 6)
    gone: Callable[[], bool] = lambda: talk.metadata("again").error_code == 3  # noqa: E731 - a condition
    talk.wait_until(gone)
    talk.ask("again: by its old id", fetch("", 3, topic_id=old, max_wait_ms=10), BY_ID)
    new = talk.topic("again", 1, **TIERED_TOPIC)
    # Headrace looks into the store first, and asks clients to come again until it has.
    talk.wait_until(lambda: offset_of(talk, "again", EARLIEST) == 0)
    ask_ends(talk, "again", only=(10,), step="made again")
    for offset in (0, 3, ACTIVE):
        talk.ask(f"again: from {offset} of the new one", fetch("again", offset, max_wait_ms=10), BY_NAME)
    talk.ask("again: by its new id", fetch("", 0, topic_id=new, max_wait_ms=10), BY_ID)
    talk.ask("again: by its old id, beside the new one", fetch("", 3, topic_id=old, max_wait_ms=10), BY_ID)
