"""Who gets memory for a frame, in which order, and that nobody waits in a circle."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.memory import MemoryShare
from headrace.network.request_memory import (
    GRACE_TICKS,
    LEAST_PROGRESS_BYTES,
    SMALL_BYTES,
    WINDOW_TICKS,
    Claim,
    RequestMemory,
)

MB = 1 << 20
LIMIT = 400 * MB
LARGEST = 100 * MB


class Peer:
    def __init__(self) -> None:
        self.arrived = 0
        self.granted = False
        self.closed = False

    def on_memory(self) -> None:
        self.granted = True

    def arrived_bytes(self) -> int:
        return self.arrived

    def on_overdue(self) -> None:
        self.closed = True


def a_memory(limit: int = LIMIT) -> RequestMemory:
    return RequestMemory(MemoryShare("requests", limit), LARGEST)


def test_large_frames_leave_room_for_small_ones() -> None:
    memory = a_memory()
    large = [memory.claim(Peer(), LARGEST) for _ in range(10)]
    assert sum(claim.is_granted for claim in large) == 2
    assert memory.claim(Peer(), SMALL_BYTES).is_granted


def test_clients_leave_room_for_links_between_brokers() -> None:
    memory = a_memory()
    for size in (SMALL_BYTES, LARGEST):
        while memory.claim(Peer(), size).is_granted:
            pass
    assert memory.claim(Peer(), 5 * MB, is_link=True).is_granted


def test_a_frame_that_needs_much_is_not_passed_by_those_that_need_little() -> None:
    memory = a_memory()
    first = memory.claim(Peer(), LARGEST)
    second = memory.claim(Peer(), 60 * MB)
    waits, later = Peer(), Peer()
    memory.claim(waits, LARGEST)
    memory.claim(later, 3 * MB)  # would fit
    memory.release(second)
    assert (waits.granted, later.granted) == (True, False)
    memory.release(first)
    assert later.granted


def test_whoever_gives_up_waiting_is_forgotten() -> None:
    memory = a_memory()
    held = [memory.claim(Peer(), LARGEST) for _ in range(2)]
    gone, last = Peer(), Peer()
    claim = memory.claim(gone, LARGEST)
    memory.claim(last, LARGEST)
    memory.release(claim)
    memory.release(held[0])
    assert (last.granted, gone.granted) == (True, False)


def test_beginnings_are_counted_and_make_reading_careful() -> None:
    memory = a_memory()
    seen = [memory.is_tight]
    memory.keep(LIMIT // 8)
    assert memory.share.used_bytes == LIMIT // 8
    seen.append(memory.is_tight)
    memory.drop(LIMIT // 8)
    assert [*seen, memory.is_tight] == [False, True, False]


def test_the_largest_frame_fits_whatever_the_limit_is() -> None:
    memory = a_memory(limit=10)
    assert memory.claim(Peer(), LARGEST).is_granted
    assert memory.claim(Peer(), SMALL_BYTES).is_granted


def test_nobody_is_hurried_while_nobody_waits() -> None:
    memory = a_memory()
    memory.claim(Peer(), LARGEST)
    memory.claim(Peer(), LARGEST)
    assert memory.overdue(1000) == []


def test_whoever_stands_still_while_others_wait_is_overdue() -> None:
    memory = a_memory()
    still, moving = memory.claim(Peer(), LARGEST), memory.claim(mover := Peer(), LARGEST)
    memory.claim(Peer(), LARGEST)
    assert memory.overdue(WINDOW_TICKS - 1) == []
    mover.arrived = LEAST_PROGRESS_BYTES
    assert memory.overdue(WINDOW_TICKS) == [still]
    assert moving.is_granted


def test_whoever_is_slow_for_too_long_is_overdue() -> None:
    memory = a_memory()
    slow = Peer()
    claim = memory.claim(slow, LARGEST)
    memory.claim(Peer(), LARGEST)
    memory.claim(Peer(), LARGEST)
    for tick in range(1, GRACE_TICKS + 100):
        slow.arrived += LEAST_PROGRESS_BYTES
        assert claim not in memory.overdue(tick)
    assert claim in memory.overdue(GRACE_TICKS + 100 + WINDOW_TICKS)


def check(memory: RequestMemory) -> None:
    """The invariants, from the claims themselves."""
    claims = list(memory.claims())
    granted = sum(claim.size for claim in claims if claim.is_granted)
    assert memory.share.used_bytes == granted + memory.beginnings_bytes
    assert granted <= memory.share.limit_bytes
    for pool in {claim.pool for claim in claims}:
        assert pool.used_bytes == sum(claim.size for claim in pool.granted)
        assert pool.used_bytes <= pool.limit_bytes
        for first in list(pool.waiting)[:1]:
            assert pool.used_bytes + first.size > pool.limit_bytes, "it fits and waits"


@settings(max_examples=200, deadline=None)
@given(
    limit=st.integers(1, 4 * LIMIT),
    steps=st.lists(
        st.tuples(
            st.sampled_from(("claim", "claim", "end", "tick")), st.integers(5000, LARGEST), st.booleans()
        ),
        max_size=60,
    ),
)
def test_whatever_is_begun_is_finished(limit: int, steps: list[tuple[str, int, bool]]) -> None:
    """However claims come and go: once nothing new comes, each is granted, even if no holder ever moves."""
    memory = a_memory(limit)
    live: list[Claim] = []
    tick = 0
    for what, size, is_link in steps:
        if what == "claim":
            live.append(memory.claim(Peer(), size, is_link=is_link))
        elif what == "end" and live:
            memory.release(live.pop(size % len(live)))
        elif what == "tick":
            tick += 1
            memory.overdue(tick)
        check(memory)
    for _ in range(len(live) + 1):
        if not memory.waiting_count:
            break
        tick += WINDOW_TICKS
        overdue = memory.overdue(tick)
        assert overdue, "somebody waits, and nobody is asked to go"
        for claim in overdue:
            live.remove(claim)
            memory.release(claim)
        check(memory)
    assert not memory.waiting_count
    for claim in live:
        assert claim.is_granted
        memory.release(claim)
    assert memory.share.used_bytes == 0
