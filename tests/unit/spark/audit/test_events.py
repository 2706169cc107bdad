"""What the driver makes of the records of the topic of events."""

from __future__ import annotations

from headrace.audit.event import Event, retirement
from headrace.protocol.records import Record
from headrace.spark.audit.events import parse

_GOOD = Event("p", "one", "s", 0, 1, 5, 5, 100, 1_000)


def test_records_that_are_no_events_are_counted() -> None:
    wrong = _GOOD.encode().replace(b'"sequence":1', b'"sequence":"1"')
    values = [_GOOD.encode(), b"[" * 200_000, wrong, retirement("p", "one", 7), None]
    news = parse([Record(offset, 5, None, value) for offset, value in enumerate(values)])
    assert (news.events, news.retired, news.strange) == ([(_GOOD, 5)], [("one", 7)], 3)
