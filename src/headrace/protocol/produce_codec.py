"""Produce versions 3 to 13, by hand: the request that a broker reads most, parsed without a copy.

The records stay where they are, in the frame: a partition is (index, start, end), or (index, -1, -1) if
its records are null. A request for one partition, by far the commonest, takes a path of a few operations;
whatever does not look exactly like one takes the general path, which checks everything and words the
errors. Topics are names up to version 12 and ids from 13 on.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple
from uuid import UUID

from headrace.core.ports import Buffer
from headrace.protocol.limits import MAX_ELEMENTS
from headrace.protocol.node_endpoints import Endpoint, encode_endpoints
from headrace.protocol.primitives import Reader, Writer
from headrace.protocol.reader import uuid_of
from headrace.protocol.topic_names import MAX_CACHED_NAME, encoded_topic, name_of

FIRST_FLEXIBLE: Final = 9
FIRST_WITH_ERROR_DETAIL: Final = 8
FIRST_WITH_LEADER: Final = 10
FIRST_WITH_TOPIC_IDS: Final = 13

Topic = str | UUID

PartitionSlice = tuple[int, int, int]
"""Partition, and where its records begin and end in the frame."""

# transactional id (null), acks, timeout, topic count, length of the name
_CLASSIC_HEAD: Final = struct.Struct(">hhiih")
_FLEXIBLE_HEAD: Final = struct.Struct(">BhiBB")
# partition count, partition, length of the records
_CLASSIC_PARTITION: Final = struct.Struct(">iii")
_FLEXIBLE_PARTITION: Final = struct.Struct(">Bi")
# transactional id (null), acks, timeout, topic count, topic id, partition count, partition
_HEAD_BY_ID: Final = struct.Struct(">BhiB16sBi")


class ProduceRequestView(NamedTuple):
    acks: int
    timeout_ms: int
    transactional_id: str | None
    topics: list[tuple[Topic, list[PartitionSlice]]]


class PartitionResult(NamedTuple):
    partition: int
    error_code: int = 0
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: Sequence[tuple[int, str | None]] = ()
    """Index in the batch, and what is wrong with that record."""
    error_message: str | None = None
    current_leader: tuple[int, int] | None = None
    """Broker and epoch; with them a client finds the new leader without asking for metadata."""


OnePartition = tuple[int, int, Topic, int, int, int]
"""acks, timeout, topic, partition, and where its records begin and end."""


def parse_one(view: Buffer, at: int, version: int, end: int) -> OnePartition | None:
    """A request for one partition, without a transaction; None if it is not exactly that."""
    try:
        if version >= FIRST_WITH_TOPIC_IDS:
            return _parse_one_by_id(view, at, end)
        if version >= FIRST_FLEXIBLE:
            return _parse_one_flexible(view, at, end)
        return _parse_one_classic(view, at, end)
    except (struct.error, IndexError):
        return None  # cut off: the general path says where


def parse_produce(view: Buffer, at: int, version: int, end: int | None = None) -> ProduceRequestView:
    """The body of a request, which must end exactly at `end`. Raises ProtocolError."""
    limit = len(view) if end is None else end
    found = parse_one(view, at, version, limit)
    if found is None:
        return parse_any(view, at, version, limit)
    acks, timeout_ms, topic, partition, start, stop = found
    return ProduceRequestView(acks, timeout_ms, None, [(topic, [(partition, start, stop)])])


def _parse_one_classic(view: Buffer, at: int, end: int) -> OnePartition | None:
    no_id, acks, timeout_ms, topics, size = _CLASSIC_HEAD.unpack_from(view, at)
    if no_id != -1 or topics != 1 or not 0 <= size <= MAX_CACHED_NAME:
        return None
    at += 14
    after = at + size
    partitions, partition, length = _CLASSIC_PARTITION.unpack_from(view, after)
    start = after + 12
    # Positions only grow, so this one comparison proves that all of them lie before the end.
    if partitions != 1 or length < 0 or start + length != end:
        return None
    name = name_of(bytes(view[at:after]))
    return acks, timeout_ms, name, partition, start, end


def _parse_one_flexible(view: Buffer, at: int, end: int) -> OnePartition | None:
    no_id, acks, timeout_ms, topics, size = _FLEXIBLE_HEAD.unpack_from(view, at)
    if no_id or topics != 2 or not 0 < size < 0x80:
        return None
    at += 9
    after = at + size - 1
    partitions, partition = _FLEXIBLE_PARTITION.unpack_from(view, after)
    if partitions != 2:
        return None
    start, stop = _rest_of_one(view, after + 5, end)
    if stop < 0:
        return None
    name = name_of(bytes(view[at:after]))
    return acks, timeout_ms, name, partition, start, stop


def _parse_one_by_id(view: Buffer, at: int, end: int) -> OnePartition | None:
    no_id, acks, timeout_ms, topics, topic_id, partitions, partition = _HEAD_BY_ID.unpack_from(view, at)
    if no_id or topics != 2 or partitions != 2:
        return None
    start, stop = _rest_of_one(view, at + _HEAD_BY_ID.size, end)
    return None if stop < 0 else (acks, timeout_ms, uuid_of(topic_id), partition, start, stop)


def _rest_of_one(view: Buffer, at: int, end: int) -> tuple[int, int]:
    """Where the records begin and end whose length stands at `at`, if nothing but three empty lists of tags
    comes behind them; an end of -1 otherwise."""
    length = view[at] - 1
    start = at + 1
    if length >= 0x7F:
        length, start = _longer_varint(view, start, length - 0x7F)
    stop = start + length
    if length < 0 or stop + 3 != end or view[stop] | view[stop + 1] | view[stop + 2]:
        return -1, -1
    return start, stop


def _longer_varint(view: Buffer, at: int, value: int) -> tuple[int, int]:
    """The length whose lowest seven bits are `value`, less one, and where it ends; -1 if it is malformed."""
    for shift in (7, 14, 21, 28):
        byte = view[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value - 1 if byte and value <= 0x7FFFFFFF else -1), at
    return -1, at


def names_partition_twice(request: ProduceRequestView) -> bool:
    names = {topic for topic, _ in request.topics}
    if len(names) != len(request.topics):
        return True
    return any(len({index for index, _, _ in each}) != len(each) for _, each in request.topics)


def once_each(request: ProduceRequestView) -> ProduceRequestView:
    """With the last mention of each partition alone."""
    topics: dict[Topic, dict[int, PartitionSlice]] = {}
    for topic, each in request.topics:
        topics.setdefault(topic, {}).update({found[0]: found for found in each})
    return request._replace(topics=[(topic, list(each.values())) for topic, each in topics.items()])


def parse_any(
    view: Buffer, at: int, version: int, end: int, max_elements: int = MAX_ELEMENTS
) -> ProduceRequestView:
    """The general path: for what `parse_one` has declined. Raises ProtocolError."""
    reader = Reader(view, at, end, max_elements=max_elements)
    flexible = version >= FIRST_FLEXIBLE
    transactional_id = reader.compact_nullable_string() if flexible else reader.nullable_string()
    acks, timeout_ms = reader.int16(), reader.int32()
    topics = []
    for _ in range(reader.compact_array_length(3) if flexible else reader.array_length(6)):
        name: Topic
        if version >= FIRST_WITH_TOPIC_IDS:
            name = reader.uuid()
        else:
            name = reader.compact_string() if flexible else reader.string()
        partitions = []
        for _ in range(reader.compact_array_length(6) if flexible else reader.array_length(8)):
            partition = reader.int32()
            length = reader.unsigned_varint() - 1 if flexible else reader.int32()
            if length == -1:
                partitions.append((partition, -1, -1))
            else:
                start = reader.skip(length)
                partitions.append((partition, start, start + length))
            if flexible:
                reader.skip_tags()
        if flexible:
            reader.skip_tags()
        topics.append((name, partitions))
    if flexible:
        reader.skip_tags()
    reader.finish()
    return ProduceRequestView(acks, timeout_ms, transactional_id, topics)


# --- the response ---------------------------------------------------------------------------------------

_LENGTH_AND_CORRELATION: Final = struct.Struct(">ii")
# partition, error, base offset, append time [, log start] [, record errors, message] [, tags]
_PARTITION: Final = {
    3: struct.Struct(">ihqq"),
    5: struct.Struct(">ihqqq"),
    8: struct.Struct(">ihqqqih"),
    9: struct.Struct(">ihqqqBBB"),
}
_WHOLE_TAIL: Final = {
    # the same of the only partition, then [topic tags], throttle time [, tags]
    3: struct.Struct(">ihqqi"),
    5: struct.Struct(">ihqqqi"),
    8: struct.Struct(">ihqqqihi"),
    9: struct.Struct(">ihqqqBBBBiB"),
}
_NO_DETAIL: Final = ((), None, None)
_THROTTLE: Final = struct.Struct(">i")


@lru_cache(maxsize=4096)
def _one_partition_prefix(topic: Topic, flexible: bool) -> bytes:
    """Everything from behind the correlation id to the only partition of the only topic."""
    if flexible:
        return b"\0\x02" + encoded_topic(topic, True) + b"\x02"
    return b"\0\0\0\x01" + encoded_topic(topic, False) + b"\0\0\0\x01"


def encode_produce_response(
    version: int,
    correlation_id: int,
    results: Sequence[tuple[Topic, Sequence[PartitionResult]]],
    throttle_ms: int = 0,
    node_endpoints: Sequence[Endpoint] = (),
) -> bytes:
    """The whole frame, with length and header. Detail that a version cannot say is left out."""
    if len(results) == 1 and len(results[0][1]) == 1 and not node_endpoints:
        topic, (result,) = results[0]
        if not result[1] and result[5:] == _NO_DETAIL:
            partition, _, base_offset, append_time, log_start = result[:5]
            return encode_acknowledgement(
                version, correlation_id, topic, partition, base_offset, append_time, log_start, throttle_ms
            )
    return _encode_any(version, correlation_id, results, throttle_ms, node_endpoints)


def encode_acknowledgement(
    version: int,
    correlation_id: int,
    topic: Topic,
    partition: int,
    base_offset: int,
    append_time: int,
    log_start: int,
    throttle_ms: int = 0,
) -> bytes:
    """The whole frame for one partition that has no error."""
    prefix = _one_partition_prefix(topic, version >= FIRST_FLEXIBLE)
    if version >= FIRST_FLEXIBLE:
        tail = _WHOLE_TAIL[9].pack(
            partition, 0, base_offset, append_time, log_start, 1, 0, 0, 0, throttle_ms, 0
        )
    elif version >= FIRST_WITH_ERROR_DETAIL:
        tail = _WHOLE_TAIL[8].pack(partition, 0, base_offset, append_time, log_start, 0, -1, throttle_ms)
    elif version >= 5:
        tail = _WHOLE_TAIL[5].pack(partition, 0, base_offset, append_time, log_start, throttle_ms)
    else:
        tail = _WHOLE_TAIL[3].pack(partition, 0, base_offset, append_time, throttle_ms)
    return _LENGTH_AND_CORRELATION.pack(4 + len(prefix) + len(tail), correlation_id) + prefix + tail


def _encode_any(
    version: int,
    correlation_id: int,
    results: Sequence[tuple[Topic, Sequence[PartitionResult]]],
    throttle_ms: int,
    node_endpoints: Sequence[Endpoint],
) -> bytes:
    flexible = version >= FIRST_FLEXIBLE
    writer = Writer()
    buf = writer.buf
    buf += _LENGTH_AND_CORRELATION.pack(0, correlation_id)
    if flexible:
        buf.append(0)
    write_count = writer.compact_array_length if flexible else writer.array_length
    write_count(len(results))
    for topic, partitions in results:
        buf += encoded_topic(topic, flexible)
        write_count(len(partitions))
        for result in partitions:
            _write_partition(writer, version, result)
        if flexible:
            buf.append(0)
    buf += _THROTTLE.pack(throttle_ms)
    if flexible:
        if node_endpoints and version >= FIRST_WITH_LEADER:
            writer.tags([(0, encode_endpoints(node_endpoints))])
        else:
            buf.append(0)
    struct.pack_into(">i", buf, 0, len(buf) - 4)
    return bytes(buf)


def _write_partition(writer: Writer, version: int, result: PartitionResult) -> None:
    partition, error, base_offset, append_time, log_start, record_errors, message, leader = result
    if version < 5:
        writer.buf += _PARTITION[3].pack(partition, error, base_offset, append_time)
        return
    plain = not (record_errors or message is not None or leader)
    if version < FIRST_WITH_ERROR_DETAIL or not plain:
        writer.buf += _PARTITION[5].pack(partition, error, base_offset, append_time, log_start)
        if version >= FIRST_WITH_ERROR_DETAIL:
            _write_detail(writer, version, result)
    elif version >= FIRST_FLEXIBLE:
        writer.buf += _PARTITION[9].pack(partition, error, base_offset, append_time, log_start, 1, 0, 0)
    else:
        writer.buf += _PARTITION[8].pack(partition, error, base_offset, append_time, log_start, 0, -1)


def _write_detail(writer: Writer, version: int, result: PartitionResult) -> None:
    if version < FIRST_FLEXIBLE:
        writer.array_length(len(result.record_errors))
        for index, message in result.record_errors:
            writer.int32(index)
            writer.nullable_string(message)
        writer.nullable_string(result.error_message)
        return
    writer.compact_array_length(len(result.record_errors))
    for index, message in result.record_errors:
        writer.int32(index)
        writer.compact_nullable_string(message)
        writer.no_tags()
    writer.compact_nullable_string(result.error_message)
    if result.current_leader is None or version < FIRST_WITH_LEADER:
        writer.no_tags()
        return
    leader = Writer()
    leader.int32(result.current_leader[0])
    leader.int32(result.current_leader[1])
    leader.no_tags()
    writer.tags([(0, leader)])
