"""What is left for whoever comes after a kill, and for the lake that goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.spark.decoding.formats import Decoding, Format
from headrace.spark.lake.backfill.notes import Notes, Step, Unfinished
from headrace.spark.lake.checkpoint import Range
from headrace.spark.lake.files import LocalFiles
from headrace.spark.lake.plan import Route


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    decoding = Decoding(Format.BYTES)
    route = Route("orders", "orders", "dead", decoding, keep_value=False, state=f"{tmp_path}/orders")
    return Notes(LocalFiles(), route)


def test_without_a_backfill_there_is_nothing(notes: Notes) -> None:
    assert (notes.writer(), notes.last(), notes.ends()) == (None, None, None)


def test_its_name_stays_until_the_table_is_gone(notes: Notes) -> None:
    name = notes.begin()
    assert notes.begin() == notes.writer() == name
    notes.write(Step(0, {0: 0}, {0: 5}, 5))
    notes.forget()
    assert (notes.writer(), notes.last()) == (None, None)
    assert notes.begin() != name


def test_the_lake_waits_for_its_end(notes: Notes) -> None:
    notes.begin()
    with pytest.raises(Unfinished, match=r"`headrace lake backfill orders` again.*--leave-rest"):
        notes.ends()
    notes.complete({0: 7, 12: 3})
    assert notes.ends() == {0: 7, 12: 3}
    notes.reopen()
    with pytest.raises(Unfinished):
        notes.ends()


def test_the_last_steps_are_kept_and_one_may_be_written_anew(notes: Notes) -> None:
    notes.begin()
    for number in range(12):
        notes.write(Step(number, {0: number}, {0: number + 1, 1: 4}, 1))
    assert notes.last() == Step(11, {0: 11}, {0: 12, 1: 4}, 1)
    assert notes.step(10) == Step(10, {0: 10}, {0: 11, 1: 4}, 1)
    assert notes.step(9) is None
    again = Step(11, {0: 11}, {0: 30, 1: 4}, 19)
    notes.write(again)
    assert notes.last() == again


def test_a_steps_ranges_are_what_it_has_of_each_partition() -> None:
    step = Step(3, {0: 5, 1: 2, 2: 9}, {0: 8, 1: 6, 2: 9, 3: 40}, 7)
    assert step.ranges("t") == [Range("t", 0, 5, 8), Range("t", 1, 2, 6)]
