"""Which files were read, in a position."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.api import GiveUp
from headrace.connect.files.seen import MOST_FILES, Begun, FoundFile, Seen
from headrace.connect.position import NOWHERE, Position, position_of

paths = st.lists(st.text("abc.-é \udc80", min_size=1, max_size=6), min_size=1, max_size=3).map("/".join)
files = st.builds(FoundFile, paths, st.integers(0, 2**40), st.integers(0, 2**62))


@given(st.lists(files, unique_by=lambda each: each.path), st.integers(0, 2**40))
def test_a_position_says_what_was_read(found: list[FoundFile], at: int) -> None:
    begun = Begun(found[0].path, found[0].version, at) if found else None
    seen = Seen().with_read(found[1:], begun)
    again = Seen.of(seen.position())
    assert [again.version(each) for each in found[1:]] == [each.version for each in found[1:]]
    assert again.begun == begun
    assert len(again) == len(found[1:])
    for each in found[:1]:
        assert again.version(each) is None
    left = again.without(each.path for each in found[2:])
    gone = [left.version(each) is None for each in found[1:]]
    assert gone == [False] * bool(found[1:]) + [True] * len(found[2:])
    assert again.only(found[:2]).position() == Seen().with_read(found[1:2], begun).position()


def test_a_position_is_as_large_as_a_record_may_be() -> None:
    found = [FoundFile(f"day={number % 30}/{number}.json", number, number) for number in range(MOST_FILES)]
    text = Seen().with_read(found, None).position().text()
    assert 2 * len(text) < 1_000_000, "a decision has two of them"
    assert len(Seen.of(position_of(text))) == MOST_FILES


def test_people_see_folders_and_can_take_them_out() -> None:
    seen = Seen().with_read([FoundFile("a/1", 1, 1), FoundFile("b/1", 1, 1), FoundFile("2", 1, 1)], None)
    position = seen.position()
    assert [partition["directory"] for partition, _ in position] == ["", "a", "b"]
    assert [offset["files"] for _, offset in position] == [1, 1, 1]
    left = Seen.of(position.without({"directory": "a"}))
    assert left.version(FoundFile("a/1", 1, 1)) is None
    assert left.version(FoundFile("b/1", 1, 1)) is not None


@pytest.mark.parametrize(
    ("partition", "offset"),
    [
        ({"filename": "x"}, {"position": 1}),
        ({"directory": ""}, {"files": 1}),
        ({"directory": ""}, {"read": "AAAA"}),
        ({"directory": ""}, {"read": "no base64!"}),
        ({"directory": ""}, {"read": "", "begun": {"file": "a"}}),
    ],
)
def test_what_is_no_position_is_told(partition: dict[str, str], offset: dict[str, object]) -> None:
    with pytest.raises(GiveUp, match="is no position in a directory"):
        Seen.of(NOWHERE.moved(partition, offset))


def test_it_goes_through_json() -> None:
    position = Seen().with_read([FoundFile("x", 1, 1)], Begun("y", b"1234", 7)).position()
    document = json.loads(position.text())
    assert document["offsets"][0]["offset"]["begun"] == {"file": "y", "version": "31323334", "at": 7}
    assert isinstance(position, Position)
