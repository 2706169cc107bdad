"""The bytes of a manifest: what is written is read, and everything else is refused by one exception."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from headrace.tier.manifest import Manifest, Origin, Removed, first_manifest
from headrace.tier.manifest_format import (
    FOLD_ABOVE_BYTES,
    LARGEST_BYTES,
    CorruptManifest,
    NewerManifest,
    decode,
    decode_page,
    encode,
    encode_page,
    stored,
)
from headrace.tier.names import ObjectName, TieredPartition
from headrace.tier.segments import EpochStart, PageRef, RemoteSegment, Stored, page_of
from tests.unit.tier.drawn_manifests import PARTITION, WRITER, chains, manifests, segment

PAGE_NAME = ObjectName(0, 1, "f" * 32)
CHAIN = (segment(0, 100), segment(100, 250), segment(250, 260, epoch=4))
SAMPLE = Manifest(
    PARTITION,
    7,
    WRITER,
    12,
    120,
    (segment(100, 150),),
    (page_of(ObjectName(150, 5, "e" * 32), [segment(150, 200, epoch=2)], Stored(300, 9)),),
    (segment(200, 300, epoch=3), segment(300, 301, epoch=5)),
    (Removed(ObjectName(0, 1, "d" * 32), 1_700_000_000_000),),
    None,
)


def framed(body: object, kind: str = "manifest") -> bytes:
    """With a checksum that is right: a hostile writer knows how to count one."""
    text = body if isinstance(body, bytes) else json.dumps(body, separators=(",", ":")).encode()
    return b'{"crc32c":"%08x","%s":%s}\n' % (crc32c(text), kind.encode(), text)


@given(manifests())
def test_what_is_written_is_read(manifest: Manifest) -> None:
    manifest.check()
    assert decode(encode(manifest), PARTITION) == manifest


@given(chains())
def test_a_page_that_is_written_is_read(chain: list[RemoteSegment]) -> None:
    if chain:
        data = encode_page(PARTITION, chain)
        page = page_of(ObjectName(chain[0].base_offset, 99, "f" * 32), chain, stored(data))
        assert decode_page(data, PARTITION, page) == tuple(chain)


def test_it_is_json_with_the_checksum_of_its_inside() -> None:
    whole = json.loads(encode(SAMPLE))
    assert list(whole) == ["crc32c", "manifest"]
    assert whole["manifest"]["start"] == 120
    assert framed(whole["manifest"]) == encode(SAMPLE)


def test_every_flipped_bit_is_noticed() -> None:
    for bit in range(len(encode(SAMPLE)) * 8):
        content = bytearray(encode(SAMPLE))
        content[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptManifest):
            decode(bytes(content), PARTITION)


def test_every_cut_is_noticed() -> None:
    for length in range(len(encode(SAMPLE))):
        with pytest.raises(CorruptManifest):
            decode(encode(SAMPLE)[:length], PARTITION)


@given(st.binary(max_size=300))
def test_what_is_no_manifest_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptManifest):
        decode(data, PARTITION)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=3), inside, max_size=3),
    max_leaves=4,
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each value within, as its container and its key there."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from places(value[key])


@given(st.data())
def test_any_value_in_any_place_is_read_or_refused(data: st.DataObject) -> None:
    """What is read although something was exchanged holds together, and is written again as it was."""
    body = deepcopy(json.loads(encode(SAMPLE))["manifest"])
    found = list(places(body))
    container, key = found[data.draw(st.integers(0, len(found) - 1))]
    container[key] = data.draw(_JSON)
    try:
        manifest = decode(framed(body), PARTITION)
    except (CorruptManifest, NewerManifest):
        return
    manifest.check()
    assert json.loads(encode(manifest))["manifest"] == body


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b"1" * 5_000,
        b'{"version":NaN}',
        b'{"version":1e400}',
        b"null",
        b"[]",
        b'{"version":true}',
        b'{"version":-1}',
        b'{"version":0}',
        b'{"version":' + b"9" * 4_000 + b"}",
        '{"version":1,"topic":"\ud83d\ude00"}'.encode("utf-16", "surrogatepass"),
    ],
)
def test_hostile_json_is_refused(body: bytes) -> None:
    with pytest.raises(CorruptManifest):
        decode(framed(body), PARTITION)


def test_what_is_too_large_is_not_looked_at() -> None:
    with pytest.raises(CorruptManifest, match="bytes"):
        decode(framed(b" " * LARGEST_BYTES), PARTITION)


def test_a_later_version_is_told_from_damage() -> None:
    body = json.loads(encode(SAMPLE))["manifest"] | {"version": 3, "columns": ["new"]}
    with pytest.raises(NewerManifest, match="version 3"):
        decode(framed(body), PARTITION)


def test_unknown_fields_are_refused_and_missing_ones_too() -> None:
    body = json.loads(encode(SAMPLE))["manifest"]
    with pytest.raises(CorruptManifest, match="unknown fields: colour"):
        decode(framed(body | {"colour": 1}), PARTITION)
    for name in body:
        with pytest.raises(CorruptManifest, match=f"{name} is missing"):
            decode(framed({key: value for key, value in body.items() if key != name}), PARTITION)


@pytest.mark.parametrize("other", [TieredPartition(UUID(int=78), 3), TieredPartition(UUID(int=77), 4)])
def test_the_manifest_of_another_partition_is_refused(other: TieredPartition) -> None:
    with pytest.raises(CorruptManifest, match="belongs to partition 3"):
        decode(encode(SAMPLE), other)


def _page() -> tuple[bytes, PageRef]:
    data = encode_page(PARTITION, CHAIN)
    return data, page_of(PAGE_NAME._replace(leader_epoch=9), CHAIN, stored(data))


def test_a_page_is_the_one_that_the_manifest_means() -> None:
    data, page = _page()
    assert decode_page(data, PARTITION, page) == CHAIN
    other = encode_page(PARTITION, CHAIN[:2])
    with pytest.raises(CorruptManifest, match="is not what was written"):
        decode_page(other, PARTITION, page)
    for lie in (
        page._replace(segment_count=2),
        page._replace(size=page.size + 1),
        page._replace(next_offset=259),
        page._replace(max_timestamp=5),
        page._replace(epochs=(EpochStart(1, 0),)),
    ):
        with pytest.raises(CorruptManifest, match="does not list what the manifest says"):
            decode_page(data, PARTITION, lie)
    for wrong in (encode(SAMPLE), framed({"version": 1}, "page"), framed([], "page")):
        with pytest.raises(CorruptManifest):
            decode_page(wrong, PARTITION, page._replace(content=stored(wrong)))


def test_ten_segments_take_little_and_four_hundred_take_a_page() -> None:
    """100,000 segments in 10,000 partitions are 24 MB of manifests."""

    def size(count: int) -> int:
        base = 10**12
        large = [
            RemoteSegment(
                ObjectName(base + n * 10**6, 12_345, f"{n:032x}"),
                base + (n + 1) * 10**6,
                Stored(2**30, 2**32 - 1),
                Stored(2**22, 2**32 - 1),
                1_700_000_000_000,
                (EpochStart(12_345, base + n * 10**6),),
            )
            for n in range(count)
        ]
        return len(encode(Manifest(PARTITION, 12_345, WRITER, 10**6, base, segments=tuple(large))))

    assert size(10) < 2_600
    assert 200 < next(count for count in range(100, 600, 10) if size(count) > FOLD_ABOVE_BYTES) < 400


def test_an_empty_one_is_small() -> None:
    assert len(encode(first_manifest(PARTITION, 1, WRITER, 0))) < 300


def test_only_a_fork_is_of_the_version_that_others_do_not_know() -> None:
    plain = first_manifest(PARTITION, 3, WRITER, 0)
    assert b'"version":1,' in encode(plain)
    assert b'"origin"' not in encode(plain)
    fork = replace(plain, origin=Origin(UUID(int=9), 40))
    assert b'"version":2,' in encode(fork)
    assert decode(encode(fork), PARTITION) == fork
