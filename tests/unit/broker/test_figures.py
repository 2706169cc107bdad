"""How fast something grows, from samples."""

from __future__ import annotations

from headrace.broker.process.figures import LEAST_SECONDS, SAMPLE_SECONDS, SAMPLES, Growth

DAY = 86_400


def test_too_little_was_seen_to_say_anything() -> None:
    growth = Growth()
    assert growth.per_day() is None
    growth.note(0, 10)
    growth.note(LEAST_SECONDS - 1, 10_000)
    assert growth.per_day() is None


def test_growth_and_shrinking_are_counted_per_day() -> None:
    growth = Growth()
    growth.note(0, 1000)
    growth.note(DAY / 2, 1500)
    assert growth.per_day() == 1000
    growth.note(DAY, 500)
    assert growth.per_day() == -500


def test_only_the_last_day_counts() -> None:
    growth = Growth()
    growth.note(0, 10**12)
    for number in range(1, SAMPLES + 1):
        growth.note(number * SAMPLE_SECONDS, 7)
    assert growth.per_day() == 0
