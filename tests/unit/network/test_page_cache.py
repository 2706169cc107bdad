"""What the page cache holds, as the probe sees it, on the file system of the machine."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headrace.core.ports import FileRange
from headrace.log.os_disk import OsDisk
from headrace.network.page_cache import PageCache
from tests.unit.network import cold_files

LENGTH = 2_000_000


@pytest.fixture
async def page_cache() -> AsyncIterator[PageCache]:
    with ThreadPoolExecutor(1) as threads:
        yield PageCache(asyncio.get_running_loop(), threads)


@pytest.fixture
def segment(tmp_path: Path) -> Iterator[FileRange]:
    file = OsDisk().open(str(cold_files.write(tmp_path, os.urandom(LENGTH))))
    yield FileRange(file, 0, LENGTH)
    file.close()


async def test_a_range_that_was_just_written_is_warm(page_cache: PageCache, segment: FileRange) -> None:
    assert page_cache.is_warm(segment)


async def test_a_range_that_is_on_the_disk_only_is_cold(
    page_cache: PageCache, segment: FileRange, tmp_path: Path
) -> None:
    for _ in range(cold_files.ATTEMPTS):
        cold_files.drop_pages(tmp_path)
        if not page_cache.is_warm(segment):
            return
    pytest.fail("a range without a page in memory is called warm")


async def test_a_cold_range_is_warm_when_it_was_read_ahead(
    page_cache: PageCache, segment: FileRange, tmp_path: Path
) -> None:
    cold_files.drop_pages(tmp_path)
    done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    page_cache.warm(segment, done.set_result)
    assert await done
    assert page_cache.is_warm(segment)
    assert page_cache.cold_reads == 1
