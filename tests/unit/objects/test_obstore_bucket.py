"""What only the client of real stores has to look out for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from obstore.store import MemoryStore

from headrace.core.ports_objects import Found, Part, Refused
from headrace.objects import obstore_bucket
from headrace.objects.obstore_bucket import ObstoreBucket


@pytest.fixture
def bucket() -> Iterator[ObstoreBucket]:
    opened = ObstoreBucket(MemoryStore())
    yield opened
    opened.close()


def test_an_object_that_cannot_be_ours_is_not_taken_into_memory(
    bucket: ObstoreBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(obstore_bucket, "LARGEST_WHOLE_BYTES", 100)
    for size in (100, 101):
        bucket.put(f"of {size}", bytes(size), deadline_seconds=5)
    assert isinstance(bucket.get("of 100", deadline_seconds=5), Found)
    assert bucket.get("of 101", deadline_seconds=5) == Refused(
        "it has 101 bytes, and nothing of ours has so many"
    )
    assert isinstance(bucket.get_range("of 101", 0, 101, deadline_seconds=5), Part)
