"""What follows from a decision: a table of all cases, without a broker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.client.transaction_ends import Fate, Identity
from headrace.spark.sink.decision import (
    Course,
    Decision,
    Run,
    SinkFailure,
    State,
    Written,
    check_open,
    course,
    decode_decision,
    decode_ended,
    encode_decision,
    encode_ended,
    lost_of,
    note_before,
    replacements,
    survivors,
)

_DECIDER = Identity("headrace-sink/s", 7, 3)


def _written(name: str, rows: int = 10, checksum: str | None = None) -> Written:
    return Written(Identity(f"headrace-sink/s/{name}", 11, 0), rows, checksum or f"sum of {name}")


def _decision(*written: Written, batch: int = 4, query: str = "q", number: int = 9) -> Decision:
    return Decision(number, query, batch, _DECIDER, written, 1_700_000_000_000)


@pytest.mark.parametrize(
    ("query", "batch", "lost", "expected"),
    [
        ("q", 4, 0, Course.REPLAY),
        ("q", 4, 1, Course.REPAIR),
        ("q", 5, 0, Course.DECIDE),
        ("another", 0, 0, Course.DECIDE),
        ("another", 4, 0, Course.DECIDE),
    ],
)
def test_course(query: str, batch: int, lost: int, expected: Course) -> None:
    decision = _decision(_written("a"), _written("b"))
    assert course(State(decision), query, batch, decision.transactions[:lost]) is expected


def test_the_first_batch_of_a_sink_is_decided() -> None:
    assert course(State(), "q", 0, []) is Course.DECIDE


@pytest.mark.parametrize(("query", "batch"), [("q", 5), ("another", 0)])
def test_a_query_that_went_on_without_its_lost_rows_stops(query: str, batch: int) -> None:
    decision = _decision(_written("a", rows=12), _written("b"))
    with pytest.raises(SinkFailure, match="12 rows of batch 4"):
        course(State(decision), query, batch, decision.transactions[:1])


def test_an_older_checkpoint_stops() -> None:
    with pytest.raises(SinkFailure, match=r"batch 3 .* batch 4"):
        course(State(_decision(_written("a"))), "q", 3, [])


def test_slots_alternate_so_that_names_of_the_last_decision_are_not_taken() -> None:
    last = _decision(_written("a"), number=9)
    assert Run(_DECIDER, State(last).next_number).slot != Run(_DECIDER, last.number).slot
    assert State().next_number == 0


@pytest.mark.parametrize(("ended", "open_"), [(-1, True), (8, True), (9, False)])
def test_only_a_note_of_the_last_decision_says_that_it_is_carried_out(ended: int, open_: bool) -> None:
    decision = _decision(_written("a"), number=9)
    assert (State(decision, ended).unended is decision) is open_
    assert State(None, ended).unended is None


def test_lost_rows_are_replaced_by_the_same_rows_whoever_wrote_them() -> None:
    a, b, c = _written("a"), _written("b"), _written("c")
    again = [_written(f"later/{each}", checksum=f"sum of {each}") for each in ("c", "a", "b")]
    assert replacements(_decision(a, b, c), [a, c], again) == [again[1], again[0]]


def test_equal_sets_of_rows_are_each_used_once() -> None:
    a, b, c = (_written(name, checksum="same") for name in "abc")
    again = [_written(f"later/{name}", checksum="same") for name in "abc"]
    assert len(set(replacements(_decision(a, b, c), [a, b], again))) == 2


def test_lost_rows_that_nobody_wrote_again_stop() -> None:
    a, b = _written("a"), _written("b")
    with pytest.raises(SinkFailure, match="do not hold the same sets of rows"):
        replacements(_decision(a, b), [a], [_written("x", rows=10), _written("y", rows=10)])


def test_rows_are_not_told_by_their_number_alone() -> None:
    a = _written("a")._replace(checksum=None)
    with pytest.raises(SinkFailure, match="do not hold"):
        replacements(_decision(a, _written("b")), [a], [_written("x")._replace(checksum=None)])


def test_a_batch_that_was_lost_whole_may_be_cut_anew() -> None:
    a, b = _written("a"), _written("b")
    again = [_written("x"), _written("y"), _written("z")]
    assert replacements(_decision(a, b), [a, b], again) == again


def test_a_replacement_that_is_lost_too_is_not_the_whole_batch() -> None:
    a, b = _written("a"), _written("b")
    decision = _decision(a, b)
    again = [_written(f"later/{each}", checksum=f"sum of {each}") for each in "ab"]
    repaired = _decision(*survivors(decision, [a]), *replacements(decision, [a], again))
    assert repaired.transactions == (b, again[0])
    once_more = [_written(f"last/{each}", checksum=f"sum of {each}") for each in "ab"]
    assert replacements(repaired, [again[0]], once_more) == [once_more[0]]


def test_what_is_aborted_is_lost_and_what_is_committed_is_not() -> None:
    decision = _decision(_written("a"), _written("b"), _written("c"))
    assert lost_of(decision, [Fate.COMMITTED, Fate.ABORTED, Fate.OPEN]) == [decision.transactions[1]]


def test_what_nobody_knows_of_stops() -> None:
    decision = _decision(_written("a"), _written("b", rows=33))
    with pytest.raises(SinkFailure, match="33 rows of batch 4"):
        lost_of(decision, [Fate.COMMITTED, Fate.UNKNOWN])


@pytest.mark.parametrize("fate", [Fate.ABORTED, Fate.COMMITTED, Fate.UNKNOWN])
def test_nothing_is_decided_about_what_is_not_open(fate: Fate) -> None:
    written = [_written("a"), _written("b")]
    check_open(written, [Fate.OPEN, Fate.OPEN])
    with pytest.raises(SinkFailure, match="s/b is"):
        check_open(written, [Fate.OPEN, fate])


_identity = st.builds(Identity, st.text(max_size=30), st.integers(0, 2**63 - 1), st.integers(0, 32767))
_any_written = st.builds(
    Written,
    _identity,
    st.integers(0, 2**40),
    st.none() | st.text("0123456789abcdef", min_size=32, max_size=32),
)


@given(
    st.builds(
        Decision,
        st.integers(0, 2**40),
        st.text(max_size=40),
        st.integers(0, 2**40),
        _identity,
        st.lists(_any_written, max_size=5).map(tuple),
        st.integers(0, 2**42),
    )
)
def test_a_decision_is_read_as_it_was_written(decision: Decision) -> None:
    assert decode_decision(encode_decision(decision)) == decision


def test_a_note_is_read_as_it_was_written() -> None:
    assert decode_ended(encode_ended(123)) == 123


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"number":1}', b"\xff"])
def test_a_decision_that_cannot_be_read_stops(data: bytes) -> None:
    with pytest.raises(SinkFailure, match="cannot be read"):
        decode_decision(data)


def test_a_decision_without_a_note_is_written_as_it_was_before_there_were_any() -> None:
    """So an older Headrace reads it, and this one reads what that wrote."""
    text = (
        b'{"number":9,"query":"q","batch":4,"decided_ms":1700000000000,"decider":["headrace-sink/s",7,3],'
        b'"rows":10,"transactions":[["headrace-sink/s/a",11,0,10,"sum of a"]]}'
    )
    decision = _decision(_written("a"))
    assert encode_decision(decision) == text
    assert decode_decision(text) == decision


def test_notes_are_part_of_a_decision_also_of_one_without_rows() -> None:
    noted = _decision()._replace(note='{"orders-0": 17}', before="")
    assert decode_decision(encode_decision(noted)) == noted


def test_a_repair_begins_where_the_batch_began_and_any_other_where_it_ended() -> None:
    last = State(_decision(_written("a"))._replace(note="end", before="begin"))
    assert note_before(last, Course.REPAIR) == "begin"
    assert note_before(last, Course.DECIDE) == "end"
    assert note_before(State(), Course.DECIDE) is None
