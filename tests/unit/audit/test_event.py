"""Whatever lies in the topic of events: it is an event of the right types, or it is none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headrace.audit.event import Count, Event, InvalidEvent, decode, decode_retirement, retirement
from headrace.audit.tally import Cell, Tally

_GOOD = Event("p", "one", "s", 0, 1, 5, 5, 100, 1_000, False, (Count(Cell("t", 0, 0), Tally(8, 1, 2), 1),))


def _document(**changed: Any) -> bytes:
    return json.dumps({**json.loads(_GOOD.encode()), **changed}).encode()


def _with_count(**changed: Any) -> bytes:
    (entry,) = json.loads(_GOOD.encode())["counts"]
    return _document(counts=[{**entry, **changed}])


def test_what_is_told_is_read() -> None:
    assert decode(_GOOD.encode()) == _GOOD
    # Nanoseconds, which somebody wrote where milliseconds belong, are a window too.
    assert decode(_with_count(window_ms=17 * 10**17)).counts[0].cell.window_ms == 17 * 10**17
    # A record of which not even the partition is known.
    for nowhere in (-1, None):
        assert decode(_with_count(partition=nowhere)).counts[0].cell == Cell("t", -1, 0)
    assert decode_retirement(retirement("p", "one", 7)) == ("one", 7)
    assert decode_retirement(_GOOD.encode()) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[]",
        b"[" * 200_000,
        b'{"version":1}',
        _document(version=2),
        _document(sequence="0"),
        _document(sequence=True),
        _document(sequence=-1),
        _document(sequence=1.0),
        _document(sequence=2**63),
        _document(incarnation=["x"]),
        _document(producer=None),
        _document(server=3),
        _document(complete_until_ms=None),
        _document(started_ms="0"),
        _document(time_ms=[]),
        _document(time_ms=2**63),
        _document(server="\ud800"),
        _document(interval_ms=-1),
        _document(window_length_ms=0),
        _document(closing=0),
        _document(counts={}),
        _document(counts=[3]),
        _document(another=1),
        _with_count(count="8"),
        _with_count(count=-1),
        _with_count(checksum=32 * "x"),
        _with_count(checksum="+" + 31 * "0"),
        _with_count(checksum=[0] * 32),
        _with_count(uncertain=None),
        _with_count(uncertain=-1),
        _with_count(topic=None),
        _with_count(partition="0"),
        _with_count(partition=-2),
        _with_count(partition=2**31),
        _with_count(window_ms=2**63),
    ],
)
def test_what_is_no_event_is_called_so(data: bytes) -> None:
    with pytest.raises(InvalidEvent):
        decode(data)
    assert decode_retirement(data) is None


@pytest.mark.parametrize(
    "changed", [{"incarnation": ["x"]}, {"time_ms": "now"}, {"time_ms": None}, {"time_ms": 10**30}]
)
def test_what_is_no_retirement_is_none(changed: dict[str, Any]) -> None:
    document = {**json.loads(retirement("p", "one", 7)), **changed}
    assert decode_retirement(json.dumps(document).encode()) is None
