"""OffsetCommit 8 and 9, by hand: what consumers send most, after Fetch.

The bytes are those of the generated classes, and so are the objects. Whatever does not look usual, a tagged
field or a text of more than 126 bytes, is left to them, who check everything and word the errors.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from struct import Struct
from typing import Final

from headrace.protocol.headers import frame_response
from headrace.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.protocol.messages.offset_commit_response import OffsetCommitResponse
from headrace.protocol.primitives import ProtocolError, Reader
from headrace.protocol.topic_names import encoded_topic, name_of

FIRST: Final = 8
LAST: Final = 9
_LONGER_VARINT: Final = 0x80
_GENERATION: Final = Struct(">i")
_PARTITION: Final = Struct(">iqiB")  # partition, offset, leader epoch, length of the metadata
_RESPONSE: Final = Struct(">iixiB")  # length, correlation id, no tags, throttle time, topics
_ROW: Final = Struct(">ihx")  # partition, error code, no tags


def _decoded(raw: bytes) -> str:
    return raw.decode()


_id_of: Final = lru_cache(maxsize=4096)(_decoded)
"""Of groups and members, who commit again and again."""


def read_request(frame: memoryview, at: int, version: int) -> OffsetCommitRequest:
    """The body of a request that begins at `at`. Raises ProtocolError."""
    if FIRST <= version <= LAST:
        try:
            found = _read_usual(frame, at)
        except (struct.error, IndexError, UnicodeDecodeError, ProtocolError):
            found = None  # cut off, or damaged: the general reader says where
        if found is not None:
            return found
    return OffsetCommitRequest.decode(Reader(frame, at), version)


def _read_usual(frame: memoryview, at: int) -> OffsetCommitRequest | None:
    """None if it is not usual. A text that the frame's end cuts off is noticed by the byte behind it."""
    size = frame[at]
    if not 0 < size < _LONGER_VARINT:
        return None
    start, at = at + 1, at + size
    group_id = _id_of(bytes(frame[start:at]))
    generation: int = _GENERATION.unpack_from(frame, at)[0]
    at += 4
    size = frame[at]
    if not 0 < size < _LONGER_VARINT:
        return None
    start, at = at + 1, at + size
    member_id = "" if size == 1 else _id_of(bytes(frame[start:at]))
    size = frame[at]
    if size >= _LONGER_VARINT:
        return None
    start, at = at + 1, at + (size or 1)
    instance_id = _id_of(bytes(frame[start:at])) if size else None
    count = frame[at] - 1
    if not 0 <= count < 0x7F:
        return None
    at += 1
    topics: list[OffsetCommitRequestTopic] = []
    for _ in range(count):
        at = _read_topic(frame, at, topics)
        if at < 0:
            return None
    if frame[at]:
        return None
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        topics=topics,
    )


def _read_topic(frame: memoryview, at: int, topics: list[OffsetCommitRequestTopic]) -> int:
    """Where it ends; -1 if it is not usual."""
    size = frame[at]
    if not 0 < size < _LONGER_VARINT:
        return -1
    start, at = at + 1, at + size
    name = name_of(bytes(frame[start:at]))
    count = frame[at] - 1
    if not 0 <= count < 0x7F:
        return -1
    at += 1
    partitions: list[OffsetCommitRequestPartition] = []
    for _ in range(count):
        index, offset, epoch, size = _PARTITION.unpack_from(frame, at)
        if size >= _LONGER_VARINT:
            return -1
        start = at + 17
        at = start + (size - 1 if size else 0)
        metadata: str | None = None
        if size:
            metadata = "" if size == 1 else str(frame[start:at], "utf-8")
        if frame[at]:
            return -1
        at += 1
        partitions.append(
            OffsetCommitRequestPartition(
                partition_index=index,
                committed_offset=offset,
                committed_leader_epoch=epoch,
                committed_metadata=metadata,
            )
        )
    if frame[at]:
        return -1
    topics.append(OffsetCommitRequestTopic(name=name, partitions=partitions))
    return at + 1


def frame_answer(response: OffsetCommitResponse, version: int, correlation_id: int) -> bytes:
    """A whole frame: length, header, body."""
    topics = response.topics
    if not FIRST <= version <= LAST or len(topics) >= 0x7F:
        return frame_response(response, version, correlation_id)
    body = b""
    for topic in topics:
        rows = topic.partitions
        if len(rows) >= 0x7F:
            return frame_response(response, version, correlation_id)
        body += encoded_topic(topic.name, True)
        body += (len(rows) + 1).to_bytes(1, "big")
        for row in rows:
            body += _ROW.pack(row.partition_index, row.error_code)
        body += b"\0"
    head = _RESPONSE.pack(len(body) + 11, correlation_id, response.throttle_time_ms, len(topics) + 1)
    return head + body + b"\0"
