"""How many lines a peer can make the broker write."""

from __future__ import annotations

from headrace.broker.runtime.event_limiter import (
    LINES_PER_EVENT,
    LINES_PER_SOURCE,
    WINDOW_SECONDS,
    EventLimiter,
    Suppressed,
)


def test_the_first_lines_of_a_source_are_written_and_the_others_counted() -> None:
    limiter = EventLimiter()
    written = sum(limiter.allows("refused", "10.0.0.1", 0.001 * n) for n in range(1000))
    assert written == LINES_PER_SOURCE
    assert limiter.allows("refused", "10.0.0.2", 2.0)
    assert limiter.allows("failed", "10.0.0.1", 2.0)
    assert limiter.over(WINDOW_SECONDS - 1) == []
    assert limiter.over(WINDOW_SECONDS) == [Suppressed("refused", 1000 - LINES_PER_SOURCE, 2)]


def test_many_sources_together_are_limited_too() -> None:
    limiter = EventLimiter()
    written = sum(limiter.allows("refused", f"10.0.{n // 256}.{n % 256}", 1.0) for n in range(10_000))
    assert written == LINES_PER_EVENT
    assert limiter.over(WINDOW_SECONDS + 1) == [Suppressed("refused", 10_000 - written, LINES_PER_EVENT)]


def test_another_minute_begins_with_the_first_line_after_the_last() -> None:
    limiter = EventLimiter()
    for _ in range(100):
        limiter.allows("refused", "a", 5.0)
    assert limiter.over(WINDOW_SECONDS + 5.0) == [Suppressed("refused", 100 - LINES_PER_SOURCE, 1)]
    assert limiter.over(10_000.0) == []
    assert limiter.allows("refused", "a", 10_000.0)
    assert limiter.over(10_001.0) == []
