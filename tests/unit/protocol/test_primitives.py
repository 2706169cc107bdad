from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from headrace.protocol.primitives import MAX_STRING, ProtocolError, Reader, Writer, required

BOUNDS = [0, 1, -1, 63, 64, -64, -65, 8191, 8192, (1 << 31) - 1, -(1 << 31)]


def written(write: Callable[[Writer], None]) -> bytes:
    writer = Writer()
    write(writer)
    return writer.getvalue()


@pytest.mark.parametrize(
    ("value", "raw"),
    [
        (0, "00"),
        (1, "01"),
        (127, "7f"),
        (128, "8001"),
        (16383, "ff7f"),
        (16384, "808001"),
        ((1 << 32) - 1, "ffffffff0f"),
    ],
)
def test_unsigned_varints_on_the_wire(value: int, raw: str) -> None:
    assert written(lambda writer: writer.unsigned_varint(value)).hex() == raw
    reader = Reader(bytes.fromhex(raw))
    assert reader.unsigned_varint() == value
    reader.finish()


@pytest.mark.parametrize(("value", "raw"), [(0, "00"), (-1, "01"), (1, "02"), (-64, "7f"), (64, "8001")])
def test_signed_varints_are_zigzag(value: int, raw: str) -> None:
    assert written(lambda writer: writer.varint(value)).hex() == raw
    assert written(lambda writer: writer.varlong(value)).hex() == raw


@pytest.mark.parametrize("value", BOUNDS)
def test_varints_are_read_again(value: int) -> None:
    assert Reader(written(lambda writer: writer.varint(value))).varint() == value
    assert Reader(written(lambda writer: writer.varlong(value))).varlong() == value


@pytest.mark.parametrize("value", [(1 << 63) - 1, -(1 << 63), 1 << 31])
def test_varlongs_are_read_again(value: int) -> None:
    assert Reader(written(lambda writer: writer.varlong(value))).varlong() == value


def test_varints_that_do_not_fit_are_not_written() -> None:
    for value in (1 << 31, -(1 << 31) - 1):
        with pytest.raises(ValueError, match="does not fit"):
            Writer().varint(value)
    for value in (1 << 63, -(1 << 63) - 1):
        with pytest.raises(ValueError, match="does not fit"):
            Writer().varlong(value)
    for value in (1 << 32, -1):
        with pytest.raises(ValueError, match="does not fit"):
            Writer().unsigned_varint(value)


def test_fixed_sizes_on_the_wire() -> None:
    writer = Writer()
    writer.int8(-2)
    writer.int16(-2)
    writer.int32(-2)
    writer.int64(-2)
    writer.uint16(65535)
    writer.uint32(4294967295)
    writer.float64(1.5)
    writer.boolean(True)
    writer.uuid(UUID(int=1))
    raw = writer.getvalue()
    assert (
        raw.hex()
        == "fe"
        + "fffe"
        + "fffffffe"
        + "ff" * 7
        + "fe"
        + "ffff"
        + "ffffffff"
        + "3ff8"
        + "00" * 6
        + ("01" + "00" * 15 + "01")
    )
    reader = Reader(raw)
    assert (reader.int8(), reader.int16(), reader.int32(), reader.int64()) == (-2, -2, -2, -2)
    assert (reader.uint16(), reader.uint32(), reader.float64()) == (65535, 4294967295, 1.5)
    assert reader.boolean() is True
    assert reader.uuid() == UUID(int=1)
    reader.finish()


def test_strings_on_the_wire() -> None:
    assert written(lambda writer: writer.string("é")) == b"\0\x02\xc3\xa9"
    assert written(lambda writer: writer.compact_string("é")) == b"\x03\xc3\xa9"
    assert written(lambda writer: writer.nullable_string(None)) == b"\xff\xff"
    assert written(lambda writer: writer.compact_nullable_string(None)) == b"\0"
    assert Reader(b"\xff\xff").nullable_string() is None
    assert Reader(b"\0").compact_nullable_string() is None
    assert Reader(b"\0\x02\xc3\xa9").string() == "é"
    assert Reader(b"\x03\xc3\xa9").compact_string() == "é"


def test_the_longest_string() -> None:
    longest = "x" * MAX_STRING
    assert Reader(written(lambda writer: writer.string(longest))).string() == longest
    assert Reader(written(lambda writer: writer.compact_string(longest))).compact_string() == longest
    with pytest.raises(ValueError, match="longer than 32767"):
        Writer().string(longest + "x")
    with pytest.raises(ValueError, match="longer than 32767"):
        Writer().compact_string(longest + "x")


def test_bytes_are_copied_and_records_are_not() -> None:
    frame = bytearray(b"\0\0\0\x02ab")
    copied, shared = Reader(frame).bytes_(), Reader(frame).records()
    frame[4] = ord("z")
    assert copied == b"ab"
    assert bytes(shared) == b"zb"


def test_reading_stays_inside_its_slice() -> None:
    reader = Reader(b"\x01\x02\x03\x04", 1, 3)
    assert reader.int16() == 0x0203
    with pytest.raises(ProtocolError, match="0 remain"):
        reader.int8()


def test_tags_are_bounded_by_their_size() -> None:
    # One tagged field, number 5, two bytes long, of which the reader takes only one.
    reader = Reader(b"\x01\x05\x02\x00\x00")
    with pytest.raises(ProtocolError, match="longer than its content"):
        [reader.int8() for _ in reader.tags()]
    # The same field cannot be read beyond its end, although the buffer goes on.
    reader = Reader(b"\x01\x05\x01\x00\x00")
    with pytest.raises(ProtocolError, match="2 bytes wanted, 1 remain"):
        [reader.int16() for _ in reader.tags()]


def test_tags_can_be_skipped_one_by_one_or_all() -> None:
    raw = b"\x02\x00\x01a\x05\x02bc!"
    reader = Reader(raw)
    seen = []
    for tag in reader.tags():
        seen.append(tag)
        reader.skip_tag()
    assert seen == [0, 5]
    assert bytes(reader.take(1)) == b"!"
    reader = Reader(raw)
    reader.skip_tags()
    assert bytes(reader.take(1)) == b"!"


def test_null_is_refused_where_it_cannot_be_written() -> None:
    assert required(0) == 0
    with pytest.raises(ValueError, match="null"):
        required(None)
