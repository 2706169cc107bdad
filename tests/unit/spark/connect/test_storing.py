"""The note of a sink that stages its batches, and when a batch is taken."""

from __future__ import annotations

import pytest

from headrace.connect.api import GiveUp
from headrace.core.ids import TopicPartition
from headrace.spark.connect.ranges import Linger
from headrace.spark.connect.storing import StagedNote, note_of

A, B = TopicPartition("a", 0), TopicPartition("b.c", 12)


def test_a_note_comes_back_as_it_was() -> None:
    note = StagedNote({A: 5, B: 7}, {"attempt": "x", "files": 3})
    assert note_of(note.text()) == note
    assert note_of(None) == StagedNote({}, None)


def test_offsets_that_are_set_by_hand_leave_what_is_still_to_be_published() -> None:
    note = StagedNote({A: 5, B: 7}, {"attempt": "x"})
    assert note.altered({A: 2, B: None}) == StagedNote({A: 2}, {"attempt": "x"})


@pytest.mark.parametrize("text", ["", "[]", '{"offsets": []}', '{"ends": {"a": 1}, "staged": null}'])
def test_another_connector_s_note_is_told(text: str) -> None:
    with pytest.raises(GiveUp, match="make the connector under another name"):
        note_of(text)


def test_a_batch_waits_for_more_unless_it_is_full() -> None:
    linger = Linger(10)
    assert not linger.is_over({}, 100, 0)
    some, full = {A: (0, 5)}, {A: (0, 60), B: (0, 40)}
    assert not linger.is_over(some, 100, 50)
    assert not linger.is_over(some, 100, 59.9)
    assert linger.is_over(some, 100, 60)
    assert not linger.is_over(some, 100, 61), "it begins anew"
    assert linger.is_over(full, 100, 62)
    assert Linger(0).is_over(some, 100, 0)
