"""The rules of the audit: when a window is certified, when it is not, and what is never said too early."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.audit.tally import Cell, Tally
from headrace.audit.verdict import Kind, State, Verdict, decode
from headrace.spark.audit import plan
from headrace.spark.audit.picture import LakeTier, Picture, ProducerState, Read

LENGTH_MS = 1_000
#: More than the half minute that silence is given after the log was asked, and less after PRODUCER was heard.
NOW_MS = 39_600
TWO, THREE = Tally(2, 20, 20), Tally(3, 30, 30)
OTHER_TWO = Tally(2, 21, 20)
CELL = Cell("t", 0, 0)
PRODUCER = ProducerState(
    "checkout",
    "one",
    "web-3",
    complete_until_ms=10_000,
    heard_ms=10_000,
    interval_ms=1_000,
    topics=frozenset({"t"}),
)


def picture(
    told: Mapping[Cell, Tally] | None = None,
    log: Mapping[Cell, Read] | None = None,
    lake: LakeTier | None = None,
    producers: Sequence[ProducerState] = (PRODUCER,),
) -> Picture:
    return Picture(
        now_ms=NOW_MS,
        events_ms=NOW_MS,
        window_length_ms=LENGTH_MS,
        lateness_ms=500,
        told_topics=frozenset({"t"}),
        producers=producers,
        reported={CELL: TWO} if told is None else told,
        log={CELL: Read(TWO, 1, 8_000)} if log is None else log,
        lakes={} if lake is None else {"lake": lake},
    )


def judged(given_picture: Picture) -> Verdict:
    return plan.judge(given_picture, "t", 0, [0])


def test_tiers_that_agree_are_certified() -> None:
    verdict = judged(picture(lake=LakeTier({CELL: TWO}, {("t", 0): 2})))
    assert verdict.state is State.CERTIFIED
    assert verdict.tiers == {"producers": TWO, "log": TWO, "lake": TWO}
    assert decode(verdict.encode()) == verdict


@pytest.mark.parametrize(
    ("found", "kind"), [(Tally(1, 1, 1), Kind.LOST), (THREE, Kind.DOUBLED), (OTHER_TWO, Kind.ALTERED)]
)
@pytest.mark.parametrize("tier", ["log", "lake"])
def test_each_kind_of_difference_has_its_tier(tier: str, found: Tally, kind: Kind) -> None:
    log = {CELL: Read(found if tier == "log" else TWO, 1, 8_000)}
    lake = LakeTier({CELL: found}, {("t", 0): 2})
    verdict = judged(picture(log=log, lake=lake))
    assert verdict.state is State.DIFFERENT
    assert [(each.tier, each.partition, each.kind) for each in verdict.differences] == [(tier, 0, kind)]


def test_a_window_is_open_until_late_records_can_have_come() -> None:
    early = replace(picture(), now_ms=1_400)
    assert judged(early).state is State.OPEN


@pytest.mark.parametrize(
    ("producer", "state", "says"),
    [
        (PRODUCER._replace(complete_until_ms=1_400), State.OPEN, "has not told of all of it yet"),
        (PRODUCER._replace(complete_until_ms=1_400, heard_ms=-30_000), State.INCOMPLETE, "is silent"),
        (
            PRODUCER._replace(complete_until_ms=1_400, ended_ms=900),
            State.INCOMPLETE,
            "ended without a last word",
        ),
        (PRODUCER._replace(complete_until_ms=1_400, fault="is odd"), State.INCOMPLETE, "is odd"),
    ],
)
def test_a_producer_that_has_not_told_of_all_is_named(
    producer: ProducerState, state: State, says: str
) -> None:
    # Even if what it told agrees: what it did not tell of may have been lost with it.
    verdict = judged(picture(producers=[producer]))
    assert verdict.state is state
    assert f"producer checkout on web-3 {says}" in verdict.reasons[0]


def test_a_dead_producer_does_not_concern_windows_after_its_end() -> None:
    dead = PRODUCER._replace(complete_until_ms=-5_000, ended_ms=0)
    assert judged(picture(producers=[dead])).state is State.CERTIFIED
    assert judged(picture(producers=[dead._replace(ended_ms=1)])).state is State.INCOMPLETE


def test_a_producer_that_told_of_no_topic_may_mean_any() -> None:
    silent = PRODUCER._replace(complete_until_ms=0, heard_ms=-30_000, topics=None)
    assert judged(picture(producers=[silent])).state is State.INCOMPLETE
    elsewhere = silent._replace(topics=frozenset({"another"}))
    assert judged(picture(producers=[elsewhere])).state is State.CERTIFIED


def test_a_loss_is_told_whoever_is_silent() -> None:
    silent = PRODUCER._replace(complete_until_ms=0, heard_ms=-30_000)
    found = judged(picture(told={CELL: THREE}, producers=[silent]))
    assert (found.state, found.differences[0].kind) == (State.DIFFERENT, Kind.LOST)


def test_what_the_log_cannot_show_yet_is_not_lost() -> None:
    hidden = replace(picture(told={CELL: THREE}), unread={("t", 0): 5})
    assert judged(hidden).state is State.OPEN


def test_more_than_told_is_an_alarm_only_when_everybody_has_told() -> None:
    late = picture(log={CELL: Read(THREE, 2, asked_ms=9_500)})
    # Told until 10,000, and the log was asked within the skew of clocks before that.
    assert judged(late).state is State.OPEN
    told = picture(
        log={CELL: Read(THREE, 2, asked_ms=9_500)}, producers=[PRODUCER._replace(complete_until_ms=10_500)]
    )
    assert judged(told).state is State.DIFFERENT
    assert judged(picture(log={CELL: Read(THREE, 2, 9_500)}, producers=[])).state is State.DIFFERENT


@pytest.mark.parametrize("found", [THREE, OTHER_TWO])
def test_who_has_just_begun_to_write_is_given_the_time_to_tell(found: Tally) -> None:
    # Nobody who is known lives. The first records of the next one may be read before its first event is.
    excess = picture(log={CELL: Read(found, 2, asked_ms=9_600)}, producers=[])
    assert judged(excess).state is State.OPEN
    assert "somebody who is not known yet may still tell" in judged(excess).reasons[0]
    # It is not the end of a long pass that counts: what was told meanwhile was not asked for.
    assert judged(replace(excess, now_ms=NOW_MS + 10**6)).state is State.OPEN
    later = replace(excess, now_ms=NOW_MS + 1, events_ms=NOW_MS + 1)
    assert judged(later).state is State.DIFFERENT
    # One that is known and writes to the topic for the first time tells with its next report.
    slow = PRODUCER._replace(interval_ms=60_000, topics=frozenset({"another"}))
    assert judged(replace(later, producers=[slow])).state is State.OPEN
    much_later = replace(later, producers=[slow], now_ms=190_000, events_ms=190_000)
    assert judged(much_later).state is State.DIFFERENT


@pytest.mark.parametrize("found", [THREE, OTHER_TWO])
def test_too_much_is_no_alarm_while_the_window_is_open(found: Tally) -> None:
    patient = replace(picture(log={CELL: Read(found, 2, 8_000)}), lateness_ms=NOW_MS)
    assert judged(replace(patient, producers=[])).state is State.OPEN


@pytest.mark.parametrize("found", [THREE, OTHER_TWO])
def test_who_died_after_a_late_record_leaves_it_unknown(found: Tally) -> None:
    # It had told of the window long since, and was given a late record of it before it was killed.
    dead = PRODUCER._replace(complete_until_ms=5_000, ended_ms=5_100)
    follower = PRODUCER._replace(incarnation="two")
    killed = picture(log={CELL: Read(found, 2, asked_ms=8_000)}, producers=[dead, follower])
    assert judged(killed).state is State.INCOMPLETE
    assert "checkout on web-3 ended without a last word" in judged(killed).reasons[0]
    # It can have had no part in what was read before its last word, nor in windows that began after its end.
    before = replace(killed, log={CELL: Read(found, 2, asked_ms=4_000)})
    assert judged(before).state is State.DIFFERENT
    early = replace(killed, producers=[dead._replace(ended_ms=0), follower])
    assert judged(early).state is State.DIFFERENT
    elsewhere = replace(killed, producers=[dead._replace(topics=frozenset({"another"})), follower])
    assert judged(elsewhere).state is State.DIFFERENT


def test_what_a_lost_event_may_have_told_of_is_no_alarm() -> None:
    gap = PRODUCER._replace(complete_until_ms=5_000, ended_ms=5_100, fault="sent an event 6 that was lost")
    late = picture(log={CELL: Read(THREE, 2, asked_ms=8_000)}, producers=[gap, PRODUCER])
    assert judged(late).state is State.INCOMPLETE
    assert "checkout on web-3 sent an event 6 that was lost" in judged(late).reasons[0]


def test_records_of_unknown_fate_are_no_alarm() -> None:
    unsure = replace(picture(log={CELL: Read(THREE, 2, 8_000)}), uncertain={CELL: 1})
    assert judged(unsure).state is State.INCOMPLETE
    nowhere = replace(unsure, uncertain={Cell("t", -1, 0): 1})
    assert judged(nowhere).state is State.INCOMPLETE
    beyond = replace(unsure, log={CELL: Read(Tally(4, 1, 1), 3, 8_000)})
    assert judged(beyond).state is State.DIFFERENT
    # None of them came.
    assert judged(replace(unsure, log=picture().log)).state is State.CERTIFIED


def test_a_lake_that_is_behind_is_waited_for_unless_it_has_too_much() -> None:
    behind = LakeTier({CELL: Tally(1, 1, 1)}, {("t", 0): 1})
    assert judged(picture(lake=behind)).state is State.INCOMPLETE
    doubled = LakeTier({CELL: THREE}, {("t", 0): 1})
    assert judged(picture(lake=doubled)).state is State.DIFFERENT


def test_a_topic_of_which_no_producer_tells_is_not_certified() -> None:
    assert judged(replace(picture(), told_topics=frozenset())).state is State.INCOMPLETE
    without = replace(picture(), told_topics=frozenset(), with_producers=False)
    assert judged(without).tiers == {"log": TWO}
    assert judged(without).state is State.CERTIFIED
    assert judged(replace(without, unread={("t", 0): 1})).state is State.OPEN


def test_without_producers_the_log_counts_as_it_was_when_the_window_was_over() -> None:
    # Transactions follow each other, so there is always something that cannot be read yet.
    busy = replace(picture(), with_producers=False, unread={("t", 0): 1})
    assert judged(replace(busy, heard={("t", 0): 1_499})).state is State.OPEN
    assert judged(replace(busy, heard={("t", 0): 1_500})).state is State.CERTIFIED
    # A partition of which nothing could be read yet may have something of the window as well.
    assert judged(replace(busy, unread={("t", 1): 1})).state is State.OPEN
    assert judged(replace(busy, unread={("another", 0): 1})).state is State.CERTIFIED


def test_empty_windows_are_judged_too_as_far_as_somebody_tells() -> None:
    windows = plan.windows_to_judge(picture(), {"t": None}, {})
    assert list(windows) == [("t", start) for start in range(0, 9_000, 1_000)]
    alone = plan.windows_to_judge(picture(producers=[]), {"t": None}, {})
    assert list(alone) == [("t", 0)]
    far = picture(log={CELL: Read(TWO, 1, 0), Cell("t", 0, 10_000_000): Read(TWO, 3, 0)}, producers=[])
    later = replace(far, now_ms=20_000_000)
    assert len(plan.windows_to_judge(later, {"t": None}, {})) == plan.EMPTY_AT_MOST + 1
    assert windows["t", 0] == {0}
    assert windows["t", 3_000] == set()
    assert plan.judge(picture(), "t", 3_000, []).state is State.CERTIFIED


def test_a_time_that_no_calendar_has_stops_nothing() -> None:
    micros = 1_700_000_000_000_000 // LENGTH_MS * LENGTH_MS
    ahead = picture(log={CELL: Read(TWO, 1, 0), Cell("t", 0, micros): Read(TWO, 3, 0)})
    verdict = plan.judge(ahead, "t", micros, [0])
    assert verdict.state is State.OPEN
    assert verdict.reasons[0] == f"records are awaited until {micros + LENGTH_MS + 500}"
    assert decode(verdict.encode()) == verdict


def test_a_time_far_ahead_does_not_hide_the_quiet_windows_of_now() -> None:
    years = Cell("t", 0, 10**11)
    ahead = picture(log={CELL: Read(TWO, 1, 0), years: Read(TWO, 3, 0)})
    windows = plan.windows_to_judge(ahead, {"t": None}, {})
    assert list(windows) == [("t", start) for start in (*range(0, 9_000, 1_000), 10**11)]
    alone = picture(told={}, log={years: Read(TWO, 3, 0)})
    assert list(plan.windows_to_judge(alone, {"t": None}, {})) == [("t", 10**11)]


def test_windows_before_the_beginning_are_left_alone() -> None:
    old = picture(log={CELL: Read(THREE, 2, 0), Cell("t", 0, 5_000): Read(TWO, 4, 0)})
    assert min(plan.windows_to_judge(old, {"t": 5_000}, {})) == ("t", 5_000)


def test_a_certificate_stands_until_another_or_a_difference_replaces_it() -> None:
    certified = judged(picture())
    (first,) = plan.settle([certified], {})
    assert first.revision == 1
    before = {("t", 0): first}
    assert plan.settle([certified], before) == []
    waiting = judged(picture(log={CELL: Read(THREE, 2, 9_500)}))
    assert waiting.state is State.OPEN
    assert plan.settle([waiting], before) == []
    more = judged(picture(told={CELL: THREE}, log={CELL: Read(THREE, 2, 9_500)}))
    assert [each.revision for each in plan.settle([more], before)] == [2]
    lost = judged(picture(told={CELL: THREE}))
    assert [each.state for each in plan.settle([lost], before)] == [State.DIFFERENT]


def test_the_first_difference_is_by_window_then_tier_then_partition() -> None:
    cells = [Cell("t", partition, window) for window in (0, 1_000) for partition in (0, 1)]
    given_picture = picture(
        told=dict.fromkeys(cells, THREE),
        log={cell: Read(THREE if cell == cells[0] else TWO, 2, 8_000) for cell in cells},
        lake=LakeTier(dict.fromkeys(cells, TWO), {("t", 0): 3, ("t", 1): 3}),
    )
    verdicts = [plan.judge(given_picture, "t", window, [0, 1]) for window in (1_000, 0)]
    first = plan.first_difference(verdicts)
    assert first is not None
    verdict, difference = first
    assert (verdict.window_ms, difference.tier, difference.partition) == (0, "log", 1)


_TALLIES = st.builds(Tally, st.integers(0, 3), st.integers(0, 1), st.integers(0, 1))


@given(_TALLIES, _TALLIES, _TALLIES, st.integers(0, 4), st.integers(0, 4), st.booleans())
def test_what_is_certified_agrees_everywhere(
    told: Tally, log: Tally, lake: Tally, loaded: int, unread: int, live: bool
) -> None:
    made = replace(
        picture(
            told={CELL: told},
            log={CELL: Read(log, log.count - 1, 8_000)},
            lake=LakeTier({CELL: lake}, {("t", 0): loaded}),
            producers=[PRODUCER] if live else [],
        ),
        unread={("t", 0): unread},
    )
    verdict = judged(made)
    assert (verdict.state is State.CERTIFIED) == (told == log == lake)
    if verdict.state is State.DIFFERENT:
        assert verdict.differences
