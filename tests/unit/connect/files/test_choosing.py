"""Which files are read next."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.api import ConnectorFailure, GiveUp
from headrace.connect.files import choosing
from headrace.connect.files.choosing import (
    Quiet,
    Slice,
    check_begun,
    check_memory,
    choose,
    shared,
    sorted_out,
)
from headrace.connect.files.seen import MOST_FILES, Begun, FoundFile, Seen

sizes = st.lists(st.integers(0, 50), min_size=1, max_size=12)


def _files(found: list[int]) -> list[FoundFile]:
    return [FoundFile(f"f{at:02d}", size, 1000 - at) for at, size in enumerate(found)]


def _end(file: FoundFile, begin: int, limit: int) -> int:
    """Records of seven bytes, and the last one is what is left."""
    end = max(limit // 7 * 7, -(-(begin + 1) // 7) * 7)
    return min(end, file.size)


@given(sizes, st.integers(1, 60), st.booleans(), st.integers(1, 4))
def test_step_by_step_every_byte_is_read_once_and_in_order(
    found: list[int], limit: int, in_pieces: bool, tasks: int
) -> None:
    files, seen = _files(found), Seen()
    read: list[tuple[str, int, int]] = []
    for _ in range(200):
        seen = Seen.of(seen.position())
        going_on = None if seen.begun is None else check_begun(seen.begun, files, "/x")
        listed = sorted_out(files, seen)
        if not listed.fresh and going_on is None:
            break
        chosen = choose(listed.fresh, going_on, seen, limit, _end if in_pieces else None)
        assert chosen.slices
        pieces = [each for part in shared(chosen.slices, tasks) for each in part]
        assert pieces == chosen.slices, "neighbours stay neighbours"
        assert len(shared(chosen.slices, tasks)) <= tasks
        assert sum(each.size for each in pieces[1:]) <= limit, "only the first may be larger"
        read += [(each.file.path, each.begin, each.end) for each in pieces]
        seen = chosen.seen
        assert chosen.more == bool(sorted_out(files, seen).fresh)
    else:
        raise AssertionError("it does not come to an end")
    order = [path for path, _, _ in read]
    assert order == sorted(order, reverse=True), "the oldest first"
    for file in files:
        at = 0
        for path, begin, end in read:
            if path == file.path:
                assert begin == at
                at = end
        assert at == file.size


def test_what_is_still_being_written_is_left_until_two_looks_see_the_same() -> None:
    quiet, ms = Quiet(100), 1_000_000
    one, more = FoundFile("a", 1, 1), FoundFile("a", 2, 2)
    other = FoundFile("b", 1, 1)
    assert quiet.of([one], 0) == []
    assert quiet.of([more, other], 99 * ms) == []
    assert quiet.of([more, other], 150 * ms) == []
    assert quiet.of([more, other], 199 * ms) == [more, other]
    assert Quiet(0).of([one], 0) == [one]


def test_a_file_that_changed_after_it_was_read_is_told() -> None:
    seen = Seen().with_read([FoundFile("d/a", 1, 1), FoundFile("b", 1, 1)], None)
    listed = sorted_out([FoundFile("d/a", 5, 2), FoundFile("b", 1, 1), FoundFile("c", 1, 1)], seen)
    assert [[each.path for each in kind] for kind in listed] == [["c"], ["b"], ["d/a"]]
    with pytest.raises(
        ConnectorFailure, match=r"/in/d/a changed after it was read: it has 5 bytes now\. .*skip"
    ):
        choosing.check_unchanged(listed.changed, "/in")
    with pytest.raises(ConnectorFailure, match="/in/d/a, and 1 more changed"):
        choosing.check_unchanged([*listed.changed, FoundFile("z", 1, 1)], "/in")
    choosing.check_unchanged([], "/in")


def test_a_file_that_is_half_published_must_stay() -> None:
    file = FoundFile("a", 10, 1)
    begun = Begun("a", file.version, 5)
    assert check_begun(begun, [FoundFile("b", 1, 1), file], "/in") == file
    with pytest.raises(GiveUp, match="/in/a is gone after its first 5 bytes were published"):
        check_begun(begun, [], "/in")
    with pytest.raises(GiveUp, match="/in/a has changed after"):
        check_begun(begun, [FoundFile("a", 11, 1)], "/in")


def test_files_that_are_gone_are_forgotten_when_there_are_many() -> None:
    found = [FoundFile(f"{number}", 1, 1) for number in range(MOST_FILES + 1)]
    few = Seen().with_read(found[:10], None)
    assert len(check_memory(few, [])) == 10, "a directory that is not mounted is no reason to read it again"
    many = Seen().with_read(found, None)
    assert len(check_memory(many, found[:100])) == 100
    with pytest.raises(
        GiveUp, match=r"25001 files were read and are still there.*files\.after\.reading=delete"
    ):
        check_memory(many, found)


def test_large_and_small_files_are_shared_evenly() -> None:
    pieces = [Slice(FoundFile(f"{at}", size, 1), 0, size) for at, size in enumerate([50, 10, 10, 10, 10, 10])]
    assert [[each.size for each in part] for part in shared(pieces, 2)] == [[50], [10, 10, 10, 10, 10]]
    assert shared([], 3) == []
