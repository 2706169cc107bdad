"""The monitoring event: what a producer tells of itself. Any client that sends it can be audited.

An event is one record of the audit topic. Its key is the producer's name, its value JSON:

    {"version": 1, "producer": "checkout", "incarnation": "6f0c...", "server": "web-3",
     "started_ms": 1700000000000, "sequence": 17, "time_ms": 1700000085000,
     "complete_until_ms": 1700000084200, "interval_ms": 5000, "window_length_ms": 60000, "closing": false,
     "counts": [{"topic": "orders", "partition": 0, "window_ms": 1700000040000, "count": 812,
                 "checksum": "00c2...", "uncertain": 0}]}

- `incarnation` is new for every start. `sequence` counts its events from 0, so that a lost one is missed and
  one that was stored twice counts once. A lost one leaves windows incomplete that begin before the `time_ms`
  of the next.
- `counts` are what was acknowledged since the event before. What would make a record too large goes into
  further events, of which only the last moves `complete_until_ms` and may close. `uncertain` are
  records that failed in a way which leaves open whether they were stored; the count does not include them.
- `complete_until_ms`: whatever the application handed over before this moment, by this server's clock, is in
  this event or an earlier one. An event without counts is a heartbeat: it moves this.
- The first event (sequence 0) has no counts: it makes the producer known before its first record. With
  `closing`, no more will come.
- An incarnation that goes silent without `closing` leaves windows incomplete: all that begin before its end.
  That is when another of the same name and server starts after its last word, or when somebody says so
  (`headrace audit retire`), with an event that has `"retired": true`, the producer's name and incarnation,
  and the time. Who tells after that time was not gone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from headrace.audit.tally import Cell, Tally
from headrace.core.errors import HeadraceError

VERSION: Final = 1
_CHECKSUM: Final = re.compile(r"[0-9a-fA-F]{32}")
_LARGEST: Final = 2**63 - 1
DEFAULT_TOPIC: Final = "headrace-audit"


class InvalidEvent(HeadraceError):
    pass


class Count(NamedTuple):
    cell: Cell
    tally: Tally
    uncertain: int = 0


class Event(NamedTuple):
    producer: str
    incarnation: str
    server: str
    started_ms: int
    sequence: int
    time_ms: int
    complete_until_ms: int
    interval_ms: int
    window_length_ms: int
    closing: bool = False
    counts: tuple[Count, ...] = ()

    @property
    def key(self) -> bytes:
        return self.producer.encode()

    def encode(self) -> bytes:
        document: dict[str, Any] = {"version": VERSION, **self._asdict()}
        document["counts"] = [
            {
                **count.cell._asdict(),
                "count": count.tally.count,
                "checksum": count.tally.checksum,
                "uncertain": count.uncertain,
            }
            for count in self.counts
        ]
        return json.dumps(document, separators=(",", ":")).encode()


def decode(data: bytes) -> Event:
    """InvalidEvent for anything that is none. Whatever is let in here, the books must be able to hold."""
    try:
        document = json.loads(data)
        if document.pop("version") != VERSION:
            raise InvalidEvent("a monitoring event of a version that this audit does not know")
        counts = document.pop("counts")
        if not isinstance(counts, list):
            raise TypeError("counts are a list")
        event = Event(**document, counts=tuple(map(_count, counts)))
        _check(event)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidEvent(f"not a monitoring event: {error}") from error
    return event


def _check(event: Event) -> None:
    for text in ("producer", "incarnation", "server"):
        _text(text, getattr(event, text))
    for moment in ("started_ms", "time_ms", "complete_until_ms"):
        _number(moment, getattr(event, moment))
    _number("sequence", event.sequence, least=0)
    _number("interval_ms", event.interval_ms, least=0)
    _number("window_length_ms", event.window_length_ms, least=1)
    if not isinstance(event.closing, bool):
        raise TypeError(f"closing is true or false, not {event.closing!r}")


def _count(entry: Mapping[str, Any]) -> Count:
    checksum = _text("checksum", entry["checksum"])
    if not _CHECKSUM.fullmatch(checksum):
        raise ValueError(f"{checksum!r} is not a checksum: 32 hexadecimal digits are")
    return Count(
        Cell(
            _text("topic", entry["topic"]),
            _partition(entry["partition"]),
            _number("window_ms", entry["window_ms"]),
        ),
        Tally.parse(_number("count", entry["count"], least=0), checksum),
        _number("uncertain", entry["uncertain"], least=0),
    )


def _partition(value: object) -> int:
    """-1 of a record that failed before it had one; there are producers that say null."""
    return -1 if value is None else _number("partition", value, least=-1, largest=2**31 - 1)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} is a text, not {value!r}")
    value.encode()  # half a surrogate pair passes through JSON, and through nothing else
    return value


def _number(name: str, value: object, *, least: int = -_LARGEST, largest: int = _LARGEST) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} is a number, not {value!r}")
    if not least <= value <= largest:
        raise ValueError(f"{name} is between {least} and {largest}, not {value}")
    return value


def retirement(producer: str, incarnation: str, time_ms: int) -> bytes:
    """Somebody knows that this incarnation is gone since then. What it did not report stays unknown."""
    document = {
        "version": VERSION,
        "producer": producer,
        "incarnation": incarnation,
        "time_ms": time_ms,
        "retired": True,
    }
    return json.dumps(document, separators=(",", ":")).encode()


def decode_retirement(data: bytes) -> tuple[str, int] | None:
    """The incarnation and since when it is gone; None if this is another record."""
    try:
        document = json.loads(data)
        if not document.get("retired"):
            return None
        return _text("incarnation", document["incarnation"]), _number("time_ms", document["time_ms"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
