"""How long a topic that the target refuses stands still."""

from __future__ import annotations

from headrace.spark.mirror.refusals import Refusals


class _Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_refused_topic_stands_still_for_longer_and_longer() -> None:
    clock = _Clock()
    refusals = Refusals(clock)
    for pause in (30, 60, 120, 240, 480, 900, 900):
        refusals.note("t", f"for {pause}")
        clock.now += pause - 1
        assert refusals.standing() == {"t": f"for {pause}"}
        clock.now += 1
        assert refusals.standing() == {}, "it is tried again"


def test_a_topic_that_went_well_begins_anew() -> None:
    clock = _Clock()
    refusals = Refusals(clock)
    refusals.note("t", "one")
    refusals.note("t", "two")
    refusals.note("u", "another's")
    refusals.went_well("t")
    assert refusals.standing() == {"u": "another's"}
    refusals.note("t", "three")
    clock.now = 30
    assert refusals.standing() == {}
