"""What a producer tells: everything that was acknowledged once, and never more than it knows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.audit.checksum import record_hash
from headrace.audit.event import Event, decode
from headrace.audit.ledger import Fields, Ledger
from headrace.audit.settings import AuditSettings
from headrace.audit.tally import Cell, Tally, total, window_of

_LENGTH_MS = 1_000
_SETTINGS = AuditSettings("orders", "web-1", window_seconds=1, report_seconds=1)


def new_ledger(now_ms: int = 0) -> Ledger:
    ledger = Ledger(_SETTINGS, "first", now_ms, fields=lambda fields: fields)
    ledger.event(now_ms)
    return ledger


def fields(number: int, *, partition: int = 0, timestamp: int = 0) -> Fields:
    return ("t", partition, timestamp, None, b"%d" % number)


def counted(events: list[Event]) -> dict[Cell, Tally]:
    found: dict[Cell, Tally] = {}
    for event in events:
        for count in event.counts:
            found[count.cell] = found.get(count.cell, Tally()).plus(count.tally)
    return found


_MOVES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5_000), st.booleans()), max_size=700)


@given(_MOVES)
def test_what_was_acknowledged_is_told_once(moves: list[tuple[int, int, bool]]) -> None:
    ledger = new_ledger()
    events: list[Event] = []
    expected: dict[Cell, Tally] = {}
    for number, (partition, timestamp, tell) in enumerate(moves):
        record = fields(number, partition=partition, timestamp=timestamp)
        ledger.settled(None, record)
        cell = Cell("t", partition, window_of(timestamp, _LENGTH_MS))
        one = Tally(1, *record_hash(record[3], record[4], timestamp))
        expected[cell] = expected.get(cell, Tally()).plus(one)
        if tell:
            events.append(ledger.event(number))
    events.append(ledger.event(10_000, closing=True))
    assert counted(events) == expected
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    assert events[-1].closing


def test_an_event_can_be_written_and_read() -> None:
    ledger = new_ledger()
    ledger.settled(None, fields(1))
    ledger.settled("timed out", fields(2, partition=1))
    event = ledger.event(5)
    assert decode(event.encode()) == event
    assert [(count.tally.count, count.uncertain) for count in event.counts] == [(1, 0), (0, 1)]


def test_complete_until_stands_still_while_a_record_is_on_its_way() -> None:
    ledger = new_ledger(0)
    ledger.event(100)
    on_its_way = ledger.settled
    assert ledger.event(200).complete_until_ms == 100
    closing = ledger.event(300, closing=True)
    # Whatever becomes of it, nobody would tell: such an end is no end.
    assert (closing.complete_until_ms, closing.closing) == (100, False)
    on_its_way(None, fields(1))
    del on_its_way
    last = ledger.event(400)
    assert (last.complete_until_ms, len(last.counts)) == (400, 1)


def test_a_transaction_counts_when_it_is_committed() -> None:
    ledger = new_ledger()
    ledger.begin_transaction(100)
    ledger.settled(None, fields(1))
    open_one = ledger.event(200)
    assert (open_one.complete_until_ms, open_one.counts) == (100, ())
    ledger.end_transaction(committed=True)
    assert total(count.tally for count in ledger.event(300).counts).count == 1


def test_an_aborted_transaction_counts_for_nothing_and_a_lost_one_is_uncertain() -> None:
    ledger = new_ledger()
    for committed in (False, None):
        ledger.begin_transaction(100)
        ledger.settled(None, fields(1))
        ledger.end_transaction(committed=committed)
        if committed is False:
            ledger.settled("purged", fields(2))
            ledger.begin_transaction(100)
            ledger.end_transaction(committed=False)
    (count,) = ledger.event(300).counts
    assert (count.tally.count, count.uncertain) == (0, 1)


def test_sums_stay_within_their_lanes() -> None:
    ledger = new_ledger()
    for number in range(10_000):
        ledger.settled(None, fields(number))
    (count,) = ledger.event(1).counts
    assert count.tally.count == 10_000
    assert max(count.tally.a, count.tally.b) < 2**64
    assert count.tally == total(Tally(1, *record_hash(None, b"%d" % number, 0)) for number in range(10_000))


def _spread(ledger: Ledger) -> dict[Cell, Tally]:
    """Twelve partitions that were loaded with a day, minute by minute, while nothing could be told."""
    expected: dict[Cell, Tally] = {}
    for number in range(12 * 1_440):
        partition, second = number % 12, number // 12
        record = fields(number, partition=partition, timestamp=second * _LENGTH_MS)
        ledger.settled(None, record)
        expected[Cell("t", partition, second * _LENGTH_MS)] = Tally(
            1, *record_hash(None, record[4], record[2])
        )
    ledger.settled("timed out", fields(0, partition=99))
    expected[Cell("t", 99, 0)] = Tally()
    return expected


def test_what_is_too_much_for_a_message_is_told_in_several_events() -> None:
    ledger = new_ledger(100)
    ledger.event(200)
    expected = _spread(ledger)
    events = [ledger.event(300, closing=True)]
    while ledger.has_more:
        events.append(ledger.event(300, closing=True))
    assert counted(events) == expected
    assert sum(count.uncertain for event in events for count in event.counts) == 1
    assert [len(event.counts) for event in events] == [2_000] * 8 + [1_281]
    assert max(len(event.encode()) for event in events) < 1_000_000
    assert [event.sequence for event in events] == list(range(2, 11))
    # Whoever dies between two of them has promised nothing of what it was still to tell.
    assert [event.complete_until_ms for event in events] == [200] * 8 + [300]
    assert [event.closing for event in events] == [False] * 8 + [True]


def test_an_event_of_the_longest_names_fits_into_a_message() -> None:
    ledger = new_ledger()
    for number in range(2_000):
        ledger.settled(None, ("t" * 249, 2**31 - 1 - number, 253_402_300_799_000, None, b""))
    event = ledger.event(1)
    assert not ledger.has_more
    assert len(event.encode()) < 1_000_000
