"""Files of which the page cache holds nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.page_cache import evict, resident_fraction

ATTEMPTS = 50
"""The broker's probe starts a read, and about once in 600 it is served by that read: a test drops the pages
again. Seeing them dropped (mincore) starts nothing."""


def write(directory: Path, content: bytes) -> Path:
    path = directory / "00000000000000000000.log"
    path.write_bytes(content)
    return path


def drop_pages(directory: Path) -> None:
    for _ in range(ATTEMPTS):  # a page under write-back stays
        evict(directory)
        if resident_fraction(directory) == 0:
            return
    pytest.skip("this file system keeps pages that it was told to drop")
