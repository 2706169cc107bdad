from __future__ import annotations

import gzip
import sys
import tracemalloc
import zlib
from collections.abc import Callable

import cramjam
import lz4.frame
import pytest
from aiokafka import codec as oracle
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.errors import CorruptBatch, InvalidRecord, UnsupportedCompression
from headrace.protocol.compression import MAX_FRAMES, Compression, compress, decompress

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CODECS = [codec for codec in Compression if codec is not Compression.NONE]
SAMPLE = b"the water of the headrace " * 5000

Codec = Callable[[bytes], bytes]


@pytest.mark.parametrize("codec", list(Compression))
@given(data=st.binary(max_size=5000))
def test_what_is_compressed_comes_back(codec: Compression, data: bytes) -> None:
    assert decompress(codec, compress(codec, data)) == data


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_is_taken(codec: Compression, kind: type) -> None:
    assert decompress(codec, kind(compress(codec, kind(SAMPLE)))) == SAMPLE


@pytest.mark.parametrize(
    ("codec", "write", "read"),
    [
        (Compression.GZIP, oracle.gzip_encode, oracle.gzip_decode),
        (Compression.SNAPPY, oracle.snappy_encode, oracle.snappy_decode),
        (Compression.LZ4, oracle.lz4_encode, oracle.lz4_decode),
        (Compression.ZSTD, oracle.zstd_encode, oracle.zstd_decode),
    ],
)
def test_another_client_agrees_in_both_directions(codec: Compression, write: Codec, read: Codec) -> None:
    assert bytes(read(compress(codec, SAMPLE))) == SAMPLE
    assert decompress(codec, bytes(write(SAMPLE))) == SAMPLE


@pytest.mark.parametrize("level", [1, 6, 9, 12])
@pytest.mark.parametrize("codec", [Compression.LZ4, Compression.ZSTD])
def test_levels_are_taken(codec: Compression, level: int) -> None:
    assert decompress(codec, compress(codec, SAMPLE, level)) == SAMPLE


def test_gzip_level_changes_the_size() -> None:
    noise = bytes(n * n % 251 for n in range(50_000))
    assert len(compress(Compression.GZIP, noise, 9)) < len(compress(Compression.GZIP, noise, 1))


def test_lz4_has_independent_blocks_and_no_declared_size() -> None:
    info = lz4.frame.get_frame_info(compress(Compression.LZ4, SAMPLE))
    assert info["block_linked"] is False
    assert info["content_size"] == 0


def test_raw_snappy_is_read_as_librdkafka_sends_it() -> None:
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(SAMPLE))) == SAMPLE


def test_framed_snappy_may_be_concatenated() -> None:
    both = compress(Compression.SNAPPY, b"one") + compress(Compression.SNAPPY, b"two")
    assert decompress(Compression.SNAPPY, both) == b"onetwo"


@pytest.mark.parametrize(
    ("codec", "one"),
    [
        (Compression.GZIP, gzip.compress(b"x", mtime=0)),
        (Compression.LZ4, lz4.frame.compress(b"x")),
        (Compression.ZSTD, zstd.compress(b"x")),
    ],
    ids=["gzip", "lz4", "zstd"],
)
def test_a_few_frames_are_read_and_many_refused(codec: Compression, one: bytes) -> None:
    assert decompress(codec, one * MAX_FRAMES) == b"x" * MAX_FRAMES
    with pytest.raises(CorruptBatch, match="more than 16"):
        decompress(codec, one * (MAX_FRAMES + 1))


@pytest.mark.parametrize("codec", CODECS)
def test_output_stops_at_the_cap(codec: Compression) -> None:
    bomb = compress(codec, b"\x00" * 3_000_000)
    assert len(decompress(codec, bomb, 3_000_000)) == 3_000_000
    with pytest.raises(InvalidRecord, match="expands to more than"):
        decompress(codec, bomb, 2_999_999)


def test_a_zstd_bomb_is_stopped_by_its_ratio() -> None:
    bomb = zstd.compress(b"\x00" * (80 * 1024 * 1024))
    assert len(bomb) * 1100 < 64 * 1024 * 1024
    with pytest.raises(InvalidRecord):
        decompress(Compression.ZSTD, bomb)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


@pytest.mark.parametrize(
    ("codec", "claim"),
    [
        (Compression.SNAPPY, _varint(200_000_000) + b"\x00" * 10),
        (Compression.SNAPPY, _varint(60_000_000) + b"\x00" * 10),  # below the cap, and more than it can be
        (Compression.SNAPPY, b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01\x7f\xff\xff\xff\x00"),
        (
            Compression.SNAPPY,
            b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x06"
            + _varint(200_000_000)
            + b"\x00\x00",
        ),
        (Compression.ZSTD, b"\x28\xb5\x2f\xfd\xe0" + (1 << 40).to_bytes(8, "little") + b"\x00" * 8),
        (Compression.LZ4, b"\x04\x22\x4d\x18" + b"\x68\x40" + (1 << 40).to_bytes(8, "little") + b"\x00" * 8),
    ],
)
def test_a_claimed_size_allocates_nothing(codec: Compression, claim: bytes) -> None:
    decompress(codec, compress(codec, b"warm the import"))
    tracemalloc.start()
    try:
        with pytest.raises((CorruptBatch, InvalidRecord)):
            decompress(codec, claim)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", CODECS)
def test_every_truncation_is_corrupt(codec: Compression) -> None:
    whole = compress(codec, b"abcdefgh" * 8)
    for length in range(len(whole)):
        if codec is Compression.SNAPPY and length == 16:
            continue  # a frame header without blocks is the framing of nothing
        with pytest.raises(CorruptBatch):
            decompress(codec, whole[:length])


@pytest.mark.parametrize("codec", CODECS)
@given(data=st.binary(max_size=300))
def test_noise_gives_only_our_errors(codec: Compression, data: bytes) -> None:
    try:
        decompress(codec, data, 1 << 20)
    except (CorruptBatch, InvalidRecord):
        pass


@pytest.mark.parametrize("codec", CODECS)
@given(at=st.integers(0, 200), value=st.integers(0, 255))
def test_a_changed_byte_gives_only_our_errors(codec: Compression, at: int, value: int) -> None:
    data = bytearray(compress(codec, bytes(range(256)) * 2))
    data[at % len(data)] = value
    try:
        decompress(codec, data, 1 << 20)
    except (CorruptBatch, InvalidRecord):
        pass


def test_gzip_checksum_is_verified() -> None:
    data = bytearray(compress(Compression.GZIP, b"abc"))
    data[-8] ^= 0xFF
    with pytest.raises(CorruptBatch):
        decompress(Compression.GZIP, data)
    with pytest.raises(CorruptBatch):
        decompress(Compression.GZIP, zlib.compress(b"no gzip wrapper"))


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_codecs_that_do_not_exist(codec: int) -> None:
    with pytest.raises(UnsupportedCompression):
        decompress(codec, b"x")
    with pytest.raises(UnsupportedCompression):
        compress(codec, b"x")


def test_names_of_codecs() -> None:
    assert Compression.named("zstd") is Compression.ZSTD
    with pytest.raises(UnsupportedCompression, match="none, gzip, snappy, lz4, zstd"):
        Compression.named("brotli")
