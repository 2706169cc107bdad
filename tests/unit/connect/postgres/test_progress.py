"""How far a capture is, which window comes next, what a snapshot sees."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.postgres.coverage import Coverage, Place
from headrace.connect.postgres.lsn import BadLsn, last_byte_written, lsn_of, lsn_text
from headrace.connect.postgres.progress import Fresh, Progress, Range, progress_of
from headrace.connect.postgres.visibility import Visible, visible_of
from headrace.connect.postgres.windows import LostPlace, Summary, Transaction, Window, window

_FRESH = Fresh(Visible(90, 100, frozenset({95})), 500, {"public.b": Range(("1",), ("9", "x"))})
_COPYING = Progress("1", 100, copied={"public.a": None, "public.b": ("9", "x")}, fresh=_FRESH)


@given(st.integers(0, 2**64 - 1))
def test_a_place_as_text(lsn: int) -> None:
    assert lsn_of(lsn_text(lsn)) == lsn


def test_what_is_no_place() -> None:
    with pytest.raises(BadLsn, match="16/B374D848"):
        lsn_of("x")


def test_the_header_of_a_page_is_not_waited_for() -> None:
    assert [last_byte_written(each) for each in (8192 + 24, 8192 * 2048 + 40, 8192, 8200)] == [
        8192, 8192 * 2048, 8192, 8200,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "progress",
    [
        Progress("1", 7),
        _COPYING,
        _COPYING.within(300, 4),
        _COPYING.only(["public.a", "public.b"], {"public.a": "1/2/3", "public.b": "1/4"}),
    ],
)
def test_a_position_comes_back_as_it_was(progress: Progress) -> None:
    assert progress_of(json.loads(json.dumps(progress.document()))) == progress


def test_what_is_not_captured_any_more_is_forgotten() -> None:
    found = Progress("1", 7, copied={"a": None, "b": None}, identities={"a": "1", "b": "2"})
    found = found.only(["a", "c"], {"a": "9", "c": "3"})
    assert (found.copied, found.identities) == ({"a": None}, {"a": "1"}), "an identity is the first one"


def test_a_copy_is_settled_when_the_stream_has_passed_it() -> None:
    assert _COPYING.passed(499).fresh == _FRESH
    assert _COPYING.passed(500).fresh is None
    assert Progress("1", 500).with_copy(_FRESH).fresh is None


def test_a_snapshot_sees_what_had_ended() -> None:
    visible = visible_of("90:100:95,97")
    assert [xid for xid in range(88, 103) if not visible.sees(xid)] == [95, 97, 100, 101, 102]
    assert visible_of(visible.text) == visible


def test_transactions_are_told_apart_when_their_numbers_begin_anew() -> None:
    start = 5 * 2**32
    visible = Visible(start - 2, start + 2, frozenset({start - 2, start + 1}))
    assert [visible.sees(each % 2**32) for each in range(start - 3, start + 3)] == [
        True, False, True, True, False, False,
    ]  # fmt: skip


def test_what_is_published_while_a_table_is_copied() -> None:
    def never(*_: object) -> list[Place]:
        raise AssertionError("no key has to be compared")

    coverage = Coverage(_COPYING, frozenset({"public.a", "public.b", "public.c"}), never)
    assert coverage.is_settled("public.a")
    assert not coverage.is_settled("public.b")
    assert coverage.is_left_out("public.c")
    assert coverage.is_left_out("public.foreign")
    assert not coverage.is_left_out("public.b")
    assert coverage.is_published("public.b", Place.BEFORE, 91)
    assert not coverage.is_published("public.b", Place.WITHIN, 91), "the copied row has it"
    assert coverage.is_published("public.b", Place.WITHIN, 95), "it was running when the row was copied"
    assert not coverage.is_published("public.b", Place.BEHIND, 95), "the copy will have it"


def test_windows() -> None:
    begun = Progress("1", 100)
    small, large = Transaction(110, 120, 5), Transaction(200, 210, 50)
    assert window(begun, 300, Summary(0, 0, None, None), 10) is None
    assert window(begun, 300, Summary(1, 5, small, small), 10) == (Window(100, 300), begun.passed(300))
    both = Summary(2, 55, small, large)
    assert window(begun, 300, both, 10) == (Window(100, 200), begun.passed(200)), "the large one waits"
    first = window(begun.passed(200), 300, Summary(1, 50, large, large), 20)
    assert first == (Window(200, 210, 0, 20), begun.within(200, 20))
    second = window(begun.within(200, 20), 300, Summary(1, 50, large, large), 20)
    assert second == (Window(200, 210, 20, 40), begun.within(200, 40))
    third = window(begun.within(200, 40), 300, Summary(1, 50, large, large), 20)
    assert third == (Window(200, 300, 40), begun.passed(300))


def test_a_transaction_that_is_gone_is_told() -> None:
    begun = Progress("1", 100).within(200, 20)
    other = Transaction(250, 260, 5)
    for found in (Summary(0, 0, None, None), Summary(1, 5, other, other)):
        with pytest.raises(LostPlace, match="20 changes of a transaction"):
            window(begun, 300, found, 10)
