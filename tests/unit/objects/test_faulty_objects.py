"""Each fault of the simulated store, alone."""

from __future__ import annotations

from random import Random

from headrace.core.ports_objects import ABSENT, Done, Found, Listing, LostRace, OutcomeUnknown
from headrace.testing.simulation.event_queue import EventQueue
from headrace.testing.simulation.faulty_objects import FaultyObjects, StoreFaults

SECONDS = 5.0
UNKNOWN = OutcomeUnknown("no answer within 5 s")


def store(**faults: float) -> FaultyObjects:
    return FaultyObjects(EventQueue(), Random(7), StoreFaults(**faults))  # type: ignore[arg-type]  # shares


def test_a_call_takes_its_time() -> None:
    quiet = store()
    assert isinstance(quiet.put("a", b"one", deadline_seconds=SECONDS), Done)
    assert 2 <= quiet.events.now_ms <= 100


def test_what_is_lost_never_arrives() -> None:
    losing = store(lost=1.0)
    assert losing.put("a", b"one", deadline_seconds=SECONDS) == UNKNOWN
    assert losing.events.now_ms == 5000
    losing.events.run_until(100_000)
    assert losing.inside.get("a", deadline_seconds=0) == ABSENT


def test_what_is_unanswered_takes_effect() -> None:
    silent = store(unanswered=1.0)
    assert silent.put_if("a", b"one", ABSENT, deadline_seconds=SECONDS) == UNKNOWN
    assert isinstance(silent.inside.get("a", deadline_seconds=0), Found)


def test_what_is_late_takes_effect_after_its_caller_has_given_up() -> None:
    late = store(late=1.0)
    assert late.put("a", b"one", deadline_seconds=SECONDS) == UNKNOWN
    assert late.inside.get("a", deadline_seconds=0) == ABSENT
    late.events.run_until(30_000)
    assert isinstance(late.inside.get("a", deadline_seconds=0), Found)


def test_a_late_conditional_write_is_compared_when_it_arrives() -> None:
    late = store(late=1.0)
    assert late.put_if("a", b"one", ABSENT, deadline_seconds=SECONDS) == UNKNOWN
    late.inside.put("a", b"two", deadline_seconds=0)
    late.events.run_until(30_000)
    found = late.inside.get("a", deadline_seconds=0)
    assert isinstance(found, Found)
    assert found.data == b"two"


def test_a_store_that_is_down_answers_nobody() -> None:
    down = store()
    down.faults.is_down = True
    assert down.get("a", deadline_seconds=SECONDS) == UNKNOWN
    assert down.list("", deadline_seconds=SECONDS) == UNKNOWN
    down.faults.is_down = False
    assert down.get("a", deadline_seconds=SECONDS) == ABSENT


def test_stale_listings_show_what_was_and_lack_what_is() -> None:
    stale = store(stale_listings=1.0)
    for number in range(20):
        stale.put(f"{number:02}", b"", deadline_seconds=SECONDS)
    for number in range(10):
        stale.delete(f"{number:02}", deadline_seconds=SECONDS)
    seen = set()
    for _ in range(20):
        listing = stale.list("", deadline_seconds=SECONDS)
        assert isinstance(listing, Listing)
        seen.add(len(listing.objects))
    assert min(seen) < 10 or max(seen) > 10
    assert stale.get("00", deadline_seconds=SECONDS) == ABSENT, "reads are never stale"
    assert stale.put_if("10", b"", ABSENT, deadline_seconds=SECONDS) == LostRace()


def test_a_seed_is_one_run() -> None:
    def run() -> list[object]:
        faulty = store(lost=0.2, unanswered=0.2, late=0.2)
        return [faulty.put(f"{n}", b"", deadline_seconds=SECONDS) for n in range(30)] + [faulty.events.now_ms]

    assert run() == run()
    assert 5 < run().count(UNKNOWN) < 30
