"""Which offsets of groups are carried, and which are left alone."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.client.group_offsets import Committed
from headrace.core.ids import TopicPartition
from headrace.spark.mirror.groups import Sight, decide, mark
from headrace.spark.mirror.position import Position, TopicPosition
from headrace.spark.mirror.translation import Place, Translation, pieces_of, record_of
from headrace.spark.sink.landing import Runs

_POSITION = Position("A", "B", 1, {"t": TopicPosition("id", "x.t", "to", (100,))})
_SOURCE, _TARGET = TopicPartition("t", 0), TopicPartition("x.t", 0)


def _translation() -> Translation:
    found = Translation()
    for piece in pieces_of(Place("t", "id", 0), Runs(np.array([0]), np.array([1000]), np.array([100]))):
        record = record_of(piece, 0)
        found.put(record.key, record.value)
    return found


def _sight(there: Committed | None, at: int = 40, *, in_use: bool = False) -> Sight:
    return Sight(
        {"g": {_SOURCE: Committed(at, -1, ""), TopicPartition("other", 0): Committed(1, -1, "")}},
        {"g": {} if there is None else {_TARGET: there}},
        frozenset({"g"} if in_use else ()),
    )


@pytest.mark.parametrize(
    ("there", "at", "in_use", "state", "set_to"),
    [
        (None, 40, False, "carried", 1040),
        (Committed(1010, -1, mark("m", 10)), 40, False, "carried", 1040),
        (Committed(1040, -1, mark("m", 40)), 40, False, "carried", None),
        (Committed(1040, -1, mark("m", 40)), 20, False, "carried", 1020),
        (None, 100, False, "carried", 1100),
        (None, 101, False, "behind", None),
        (None, 40, True, "in use", None),
        (Committed(1090, -1, ""), 40, False, "moved", None),
        (Committed(1040, -1, "a reader's own"), 40, False, "moved", None),
    ],
)
def test_an_offset(there: Committed | None, at: int, in_use: bool, state: str, set_to: int | None) -> None:
    found = decide("m", _sight(there, at, in_use=in_use), _POSITION, _translation())
    (shown,) = found.shown
    assert (shown.state, shown.source_offset) == (state, at)
    assert found.offsets == ({} if set_to is None else {"g": {_TARGET: set_to}})
    if set_to is not None:
        assert found.metadata == {"g": {_TARGET: mark("m", at)}}


def test_offsets_of_a_topic_that_the_mirror_has_not_begun_with_are_behind() -> None:
    found = decide("m", _sight(None), _POSITION, _translation(), {"other": "x.other"})
    states = {each.topic: (each.target, each.target_offset, each.state) for each in found.shown}
    assert states == {"other": ("x.other", None, "behind"), "t": ("x.t", 1040, "carried")}
    assert found.offsets == {"g": {_TARGET: 1040}}


def test_a_group_that_has_moved_with_one_partition_has_moved_with_all() -> None:
    position = Position("A", "B", 1, {"t": TopicPosition("id", "x.t", "to", (100, 100))})
    both = {_SOURCE: Committed(4, -1, ""), TopicPartition("t", 1): Committed(4, -1, "")}
    found = decide(
        "m", Sight({"g": both}, {"g": {_TARGET: Committed(9, -1, "")}}, frozenset()), position, _translation()
    )
    assert found.offsets == {}
    assert [each.state for each in found.shown] == ["moved", "moved"]
