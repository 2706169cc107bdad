"""Who loses its connection when answers that nobody reads take too much."""

from __future__ import annotations

from headrace.core.memory import MemoryShare
from headrace.network.unsent_answers import SPARED_BYTES, UnsentAnswers

KB = 1024


class Reader:
    def __init__(self) -> None:
        self.is_closed = False

    def on_too_slow(self) -> None:
        self.is_closed = True


def test_those_go_first_who_have_taken_nothing_for_the_longest_time() -> None:
    unsent = UnsentAnswers(MemoryShare("answers", 300 * KB))
    idle, taking, new = Reader(), Reader(), Reader()
    unsent.note(taking, 100 * KB)
    unsent.note(idle, 100 * KB)
    unsent.note(taking, 90 * KB)
    unsent.note(new, 150 * KB)
    assert [reader.is_closed for reader in (idle, taking, new)] == [True, False, False]
    assert unsent.share.used_bytes == 240 * KB
    assert unsent.share.refusals == 1


def test_whoever_holds_little_is_counted_and_left_alone() -> None:
    unsent = UnsentAnswers(MemoryShare("answers", 100 * KB))
    small, large, larger = Reader(), Reader(), Reader()
    unsent.note(small, SPARED_BYTES)
    unsent.note(large, 80 * KB)
    unsent.note(larger, 200 * KB)
    assert [reader.is_closed for reader in (small, large, larger)] == [False, True, False]
    assert unsent.share.used_bytes == SPARED_BYTES + 200 * KB


def test_whoever_has_taken_all_is_forgotten() -> None:
    unsent = UnsentAnswers(MemoryShare("answers", 100 * KB))
    one, two = Reader(), Reader()
    unsent.note(one, 90 * KB)
    unsent.forget(one)
    unsent.forget(one)
    unsent.note(two, 90 * KB)
    assert unsent.share.used_bytes == 90 * KB
    assert not one.is_closed
    assert not two.is_closed
