"""What every implementation of the object store port must do. Each test runs against all of `conftest.py`."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace.core.ports_objects import (
    ABSENT,
    Done,
    Found,
    Listing,
    LostRace,
    ObjectStore,
    Part,
    Refused,
    Tag,
)
from headrace.objects.obstore_bucket import ObstoreBucket

SOON = 60.0
PART_BYTES = 5 * 1024 * 1024
"""An object store takes no smaller part of a large object."""


def put(store: ObjectStore, key: str, data: bytes) -> Tag:
    done = store.put(key, data, deadline_seconds=SOON)
    assert isinstance(done, Done)
    assert done.tag is not None
    return done.tag


def content(store: ObjectStore, key: str) -> bytes:
    found = store.get(key, deadline_seconds=SOON)
    assert isinstance(found, Found)
    return found.data


def test_what_was_written_is_read_with_its_tag(store: ObjectStore) -> None:
    tag = put(store, "a/b", b"one")
    assert store.get("a/b", deadline_seconds=SOON) == Found(b"one", tag)
    assert put(store, "a/b", b"two") != tag
    assert content(store, "a/b") == b"two"


def test_what_is_not_there_is_absent(store: ObjectStore) -> None:
    assert store.get("a", deadline_seconds=SOON) == ABSENT
    assert store.get_range("a", 0, 5, deadline_seconds=SOON) == ABSENT
    put(store, "a/b", b"one")
    assert store.get("a", deadline_seconds=SOON) == ABSENT


def test_an_empty_object_is_there(store: ObjectStore) -> None:
    put(store, "empty", b"")
    assert content(store, "empty") == b""


def test_ranges(store: ObjectStore) -> None:
    put(store, "digits", b"0123456789")

    def part(start: int, length: int) -> bytes:
        found = store.get_range("digits", start, length, deadline_seconds=SOON)
        assert isinstance(found, Part)
        return bytes(found.data)

    assert part(0, 10) == b"0123456789"
    assert part(3, 4) == b"3456"
    assert part(8, 100) == b"89"
    assert isinstance(store.get_range("digits", 11, 1, deadline_seconds=SOON), Refused)


def test_an_object_is_written_in_pieces(store: ObjectStore) -> None:
    pieces = [bytes([number]) * PART_BYTES for number in range(2)] + [b"the end"]
    written = store.put("large", iter(pieces), deadline_seconds=SOON)
    assert isinstance(written, Done)
    assert content(store, "large") == b"".join(pieces)
    assert isinstance(store.put("small", iter([b"one", b"two"]), deadline_seconds=SOON), Done)
    assert content(store, "small") == b"onetwo"


def test_pieces_that_fail_leave_nothing(store: ObjectStore) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"x" * PART_BYTES
        raise OSError("the disk")

    with pytest.raises(OSError, match="the disk"):
        store.put("broken", pieces(), deadline_seconds=SOON)
    assert store.get("broken", deadline_seconds=SOON) == ABSENT


def test_only_the_first_one_creates(store: ObjectStore) -> None:
    first = store.put_if("m", b"one", ABSENT, deadline_seconds=SOON)
    assert isinstance(first, Done)
    assert store.put_if("m", b"two", ABSENT, deadline_seconds=SOON) == LostRace()
    assert store.get("m", deadline_seconds=SOON) == Found(b"one", first.tag or Tag(""))


def test_what_has_changed_since_is_not_replaced(store: ObjectStore) -> None:
    one = put(store, "m", b"one")
    two = store.put_if("m", b"two", one, deadline_seconds=SOON)
    assert isinstance(two, Done)
    assert store.put_if("m", b"three", one, deadline_seconds=SOON) == LostRace()
    assert content(store, "m") == b"two"
    assert two.tag is not None
    assert isinstance(store.put_if("m", b"three", two.tag, deadline_seconds=SOON), Done)


def test_what_is_gone_is_not_replaced(store: ObjectStore) -> None:
    tag = put(store, "m", b"one")
    assert store.delete("m", deadline_seconds=SOON) == Done()
    assert store.put_if("m", b"two", tag, deadline_seconds=SOON) == LostRace()
    assert store.get("m", deadline_seconds=SOON) == ABSENT


def test_of_many_writers_one_wins(store: ObjectStore) -> None:
    is_for_many = isinstance(store, ObstoreBucket)
    with ThreadPoolExecutor(8 if is_for_many else 1) as threads:
        outcomes = list(
            threads.map(
                lambda number: store.put_if("race", b"%d" % number, ABSENT, deadline_seconds=SOON), range(8)
            )
        )
    winners = [number for number, outcome in enumerate(outcomes) if isinstance(outcome, Done)]
    assert len(winners) == 1
    assert outcomes.count(LostRace()) == 7
    assert content(store, "race") == b"%d" % winners[0]


def test_what_is_deleted_is_absent_and_may_be_deleted_again(store: ObjectStore) -> None:
    put(store, "a", b"one")
    assert store.delete("a", deadline_seconds=SOON) == Done()
    assert store.get("a", deadline_seconds=SOON) == ABSENT
    assert store.delete("a", deadline_seconds=SOON) == Done()


def test_listings_are_of_a_folder_and_in_order(store: ObjectStore) -> None:
    for key in ("t/1/b", "t/1/a", "t/10/c", "t/2", "u"):
        put(store, key, key.encode())

    def listed(prefix: str) -> list[tuple[str, int]]:
        found = store.list(prefix, deadline_seconds=SOON)
        assert isinstance(found, Listing)
        assert all(each.modified_ms > 1_600_000_000_000 for each in found.objects)
        return [(each.key, each.size) for each in found.objects]

    assert listed("t/1/") == [("t/1/a", 5), ("t/1/b", 5)]
    assert [key for key, _ in listed("")] == ["t/1/a", "t/1/b", "t/10/c", "t/2", "u"]
    assert listed("none/") == []
