"""A filter that costs too much ends with its process, and with nothing else."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.console.records import filter_process
from headrace.console.records.filter_process import NOT_TAKEN, TAKEN, TOO_LARGE
from headrace.console.records.filter_questions import Question, read, written
from headrace.console.records.filtering import (
    MOST_ASKED_BYTES,
    MOST_RECORDS,
    FilterProcesses,
    TooDear,
    questions,
)
from headrace.console.records.filters import MOST_BYTES, Filter, FilterRefused
from headrace.protocol.records import Record

BOMB = "value.l.all(x, x in value.l)"
LIST = json.dumps({"l": list(range(30_000))}).encode()


def record(offset: int, value: bytes | None) -> Record:
    return Record(offset, 0, b"key", value, (("h", None), ("\udcff", b"\xff")))


@pytest.fixture(scope="module")
def processes() -> Iterator[FilterProcesses]:
    found = FilterProcesses()
    yield found
    found.close()


def test_each_record_has_a_verdict(processes: FilterProcesses) -> None:
    values = [b'{"amount": 5}', b'{"amount": 50}', None, b"x" * (MOST_BYTES + 1), b"\xff", b'{"amount": 51}']
    records = [record(at, value) for at, value in enumerate(values)]
    found = processes.verdicts("value.amount >= 50", "t", 0, records)
    assert list(found) == [NOT_TAKEN, TAKEN, NOT_TAKEN, TOO_LARGE, NOT_TAKEN, TAKEN]


def test_one_that_takes_minutes_is_ended_and_holds_up_nobody(processes: FilterProcesses) -> None:
    refused: list[TooDear] = []

    def ask() -> None:
        with pytest.raises(TooDear) as raised:
            processes.verdicts(BOMB, "t", 3, [record(77, LIST)])
        refused.append(raised.value)

    thread = threading.Thread(target=ask)
    thread.start()
    turns = 0
    while thread.is_alive():
        thread.join(0.001)
        turns += 1
    assert turns > 10, "the interpreter was not held"
    assert "for 1 record from offset 77 of partition 3" in str(refused[0])
    assert list(processes.verdicts("offset == 1", "t", 0, [record(1, None)])) == [TAKEN]


def test_one_that_takes_all_memory_is_ended(processes: FilterProcesses) -> None:
    value = json.dumps({"l": [0] * 20_000, "t": "x" * 150_000}).encode()
    with pytest.raises(TooDear):
        processes.verdicts("value.l.map(x, value.t + value.t).size() > 0", "t", 0, [record(0, value)])
    assert list(processes.verdicts("offset == 1", "t", 0, [record(1, None)])) == [TAKEN]


@pytest.mark.parametrize("name", ["map", "filter", "all", "exists", "exists_one", "existsOne"])
def test_no_list_is_gone_over_within_a_list(name: str) -> None:
    for outer in ("exists_one", "existsOne", "all"):
        with pytest.raises(FilterRefused):
            Filter(f"value.l.{outer}(x, value.l.{name}(y, y == x))")


texts = st.binary(max_size=9)
drawn = st.builds(
    Record,
    st.integers(0, 2**62),
    st.integers(-1, 2**62),
    st.none() | texts,
    st.none() | texts,
    st.lists(
        st.tuples(texts.map(lambda each: each.decode("utf-8", "surrogateescape")), st.none() | texts)
    ).map(tuple),
)


@given(st.lists(drawn, max_size=5))
def test_a_question_comes_as_it_was_asked(records: list[Record]) -> None:
    asked = Question("value == 'é'", "t", 3, records)
    assert read(written(asked)) == asked


def test_questions_are_small_and_leave_out_nothing() -> None:
    records = [record(at, b"x" * (at % 7) * 40_000) for at in range(3000)]
    parts = list(questions(records))
    assert [each for part in parts for each in part] == records
    for part in parts:
        length = sum(len(each.value or b"") + 3 for each in part)
        assert len(part) == 1 or (length <= MOST_ASKED_BYTES and len(part) <= MOST_RECORDS)
    assert list(questions([])) == []


def test_a_process_ends_when_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filter_process, "IDLE_SECONDS", 0.0)
    found = FilterProcesses()
    assert list(found.verdicts("true", "t", 0, [record(0, None)])) == [TAKEN]
    (idle,) = found._idle  # the one that waits
    assert idle.stdin is not None
    idle.stdin.close()
    assert idle.wait(60) == 0
    assert list(found.verdicts("true", "t", 0, [record(0, None)])) == [TAKEN], "another one is started"
    found.close()
