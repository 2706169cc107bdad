"""What a peer may ask for, row by row: refused at once, in little time and with next to no memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from time import process_time
from typing import Any

import pytest

from headrace.protocol import produce_codec
from headrace.protocol.fetch_codec import parse_fetch
from headrace.protocol.headers import frame_length, read_request_header
from headrace.protocol.messages.create_topics_request import CreateTopicsRequest
from headrace.protocol.messages.describe_configs_request import DescribeConfigsRequest
from headrace.protocol.messages.metadata_request import MetadataRequest
from headrace.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from headrace.protocol.primitives import MAX_ELEMENTS, ProtocolError, Reader

HUGE = b"\x7f\xff\xff\xff"
HUGE_COMPACT = b"\xff\xff\xff\xff\x0f"
MANY = b"\x00" * 2000


def refuses(read: Callable[[], Any], match: str) -> None:
    tracemalloc.start()
    started = process_time()
    try:
        with pytest.raises(ProtocolError, match=match):
            read()
        took, (_, peak) = process_time() - started, tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * 1024
    assert took < 0.5


@pytest.mark.parametrize("length", [0, -1, -(1 << 31), 101, (1 << 31) - 1])
def test_frame_length(length: int) -> None:
    refuses(lambda: frame_length(length.to_bytes(4, signed=True), 0, 100), "1 to 100 are allowed")


@pytest.mark.parametrize("length", [1, 100])
def test_frame_length_within_bounds(length: int) -> None:
    assert frame_length(length.to_bytes(4, signed=True), 0, 100) == length


@pytest.mark.parametrize(
    ("raw", "match"),
    [
        ("ffffffffff01", "longer than 5 bytes"),
        ("8080808080", "longer than 5 bytes"),
        ("ffffffff1f", "32 bits"),
        ("8000", "longer than its value needs"),
        ("8180808000", "longer than its value needs"),
        ("80", "cut off"),
        ("", "cut off"),
    ],
)
def test_varints(raw: str, match: str) -> None:
    refuses(Reader(bytes.fromhex(raw)).unsigned_varint, match)
    refuses(Reader(bytes.fromhex(raw)).varint, match)


@pytest.mark.parametrize(
    ("raw", "match"),
    [("ff" * 10 + "01", "longer than 10 bytes"), ("ff" * 9 + "02", "64 bits"), ("8000", "value needs")],
)
def test_varlongs(raw: str, match: str) -> None:
    refuses(Reader(bytes.fromhex(raw)).varlong, match)


@pytest.mark.parametrize("count", [HUGE, b"\x00\x00\x02\x00"])
def test_classic_array_counts_must_fit_in_what_remains(count: bytes) -> None:
    refuses(lambda: CreateTopicsRequest.from_bytes(count + b"\x00" * 200, 2), "elements cannot be in the")
    refuses(lambda: MetadataRequest.from_bytes(count + b"\x00" * 200, 1), "elements cannot be in the")


@pytest.mark.parametrize("count", [HUGE_COMPACT, b"\xff\x7f"])
def test_compact_array_counts_must_fit_in_what_remains(count: bytes) -> None:
    refuses(lambda: CreateTopicsRequest.from_bytes(count + b"\x00" * 200, 7), "elements cannot be in the")
    refuses(lambda: MetadataRequest.from_bytes(count + b"\x00" * 200, 12), "elements cannot be in the")


def test_the_smallest_element_counts_not_one_byte() -> None:
    # A topic of CreateTopics 7 takes ten bytes at least: name, two numbers, two counts and its tags.
    refuses(
        lambda: CreateTopicsRequest.from_bytes(b"\x0b" + b"\x00" * 99, 7), "10 elements cannot be in the 99"
    )


def test_all_arrays_of_a_message_share_one_budget() -> None:
    reader = Reader(b"\x3d" + b"\x3d" * 200, max_elements=100)
    assert reader.compact_array_length(1) == 60
    refuses(lambda: reader.compact_array_length(1), "too many array elements")


def test_the_budget_holds_where_elements_are_tiny() -> None:
    # An empty compact string is one byte on the wire and an object here.
    count = MAX_ELEMENTS + 1
    raw = (count + 1 & 0x7F | 0x80, count + 1 >> 7 & 0x7F | 0x80, count + 1 >> 14)
    reader = Reader(bytes(raw) + bytes(count))
    refuses(lambda: reader.compact_array_length(1), "too many array elements")


@pytest.mark.parametrize("version", [3, 8, 9, 12])
def test_produce_counts(version: int) -> None:
    head = b"\x00\x00\x01\x00\x00\x00\x01" if version >= 9 else b"\xff\xff\x00\x01\x00\x00\x00\x01"
    count = HUGE_COMPACT if version >= 9 else HUGE
    refuses(
        lambda: produce_codec.parse_produce(memoryview(head + count + MANY), 0, version), "elements cannot"
    )


@pytest.mark.parametrize("version", [4, 11, 12, 17])
def test_fetch_counts(version: int) -> None:
    head = bytes(21 if version >= 15 else 25 if version >= 7 else 17)
    count = HUGE_COMPACT if version >= 12 else HUGE
    refuses(lambda: parse_fetch(memoryview(head + count + MANY), 0, version), "elements cannot")


def test_tagged_fields_of_a_header() -> None:
    # ApiVersions 3, correlation id 1, no client id, then the tagged fields.
    head = b"\x00\x12\x00\x03\x00\x00\x00\x01\xff\xff"
    _, body = read_request_header(head + b"\x40" + b"\x05\x00" * 64)
    assert body == len(head) + 1 + 128
    refuses(lambda: read_request_header(head + b"\x41" + b"\x05\x00" * 65), "at most 64 are allowed")
    refuses(lambda: read_request_header(head + HUGE_COMPACT), "at most 64 are allowed")
    refuses(lambda: read_request_header(head + b"\x40" + b"\x05\x00" * 63), "cannot be in what remains")
    refuses(lambda: read_request_header(head + b"\x01\x05" + HUGE_COMPACT), "bytes wanted")


def test_tagged_fields_of_a_body() -> None:
    # No topics, and two booleans, then the tagged fields.
    head = b"\x01\x00\x00"
    read = MetadataRequest.from_bytes(head + b"\x80\x08" + b"\x05\x00" * 1024, 12)
    assert read.topics == []
    refuses(lambda: MetadataRequest.from_bytes(head + b"\x81\x08" + b"\x05\x00" * 1025, 12), "at most 1024")
    refuses(lambda: MetadataRequest.from_bytes(head + HUGE_COMPACT, 12), "at most 1024")
    refuses(
        lambda: MetadataRequest.from_bytes(head + b"\x80\x08" + b"\x05\x00" * 1023, 12), "cannot be in what"
    )
    refuses(lambda: MetadataRequest.from_bytes(head + b"\x01\x05" + HUGE_COMPACT, 12), "bytes wanted")


def test_strings_are_capped() -> None:
    long = b"\x81\x80\x02" + b"x" * 32768
    refuses(lambda: Reader(long).compact_string(), "longer than 32767")
    refuses(lambda: Reader(long).compact_nullable_string(), "longer than 32767")
    refuses(lambda: Reader(HUGE_COMPACT).compact_string(), "longer than 32767")
    refuses(lambda: Reader(b"\x7f\xffxxx").string(), "32767 bytes wanted, 3 remain")


def test_strings_are_utf_8() -> None:
    refuses(lambda: Reader(b"\x00\x02\xc3\x28").string(), "not UTF-8")
    refuses(lambda: Reader(b"\x00\x03\xed\xa0\x80").string(), "not UTF-8")
    refuses(lambda: read_request_header(b"\x00\x12\x00\x00\x00\x00\x00\x01\x00\x01\xff"), "not UTF-8")


def test_bytes_must_be_there() -> None:
    refuses(lambda: SaslAuthenticateRequest.from_bytes(HUGE + MANY, 0), "bytes wanted")
    refuses(lambda: SaslAuthenticateRequest.from_bytes(HUGE_COMPACT + MANY, 2), "bytes wanted")
    refuses(lambda: Reader(HUGE + MANY).records(), "bytes wanted")


@pytest.mark.parametrize(
    "read",
    [
        lambda: Reader(b"\xff\xff").string(),
        lambda: Reader(b"\x00").compact_string(),
        lambda: Reader(b"\xff\xff\xff\xff").bytes_(),
        lambda: Reader(b"\x00").compact_bytes(),
        lambda: Reader(b"\xff\xff\xff\xff").records(),
        lambda: Reader(b"\x00").compact_records(),
        lambda: Reader(b"\xff\xff\xff\xff").array_length(1),
        lambda: Reader(b"\x00").compact_array_length(1),
        # Lengths below the -1 that means null mean nothing.
        lambda: Reader(b"\xff\xfe").nullable_string(),
        lambda: Reader(b"\xff\xff\xff\xfe").nullable_bytes(),
        lambda: Reader(b"\xff\xff\xff\xfe").nullable_records(),
        lambda: Reader(b"\xff\xff\xff\xfe").nullable_array_length(1),
        lambda: read_request_header(b"\x00\x12\x00\x00\x00\x00\x00\x01\xff\xfe"),
    ],
)
def test_null_and_negative_lengths(read: Callable[[], object]) -> None:
    refuses(read, "null|negative|-1 bytes|-2 bytes")


def test_null_only_in_the_versions_that_allow_it() -> None:
    assert MetadataRequest.from_bytes(b"\xff\xff\xff\xff", 1).topics is None
    refuses(lambda: MetadataRequest.from_bytes(b"\xff\xff\xff\xff", 0), "null")
    refuses(lambda: DescribeConfigsRequest.from_bytes(b"\xff\xff\xff\xff\x00", 1), "null")
