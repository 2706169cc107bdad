"""Fetch versions 4 to 18, by hand: requests in compact form, responses with gaps for the records.

A response is a list of chunks. Between them go the records, straight from the log's files: chunk i is
followed by the records of partition i, and the last chunk ends the response. The sizes of all records are
known beforehand, so the frame's length is too.

Topics are names up to version 12 and ids from 13 on. Two tagged fields of a request's partition are passed
over: the follower's directory and its high watermark, which only the members of a KRaft quorum send.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from headrace.core.ports import Buffer
from headrace.protocol.limits import MAX_ELEMENTS
from headrace.protocol.node_endpoints import Endpoint, encode_endpoints
from headrace.protocol.primitives import Reader, Writer
from headrace.protocol.reader import uuid_of
from headrace.protocol.topic_names import encoded_topic

FIRST_FLEXIBLE: Final = 12
FIRST_WITH_SESSIONS: Final = 7
FIRST_WITH_TOPIC_IDS: Final = 13
FIRST_WITH_REPLICA_STATE: Final = 15
FIRST_WITH_ENDPOINTS: Final = 16

Topic = str | UUID


class FetchPartition(NamedTuple):
    """In the order of the newest versions on the wire."""

    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    max_bytes: int


class FetchRequestView(NamedTuple):
    replica_id: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: list[tuple[Topic, list[FetchPartition]]]
    forgotten: list[tuple[Topic, list[int]]]
    rack_id: str
    replica_epoch: int
    cluster_id: str | None


_HEAD_WITHOUT_SESSION: Final = struct.Struct(">iiiib")  # replica, wait, min, max bytes, isolation
_HEAD_WITH_REPLICA: Final = struct.Struct(">iiiibii")  # and session, epoch
_HEAD: Final = struct.Struct(">iiibii")
_PARTITION_4: Final = struct.Struct(">iqi")
_PARTITION_5: Final = struct.Struct(">iqqi")
_PARTITION_9: Final = struct.Struct(">iiqqi")
_PARTITION_12: Final = struct.Struct(">iiqiqiB")  # and how many tags, nearly always none
_REPLICA_STATE: Final = struct.Struct(">iq")


# The two commonest requests of consumers, whole: a session that changes nothing, and one partition.
# Head, then the counts of topics and forgotten topics, an empty rack and no tags ...
_UNCHANGED: Final = struct.Struct(">iiibiiBBBB")
_UNCHANGED_TAIL: Final = (1, 1, 1, 0)
# ... or head, topic count, topic id, partition count, partition, its tags, the topic's, and the rest.
_ONE_PARTITION: Final = struct.Struct(">iiibiiB16sBiiqiqiBBBBB")
_ONE_PARTITION_TAIL: Final = (0, 0, 1, 1, 0)
# The same two of a replica, which has one tag: number 1, of 13 bytes, with its id and its broker epoch.
_REPLICA_UNCHANGED: Final = struct.Struct(">iiibiiBBBBBBiqB")
_REPLICA_UNCHANGED_TAIL: Final = (1, 1, 1, 1, 1, 13)
_REPLICA_ONE: Final = struct.Struct(">iiibiiB16sBiiqiqiBBBBBBBiqB")
_REPLICA_ONE_TAIL: Final = (0, 0, 1, 1, 1, 1, 13)


def parse_fetch(
    view: Buffer, at: int, version: int, end: int | None = None, max_elements: int = MAX_ELEMENTS
) -> FetchRequestView:
    """The body of a request, which must end exactly at `end`. Raises ProtocolError."""
    if version >= FIRST_WITH_REPLICA_STATE:
        size = (len(view) if end is None else end) - at
        if size == 25:
            whole = _UNCHANGED.unpack_from(view, at)
            if whole[6:] == _UNCHANGED_TAIL:
                return FetchRequestView._make((-1, *whole[:6], [], [], "", -1, None))
        elif size == 76:
            whole = _ONE_PARTITION.unpack_from(view, at)
            if whole[6] == 2 and whole[8] == 2 and whole[15:] == _ONE_PARTITION_TAIL:
                topics = [(uuid_of(whole[7]), [FetchPartition._make(whole[9:15])])]
                return FetchRequestView._make((-1, *whole[:6], topics, [], "", -1, None))
        elif size == _REPLICA_ONE.size:
            whole = _REPLICA_ONE.unpack_from(view, at)
            if whole[6] == 2 and whole[8] == 2 and whole[15:22] == _REPLICA_ONE_TAIL and not whole[24]:
                topics = [(uuid_of(whole[7]), [FetchPartition._make(whole[9:15])])]
                return FetchRequestView._make((whole[22], *whole[:6], topics, [], "", whole[23], None))
        elif size == _REPLICA_UNCHANGED.size:
            whole = _REPLICA_UNCHANGED.unpack_from(view, at)
            if whole[6:12] == _REPLICA_UNCHANGED_TAIL and not whole[14]:
                return FetchRequestView._make((whole[12], *whole[:6], [], [], "", whole[13], None))
    return _parse_any(Reader(view, at, end, max_elements=max_elements), version)


def _parse_any(reader: Reader, version: int) -> FetchRequestView:
    replica_id, session_id, session_epoch = -1, 0, -1
    if version >= FIRST_WITH_REPLICA_STATE:
        max_wait, min_bytes, max_bytes, isolation, session_id, session_epoch = reader.fixed(_HEAD)
    elif version >= FIRST_WITH_SESSIONS:
        head = reader.fixed(_HEAD_WITH_REPLICA)
        replica_id, max_wait, min_bytes, max_bytes, isolation, session_id, session_epoch = head
    else:
        replica_id, max_wait, min_bytes, max_bytes, isolation = reader.fixed(_HEAD_WITHOUT_SESSION)
    topics = _read_topics(reader, version)
    forgotten = _read_forgotten(reader, version) if version >= FIRST_WITH_SESSIONS else []
    rack_id, replica_epoch, cluster_id = "", -1, None
    if version >= FIRST_FLEXIBLE:
        rack_id = reader.compact_string()
        for tag in reader.tags():
            if tag == 0:
                cluster_id = reader.compact_nullable_string()
            elif tag == 1 and version >= FIRST_WITH_REPLICA_STATE:
                replica_id, replica_epoch = reader.fixed(_REPLICA_STATE)
                reader.skip_tags()
            else:
                reader.skip_tag()
    elif version == 11:
        rack_id = reader.string()
    reader.finish()
    return FetchRequestView(
        replica_id,
        max_wait,
        min_bytes,
        max_bytes,
        isolation,
        session_id,
        session_epoch,
        topics,
        forgotten,
        rack_id,
        replica_epoch,
        cluster_id,
    )


def _read_topic(reader: Reader, version: int) -> Topic:
    if version >= FIRST_WITH_TOPIC_IDS:
        return reader.uuid()
    return reader.compact_string() if version == FIRST_FLEXIBLE else reader.string()


def _read_topics(reader: Reader, version: int) -> list[tuple[Topic, list[FetchPartition]]]:
    topics = []
    if version >= FIRST_FLEXIBLE:
        smallest = 18 if version >= FIRST_WITH_TOPIC_IDS else 3
        for _ in range(reader.compact_array_length(smallest)):
            topic = _read_topic(reader, version)
            partitions = []
            for _ in range(reader.compact_array_length(33)):
                values = reader.fixed(_PARTITION_12)
                partitions.append(FetchPartition._make(values[:6]))
                if values[6]:
                    reader.at -= 1
                    reader.skip_tags()
            topics.append((topic, partitions))
            reader.skip_tags()
        return topics
    for _ in range(reader.array_length(6)):
        topic = _read_topic(reader, version)
        topics.append((topic, [_read_classic(reader, version) for _ in range(reader.array_length(16))]))
    return topics


def _read_classic(reader: Reader, version: int) -> FetchPartition:
    if version >= 9:
        partition, leader_epoch, offset, log_start, max_bytes = reader.fixed(_PARTITION_9)
        return FetchPartition(partition, leader_epoch, offset, -1, log_start, max_bytes)
    if version >= 5:
        partition, offset, log_start, max_bytes = reader.fixed(_PARTITION_5)
        return FetchPartition(partition, -1, offset, -1, log_start, max_bytes)
    partition, offset, max_bytes = reader.fixed(_PARTITION_4)
    return FetchPartition(partition, -1, offset, -1, -1, max_bytes)


def _read_forgotten(reader: Reader, version: int) -> list[tuple[Topic, list[int]]]:
    flexible = version >= FIRST_FLEXIBLE
    forgotten = []
    for _ in range(reader.compact_array_length(3) if flexible else reader.array_length(6)):
        topic = _read_topic(reader, version)
        count = reader.compact_array_length(4) if flexible else reader.array_length(4)
        forgotten.append((topic, reader.numbers(count, "i", 4)))
        if flexible:
            reader.skip_tags()
    return forgotten


# --- the response ---------------------------------------------------------------------------------------


class FetchedPartition(NamedTuple):
    partition: int
    error_code: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    records_size: int = 0
    """How many bytes will follow; -1 says null."""
    aborted: Sequence[tuple[int, int]] | None = None
    """Producer id and first offset of each aborted transaction among the records."""
    preferred_read_replica: int = -1
    diverging_epoch: tuple[int, int] | None = None
    """Epoch and end offset: the follower has to truncate."""
    current_leader: tuple[int, int] | None = None
    """Broker and epoch."""


_HEAD_4: Final = struct.Struct(">ii")  # correlation id, throttle time
_HEAD_7: Final = struct.Struct(">iihi")  # and error, session
_HEAD_12: Final = struct.Struct(">iBihi")  # the same, with the header's tags between
# partition, error, high watermark, last stable offset [, log start], count of aborted transactions
_OUT_4: Final = struct.Struct(">ihqqi")
_OUT_5: Final = struct.Struct(">ihqqqi")
_OUT_12: Final = struct.Struct(">ihqqq")
# The same without aborted transactions, and with all that follows but the length of the records.
_OUT_12_WHOLE: Final = struct.Struct(">ihqqqBi")
_INT32: Final = struct.Struct(">i")
_INT32_PAIR: Final = struct.Struct(">ii")
_ABORTED: Final = struct.Struct(">qq")


def encode_fetch_response(
    version: int,
    correlation_id: int,
    topics: Sequence[tuple[Topic, Sequence[FetchedPartition]]],
    *,
    throttle_ms: int = 0,
    error_code: int = 0,
    session_id: int = 0,
    node_endpoints: Sequence[Endpoint] = (),
) -> tuple[list[bytes], int]:
    """The chunks around the records, one more than there are partitions, and the number of bytes in all:
    length, header, chunks and records. Detail that a version cannot say is left out."""
    flexible = version >= FIRST_FLEXIBLE
    if flexible:
        head = _HEAD_12.pack(correlation_id, 0, throttle_ms, error_code, session_id)
    elif version >= FIRST_WITH_SESSIONS:
        head = _HEAD_7.pack(correlation_id, throttle_ms, error_code, session_id)
    else:
        head = _HEAD_4.pack(correlation_id, throttle_ms)
    count = _compact_length if flexible else _INT32.pack
    pending = head + count(len(topics))
    chunks: list[bytes] = []
    total = 4
    for topic, partitions in topics:
        pending += encoded_topic(topic, flexible) + count(len(partitions))
        for each in partitions:
            chunk = pending + (_partition_12(each) if flexible else _partition_4(each, version))
            chunks.append(chunk)
            records_size = each[5]
            total += len(chunk) + (records_size if records_size > 0 else 0)
            pending = _partition_tags(each) if flexible else b""
        if flexible:
            pending += b"\0"
    if flexible:
        pending += _response_tags(node_endpoints if version >= FIRST_WITH_ENDPOINTS else ())
    chunks.append(pending)
    total += len(pending)
    chunks[0] = _INT32.pack(total - 4) + chunks[0]
    return chunks, total


def _compact_length(count: int) -> bytes:
    count += 1
    if count < 0x80:
        return bytes((count,))
    if count < 0x4000:
        return bytes((count & 0x7F | 0x80, count >> 7))
    if count < 0x200000:
        return bytes((count & 0x7F | 0x80, count >> 7 & 0x7F | 0x80, count >> 14))
    writer = Writer()
    writer.unsigned_varint(count)
    return writer.getvalue()


def _partition_4(each: FetchedPartition, version: int) -> bytes:
    """Everything up to the length of the records, in versions 4 to 11."""
    aborted = each[6]
    count = -1 if aborted is None else len(aborted)
    written = _OUT_5.pack(*each[:5], count) if version >= 5 else _OUT_4.pack(*each[:4], count)
    if aborted:
        written += b"".join(_ABORTED.pack(*one) for one in aborted)
    if version == 11:
        return written + _INT32_PAIR.pack(each[7], each[5])
    return written + _INT32.pack(each[5])


def _partition_12(each: FetchedPartition) -> bytes:
    """Everything up to the length of the records, in flexible versions."""
    aborted = each[6]
    if not aborted:
        marker = 0 if aborted is None else 1
        return _OUT_12_WHOLE.pack(*each[:5], marker, each[7]) + _compact_length(each[5])
    transactions = b"".join(_ABORTED.pack(*one) + b"\0" for one in aborted)
    written = _OUT_12.pack(*each[:5]) + _compact_length(len(aborted)) + transactions
    return written + _INT32.pack(each[7]) + _compact_length(each[5])


def _partition_tags(each: FetchedPartition) -> bytes:
    diverging_epoch, current_leader = each[8:]
    if diverging_epoch is None and current_leader is None:
        return b"\0"
    tags: list[tuple[int, Writer]] = []
    if diverging_epoch is not None:
        tags.append((0, field := Writer()))
        field.int32(diverging_epoch[0])
        field.int64(diverging_epoch[1])
        field.no_tags()
    if current_leader is not None:
        tags.append((1, field := Writer()))
        field.int32(current_leader[0])
        field.int32(current_leader[1])
        field.no_tags()
    writer = Writer()
    writer.tags(tags)
    return writer.getvalue()


def _response_tags(node_endpoints: Sequence[Endpoint]) -> bytes:
    if not node_endpoints:
        return b"\0"
    writer = Writer()
    writer.tags([(0, encode_endpoints(node_endpoints))])
    return writer.getvalue()
