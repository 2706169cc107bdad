"""Events get out in spite of a client that refuses, and the application never hears of it."""

from __future__ import annotations

import threading
import time

import pytest

from headrace.audit import event
from headrace.audit.reporter import Reporter, Stored
from headrace.audit.settings import AuditSettings


class FlakyChannel:
    """Takes an event, refuses it at once, or fails it later."""

    def __init__(self, *ways: str) -> None:
        self.ways = list(ways)
        self.stored: list[event.Event] = []
        self.flushed = threading.Event()

    def send(self, topic: str, key: bytes, value: bytes, stored: Stored) -> None:
        way = self.ways.pop(0) if self.ways else "take"
        if way == "raise":
            raise BufferError("the queue is full")
        if way == "fail":
            stored(RuntimeError("timed out"))
            return
        self.stored.append(event.decode(value))
        stored(None)

    def flush(self, seconds: float) -> None:
        self.flushed.set()


def reporter(channel: FlakyChannel, every: float = 60.0) -> Reporter:
    return Reporter(AuditSettings("p", "s", report_seconds=every), channel, lambda reports: reports)


def test_what_was_not_stored_is_sent_again_under_its_number(caplog: pytest.LogCaptureFixture) -> None:
    channel = FlakyChannel("take", "raise", "fail", "fail")
    told = reporter(channel)
    told.start()
    for _ in range(3):
        told.report()
    told.close()
    assert sorted(each.sequence for each in channel.stored) == [0, 1, 2, 3, 4]
    assert channel.flushed.is_set()
    assert len(caplog.records) == 1
    told.close()
    told.report()
    assert len(channel.stored) == 5


def test_what_one_event_does_not_hold_is_told_at_once_and_in_order() -> None:
    channel = FlakyChannel("take", "take", "fail")
    told = reporter(channel)
    told.start()
    for number in range(4_001):
        told.ledger.settled(None, ("t", number, 0, None, b""))
    told.report()
    assert [(each.sequence, len(each.counts)) for each in channel.stored] == [(0, 0), (1, 2_000), (3, 1)]
    told.close()
    assert [each.sequence for each in channel.stored] == [0, 1, 3, 2, 4]
    assert [each.sequence for each in channel.stored if each.closing] == [4]


def test_the_timer_tells_and_stops_with_the_reporter() -> None:
    channel = FlakyChannel()
    told = reporter(channel, every=0.05)
    told.start(at_once=False)
    give_up = time.monotonic() + 20
    while len(channel.stored) < 3 and time.monotonic() < give_up:
        time.sleep(0.02)
    assert [each.sequence for each in channel.stored[:3]] == [0, 1, 2]
    before = threading.active_count()
    del told
    while threading.active_count() >= before and time.monotonic() < give_up:
        time.sleep(0.02)
    assert threading.active_count() < before


def test_a_flush_tells_but_not_after_every_record() -> None:
    channel = FlakyChannel()
    told = reporter(channel)
    told.report()
    for _ in range(10):
        told.after_flush()
    assert len(channel.stored) == 1
