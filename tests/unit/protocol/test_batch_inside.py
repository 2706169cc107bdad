"""What a producer's batch may claim, and that nothing a client writes is refused."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.errors import InvalidRecord
from headrace.protocol.batch_inside import check_inside
from headrace.protocol.compression import Compression
from headrace.protocol.records import NewRecord, encode_batch

BYTES = st.binary(max_size=300) | st.none()
RECORDS = st.lists(
    st.builds(
        NewRecord,
        value=BYTES,
        key=BYTES,
        timestamp=st.integers(0, 2**41),
        headers=st.lists(st.tuples(st.text(max_size=20), BYTES), max_size=3).map(tuple),
    ),
    min_size=1,
    max_size=20,
)


@given(RECORDS, st.sampled_from(Compression))
def test_what_clients_write_is_taken(records: list[NewRecord], codec: Compression) -> None:
    check_inside(bytearray(encode_batch(records, compression=codec)), codec, len(records))


def test_librdkafkas_raw_snappy_is_taken() -> None:
    import cramjam

    body = bytes(encode_batch([NewRecord(b"v" * 500, timestamp=1)]))[61:]
    check_inside(bytearray(61) + bytes(cramjam.snappy.compress_raw(body)), Compression.SNAPPY, 1)


@pytest.mark.parametrize("codec", list(Compression))
@pytest.mark.parametrize("count", [1, 5])
def test_noise_is_refused(codec: Compression, count: int) -> None:
    drawn = random.Random(7)
    refused = 0
    for _ in range(1000):
        try:
            check_inside(bytearray(61) + drawn.randbytes(200), codec, count)
        except InvalidRecord:
            refused += 1
    # Raw snappy begins with a size, and nearly any number can be one.
    assert refused > (100 if codec is Compression.SNAPPY else 999)


@pytest.mark.parametrize("codec", list(Compression))
def test_a_count_that_the_bytes_cannot_hold_is_refused(codec: Compression) -> None:
    batch = bytearray(encode_batch([NewRecord(b"v", timestamp=1)], compression=codec))
    with pytest.raises(InvalidRecord, match="records cannot be in"):
        check_inside(batch, codec, 2**31 - 1)


def test_a_batch_that_compresses_well_is_taken() -> None:
    records = [NewRecord(b"", timestamp=1)] * 200_000
    for codec in (Compression.GZIP, Compression.ZSTD, Compression.LZ4, Compression.SNAPPY):
        check_inside(bytearray(encode_batch(records, compression=codec)), codec, len(records))
