"""The follower's side of Fetch, version 17, by hand: requests as bytes, answers as plain tuples.

Topics are the sixteen raw bytes of their ids: a UUID object is slow to make, to hash and to compare. The
records of an answer are slices of its frame, not copied. Both directions have a path of their own for the
commonest case, which is one partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from headrace.protocol.api_keys import ApiKey
from headrace.protocol.limits import MAX_HEADER_TAGS
from headrace.protocol.primitives import Reader, Writer

VERSION: Final = 17
FIRST_WITH_TOPIC_IDS: Final = 13
"""The least that a source of another cluster must have; its answers are read the same from there on."""
FIRST_WITH_REPLICA_STATE: Final = 15
CONSUMER: Final = -1
_FETCH: Final = int(ApiKey.FETCH)

WantedPartition = tuple[int, int, int, int, int, int]
"""Partition, current leader epoch, fetch offset, last fetched epoch, log start offset, most bytes."""
WantedTopics = Sequence[tuple[bytes, Sequence[WantedPartition]]]
ForgottenTopics = Sequence[tuple[bytes, Sequence[int]]]


class FetchedPartitionData(NamedTuple):
    """What a leader says about one partition."""

    partition: int
    error_code: int
    high_watermark: int
    log_start_offset: int
    records: memoryview
    """Whole batches; the last one may be cut off. Empty where the answer has none, or null."""
    diverging: tuple[int, int] | None = None
    """Epoch and end offset: the leader's log has left the follower's there."""
    current_leader: tuple[int, int] | None = None
    """Broker and epoch, from a peer that no longer leads."""


class ReplicaFetchAnswer(NamedTuple):
    correlation_id: int
    throttle_ms: int
    error_code: int
    session_id: int
    topics: list[tuple[bytes, list[FetchedPartitionData]]]


# --- the request ----------------------------------------------------------------------------------------

_HEADER: Final = Struct(">hhih")  # API, version, correlation id, length of the client id
_HEAD: Final = Struct(">iiibii")  # wait, least and most bytes, isolation level, session, session epoch
_PARTITION: Final = Struct(">iiqiqiB")  # and no tags
# One topic with one partition: counts, id, count, partition, its tags and the topic's, nothing forgotten.
_ONE: Final = Struct(">B16sBiiqiqiBBB")
_NOTHING: Final = b"\x01\x01"
_REPLICA_STATE: Final = Struct(">BBBBiqB")  # no rack, one tag: number 1 of 13 bytes, replica, epoch, no tags


_NO_REPLICA: Final = b"\x01\0"  # no rack, no tags
_NOBODY: Final = b"\xff\xff\xff\xff"


class ReplicaFetchEncoder:
    """What all requests of one follower have in common is encoded once."""

    __slots__ = ("_client_id", "_limits", "_start", "_tail", "_version", "replica_epoch")

    def __init__(
        self,
        client_id: str,
        *,
        replica_id: int,
        replica_epoch: int,
        max_wait_ms: int,
        min_bytes: int,
        max_bytes: int,
        version: int = VERSION,
    ) -> None:
        """`replica_id`: CONSUMER for one who follows from another cluster, and is served as consumers are."""
        self._version = version
        self._start = _NOBODY if version < FIRST_WITH_REPLICA_STATE else b""
        self.replica_epoch = replica_epoch
        self._client_id = client_id.encode()
        self._limits = (max_wait_ms, min_bytes, max_bytes, 0)
        self._tail = (
            _NO_REPLICA
            if replica_id == CONSUMER
            else _REPLICA_STATE.pack(1, 1, 1, 13, replica_id, replica_epoch, 0)
        )

    def encode(
        self,
        correlation_id: int,
        session_id: int,
        session_epoch: int,
        topics: WantedTopics,
        forgotten: ForgottenTopics = (),
    ) -> bytes:
        """A frame without its length field."""
        client_id = self._client_id
        written = (
            _HEADER.pack(_FETCH, self._version, correlation_id, len(client_id))
            + client_id
            + b"\0"
            + self._start
            + _HEAD.pack(*self._limits, session_id, session_epoch)
        )
        if not forgotten:
            if not topics:
                return written + _NOTHING + self._tail
            if len(topics) == 1:
                topic, partitions = topics[0]
                if len(partitions) == 1:
                    return written + _ONE.pack(2, topic, 2, *partitions[0], 0, 0, 1) + self._tail
        return written + _lists(topics, forgotten) + self._tail


def _lists(topics: WantedTopics, forgotten: ForgottenTopics) -> bytes:
    writer = Writer()
    writer.compact_array_length(len(topics))
    for topic, partitions in topics:
        writer.buf += topic
        writer.compact_array_length(len(partitions))
        for wanted in partitions:
            writer.buf += _PARTITION.pack(*wanted, 0)
        writer.no_tags()
    writer.compact_array_length(len(forgotten))
    for topic, indexes in forgotten:
        writer.buf += topic
        writer.compact_array_length(len(indexes))
        writer.numbers(indexes, "i")
        writer.no_tags()
    return writer.getvalue()


# --- the answer -----------------------------------------------------------------------------------------

_ANSWER_HEAD: Final = Struct(">iBihiB")  # correlation id, tags, throttle, error, session, topics
_ANSWER_BODY: Final = Struct(">ihi")
_HEAD_SIZE: Final = _ANSWER_HEAD.size
# Partition, error, high watermark, last stable offset, log start ...
_DATA_BEGINNING: Final = Struct(">ihqqq")
# ... and around it the topic, two counts, the preferred replica and the first byte of the records' length.
_ONE_DATA: Final = Struct(">16sBihqqqBiB")
_ABORTED_SIZE: Final = 17
_EPOCH_END: Final = Struct(">iq")
_LEADER: Final = Struct(">ii")
_SNAPSHOT: Final = Struct(">qi")
_NO_RECORDS: Final = memoryview(b"")


def parse_replica_fetch(frame: memoryview) -> ReplicaFetchAnswer:
    """A whole frame without its length field. Raises ProtocolError."""
    size = len(frame)
    if size > _HEAD_SIZE:
        correlation_id, tags, throttle_ms, error_code, session_id, count = _ANSWER_HEAD.unpack_from(frame)
        if not tags:
            if count == 1 and size == _HEAD_SIZE + 1 and not frame[_HEAD_SIZE]:
                return ReplicaFetchAnswer(correlation_id, throttle_ms, error_code, session_id, [])
            if count == 2:
                topics = _one_partition(frame, size)
                if topics is not None:
                    return ReplicaFetchAnswer(correlation_id, throttle_ms, error_code, session_id, topics)
    return _parse_any(Reader(frame))


def _one_partition(frame: memoryview, size: int) -> list[tuple[bytes, list[FetchedPartitionData]]] | None:
    """One topic with one partition and nothing unusual; None if it is anything else."""
    at = _HEAD_SIZE + _ONE_DATA.size
    if size < at:
        return None
    topic, count, index, error, watermark, _, log_start, aborted, _, length = _ONE_DATA.unpack_from(
        frame, _HEAD_SIZE
    )
    if count != 2 or aborted > 1:
        return None
    if length >= 0x80:
        shift, byte = 7, length
        length &= 0x7F
        while byte >= 0x80:
            if shift > 28 or at >= size:
                return None
            byte = frame[at]
            at += 1
            length |= (byte & 0x7F) << shift
            shift += 7
        if not byte:
            return None  # longer than its value needs: the other path refuses it
    end = at + length - 1 if length else at
    if end + 3 != size or frame[end] or frame[end + 1] or frame[end + 2]:
        return None
    return [(topic, [FetchedPartitionData(index, error, watermark, log_start, frame[at:end])])]


def _parse_any(reader: Reader) -> ReplicaFetchAnswer:
    correlation_id = reader.int32()
    reader.skip_tags(MAX_HEADER_TAGS)
    throttle_ms, error_code, session_id = reader.fixed(_ANSWER_BODY)
    topics = []
    for _ in range(reader.compact_array_length(18)):
        topic = reader.take(16).tobytes()
        partitions = [_read_partition(reader) for _ in range(reader.compact_array_length(37))]
        topics.append((topic, partitions))
        reader.skip_tags()
    reader.skip_tags()  # endpoints of new leaders: a broker has them from the metadata
    reader.finish()
    return ReplicaFetchAnswer(correlation_id, throttle_ms, error_code, session_id, topics)


def _read_partition(reader: Reader) -> FetchedPartitionData:
    partition, error_code, high_watermark, _, log_start = reader.fixed(_DATA_BEGINNING)
    # Aborted transactions are for consumers; a follower finds the markers among the records.
    for _ in range(reader.compact_nullable_array_length(_ABORTED_SIZE)):
        reader.skip(_ABORTED_SIZE - 1)
        reader.skip_tags()
    reader.skip(4)  # the preferred replica
    records = reader.compact_nullable_records()
    diverging = current_leader = None
    for tag in reader.tags():
        if tag == 0:
            epoch, end_offset = reader.fixed(_EPOCH_END)
            diverging = (epoch, end_offset) if (epoch, end_offset) != (-1, -1) else None
        elif tag == 1:
            leader, leader_epoch = reader.fixed(_LEADER)
            current_leader = (leader, leader_epoch) if (leader, leader_epoch) != (-1, -1) else None
        elif tag == 2:
            reader.fixed(_SNAPSHOT)
        else:
            reader.skip_tag()
            continue
        reader.skip_tags()
    return FetchedPartitionData(
        partition,
        error_code,
        high_watermark,
        log_start,
        _NO_RECORDS if records is None else records,
        diverging,
        current_leader,
    )
