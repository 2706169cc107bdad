"""Events may come late, twice, out of order or never: the roster knows what it can believe."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.audit.event import Count, Event
from headrace.audit.tally import Cell, Tally
from headrace.spark.audit import roster
from headrace.spark.audit.picture import ProducerState
from headrace.spark.audit.roster import Roster

LENGTH_MS = 1_000
_DAY_MS = 86_400_000
CELL = Cell("t", 0, 0)


def event(
    sequence: int,
    *,
    incarnation: str = "one",
    started_ms: int = 0,
    closing: bool = False,
    length_ms: int = LENGTH_MS,
) -> Event:
    counts = (Count(CELL, Tally(1, sequence, sequence), 0),) if sequence else ()
    until = started_ms + 100 * sequence
    return Event("p", incarnation, "s", started_ms, sequence, until, until, 100, length_ms, closing, counts)


def heard(people: Roster, *events: Event) -> roster.Told:
    return people.hear([(each, 5_000 + each.sequence) for each in events], LENGTH_MS)


def states(people: Roster, now_ms: int = 5_000) -> list[ProducerState]:
    return people.states(LENGTH_MS, now_ms, silent_after_ms=10_000)


def ended(people: Roster, now_ms: int) -> dict[str, int | None]:
    return {state.incarnation: state.ended_ms for state in states(people, now_ms)}


@given(st.permutations(list(range(6))), st.lists(st.integers(0, 5), max_size=6), st.integers(0, 6))
def test_order_and_repetition_do_not_matter(order: list[int], again: list[int], cut: int) -> None:
    events = [event(number, closing=number == 5) for number in order]
    events += [event(number, closing=number == 5) for number in again]
    people = Roster()
    first = heard(people, *events[:cut])
    # Between passes it is written down.
    people = roster.decode(people.encode())
    second = heard(people, *events[cut:])
    tallies = [told.tallies.get(CELL, Tally()) for told in (first, second)]
    assert tallies[0].plus(tallies[1]) == Tally(5, 15, 15)
    assert states(people) == []
    assert people.told_topics == {"t"}


def test_a_gap_holds_back_what_is_complete() -> None:
    people = Roster()
    told = heard(people, event(0), event(1), event(3, closing=True))
    assert told.tallies[CELL].count == 2
    (state,) = states(people)
    assert (state.complete_until_ms, state.fault) == (100, "sent an event 2 that was lost")
    heard(people, event(2))
    assert states(people) == []


def test_a_gap_concerns_what_began_before_the_next_event() -> None:
    # As with a topic of events whose beginning retention has taken away.
    people = Roster()
    heard(people, event(4), event(5), event(8), event(9))
    people = roster.decode(people.encode())
    lives = [(each.complete_until_ms, each.ended_ms, each.fault) for each in states(people)]
    assert lives == [
        (0, 400, "sent an event 0 that was lost"),
        (500, 800, "sent an event 6 that was lost"),
        (900, None, None),
    ]


def test_who_closed_behind_a_gap_has_ended() -> None:
    people = Roster()
    heard(people, event(4), event(5, closing=True))
    (gap,) = states(people, now_ms=10**9)
    assert (gap.complete_until_ms, gap.ended_ms) == (0, 400)
    # What the lost events told of stays unknown, so the gap is not forgotten.
    people.hear([(event(0, incarnation="two"), 10 * _DAY_MS)], LENGTH_MS)
    assert gap in states(people)


def test_a_gap_takes_no_more_room_as_time_passes() -> None:
    people = Roster()
    heard(people, *(event(number) for number in range(1, 10)))
    before = len(people.encode())
    heard(people, *(event(number) for number in range(10, 90)))
    assert len(people.encode()) < before + 10


def test_a_successor_ends_a_silent_incarnation() -> None:
    people = Roster()
    heard(people, event(0), event(3), event(0, incarnation="two", started_ms=900))
    # It may be another process of that name, beside the first.
    assert ended(people, now_ms=6_000) == {"one": None, "two": None}
    assert ended(people, now_ms=60_000) == {"one": 900, "two": None}
    # The new one has told of no topic, and of which its name tells is known.
    assert all(state.topics == frozenset({"t"}) for state in states(people))


def test_a_successor_has_ended_it_also_when_it_is_forgotten() -> None:
    people = Roster()
    heard(people, event(0), event(1))
    heard(people, event(0, incarnation="two", started_ms=900))
    heard(people, event(1, incarnation="two", started_ms=900, closing=True))
    much_later = 10 * _DAY_MS
    stranger = event(0, started_ms=much_later, incarnation="x")._replace(producer="q")
    people.hear([(stranger, much_later)], LENGTH_MS)
    people = roster.decode(people.encode())
    assert ended(people, now_ms=much_later) == {"one": 900, "x": None}
    # It was not dead, only cut off.
    people.hear([(event(900), much_later)], LENGTH_MS)
    assert ended(people, now_ms=10**10)["one"] is None


def test_one_that_ran_beside_another_is_not_ended_by_it() -> None:
    people = Roster()
    heard(people, event(0), event(0, incarnation="two", started_ms=50), event(1))
    assert ended(people, now_ms=60_000) == {"one": None, "two": None}
    # A third starts after the first was last heard; the first may have lived until its next report.
    heard(people, event(0, incarnation="three", started_ms=120))
    assert ended(people, now_ms=60_000) == {"one": 300, "two": 250, "three": None}


def test_somebody_who_knows_ends_an_incarnation() -> None:
    people = Roster()
    heard(people, event(0), event(1))
    people.retire("one", 900)
    assert ended(people, now_ms=5_000) == {"one": 900}
    # Who knows less than is known already changes nothing.
    heard(people, event(0, incarnation="two", started_ms=700))
    assert ended(people, now_ms=60_000) == {"one": 700, "two": None}
    people.retire("one", 2_000)
    assert ended(people, now_ms=60_000) == {"one": 700, "two": None}


def test_who_tells_after_being_retired_lives() -> None:
    people = Roster()
    heard(people, event(0), event(1))
    people.retire("one", 150)
    heard(people, event(2))
    assert ended(people, now_ms=5_000) == {"one": None}


def test_other_windows_cannot_be_compared() -> None:
    people = Roster()
    told = heard(people, event(0, length_ms=60_000), event(1, length_ms=60_000, closing=True))
    assert told.tallies == {}
    (state,) = states(people)
    assert state.fault is not None
    # It has closed: later windows are none of its business.
    assert (state.complete_until_ms, state.ended_ms) == (0, 100)


def test_who_closed_is_forgotten_after_a_day() -> None:
    people = Roster()
    heard(people, event(0), event(1, closing=True))
    people.hear([(event(0, incarnation="two"), 10 * _DAY_MS)], LENGTH_MS)
    assert "one" not in people.encode()
    assert people.told_topics == {"t"}


def test_who_dies_between_the_events_of_one_report_has_not_told_of_all() -> None:
    people = Roster()
    part = event(2)._replace(complete_until_ms=100)
    heard(people, event(0), event(1), part)
    (state,) = states(people)
    assert (state.complete_until_ms, state.fault) == (100, None)
    # The last one comes before another that is under way: nothing is whole until both are there.
    people = Roster()
    heard(people, event(0), event(1), event(3, closing=True))
    assert [(state.complete_until_ms, state.fault is None) for state in states(people)] == [(100, False)]
    heard(people, part)
    assert states(people) == []
