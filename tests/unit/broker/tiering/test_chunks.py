"""Pieces of history on the disk: found by offset, cut by bytes, and the least recently read go first."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.broker.tiering.chunks import Chunk, ChunkCache
from headrace.log.os_disk import OsDisk
from headrace.tier.index_object import Aborted, Indexes

INDEXES = Indexes(0, [], [], [Aborted(5, 10, 14, 15)], None)


@pytest.fixture
def cache(tmp_path: Path) -> ChunkCache:
    return ChunkCache(OsDisk(), str(tmp_path), 1000)


def chunk(cache: ChunkCache, first: int, size: int = 400) -> Chunk:
    """Four batches of five offsets."""
    bases = [first, first + 5, first + 10, first + 15]
    file = cache.store(bytes(size))
    return Chunk(file, size, bases, [base + 4 for base in bases], [0, 100, 200, 300], INDEXES)


def test_a_file_of_the_cache_has_no_name(cache: ChunkCache, tmp_path: Path) -> None:
    file = cache.store(b"some bytes")
    assert file.pread(20, 0) == b"some bytes"
    assert not list(tmp_path.iterdir())


def test_a_range_begins_with_the_batch_that_holds_the_offset(cache: ChunkCache) -> None:
    found = chunk(cache, 0)
    assert found.range_from(7, 1000, min_one=True)[1:] == (100, 300)  # type: ignore[index]  # it is there
    assert found.range_from(7, 150, min_one=True)[1:] == (100, 150)  # type: ignore[index]  # it is there


def test_the_first_batch_is_whole_or_nothing(cache: ChunkCache) -> None:
    found = chunk(cache, 0)
    assert found.range_from(7, 50, min_one=True)[1:] == (100, 100)  # type: ignore[index]  # it is there
    assert found.range_from(7, 50, min_one=False) is None


def test_transactions_are_those_of_the_range(cache: ChunkCache) -> None:
    found = chunk(cache, 0)
    whole = found.range_from(0, 1000, min_one=True)
    first = found.range_from(0, 100, min_one=True)
    assert whole is not None
    assert first is not None
    assert found.aborted_in(0, whole) == [(5, 10)]
    assert found.aborted_in(0, first) == []


def test_a_chunk_is_found_by_its_offsets_and_owner(cache: ChunkCache) -> None:
    added = chunk(cache, 100)
    cache.add("mine", added)
    assert cache.find("mine", 100) is added
    assert cache.find("mine", 119) is added
    assert cache.find("mine", 99) is None
    assert cache.find("mine", 120) is None
    assert cache.find("another's", 100) is None


def test_what_was_not_read_for_longest_goes_first(cache: ChunkCache) -> None:
    for first in (0, 20):
        cache.add("mine", chunk(cache, first))
    cache.find("mine", 0)
    cache.add("mine", chunk(cache, 40))
    assert cache.find("mine", 20) is None
    assert cache.find("mine", 0) is not None
    assert cache.held_bytes == 800


def test_nothing_is_left_of_a_partition_that_is_forgotten(cache: ChunkCache) -> None:
    cache.add("mine", chunk(cache, 0))
    cache.add("mine", chunk(cache, 20))
    cache.forget("mine")
    assert cache.held_bytes == 0
    assert cache.find("mine", 0) is None
