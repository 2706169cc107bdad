"""Sends a ledger's events: by a timer of its own, after a flush, and at the end. Nothing it does raises.

An event that could not be stored is sent again under its number, before any newer one.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
import weakref
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from headrace.audit.event import Event
from headrace.audit.ledger import Ledger, Unpack
from headrace.audit.settings import AuditSettings

_log = logging.getLogger(__name__)
#: An application may flush after every record; that must not double its records.
_LEAST_SECONDS_BETWEEN: Final = 1.0

Stored = Callable[[Exception | object | None], None]
"""Called once, with None when the event was stored."""


class Channel(Protocol):
    """How events leave: what each client's wrapper brings."""

    def send(self, topic: str, key: bytes, value: bytes, stored: Stored) -> None: ...

    def flush(self, seconds: float) -> None: ...


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


class Reporter:
    def __init__(
        self,
        settings: AuditSettings,
        channel: Channel,
        fields: Unpack,
        failed: Unpack | None = None,
        owner: Callable[[], object] = lambda: None,
    ) -> None:
        """`owner`: a weak reference to the producer, if it closes this when it is dropped."""
        self.settings = settings
        self.channel = channel
        self.owner = owner
        self.ledger = Ledger(settings, uuid.uuid4().hex, wall_clock_ms(), fields, failed)
        self._again: deque[Event] = deque()
        self._sending = threading.Lock()
        self._stop = threading.Event()
        self._last = 0.0
        self._warned = False
        self.closed = False

    def start(self, *, at_once: bool = True) -> None:
        """Make the producer known, and tell of it from then on. Not at once: where sending may wait."""
        if at_once:
            self.report()
        # The thread must not keep a producer alive that the application has dropped.
        threading.Thread(
            target=_tick,
            args=(weakref.ref(self), self._stop, self.settings.report_seconds, not at_once),
            daemon=True,
        ).start()

    def report(self, *, closing: bool = False) -> None:
        with self._sending:
            if self.closed:
                return
            self._last = time.monotonic()
            waiting = sorted((self._again.popleft() for _ in range(len(self._again))), key=_by_sequence)
            for each in waiting:
                self._send(each)
            self._send(self.ledger.event(wall_clock_ms(), closing=closing))
            while self.ledger.has_more:
                self._send(self.ledger.event(wall_clock_ms(), closing=closing))

    def after_flush(self) -> None:
        if time.monotonic() - self._last >= _LEAST_SECONDS_BETWEEN:
            self.report()

    def close(self) -> None:
        """The last event, and a bounded wait until it is stored."""
        if self.closed:
            return
        self._stop.set()
        self.report(closing=True)
        try:
            self.channel.flush(self.settings.close_seconds)
        except Exception as error:
            self._warn(error)
        self.closed = True

    def _send(self, event: Event) -> None:
        def stored(error: object) -> None:
            if error is not None:
                self._again.append(event)
                self._warn(error)

        try:
            self.channel.send(self.settings.topic, event.key, event.encode(), stored)
        except Exception as error:  # whatever a client raises, the application did not ask for this record
            stored(error)

    def _warn(self, error: object) -> None:
        if not self._warned:
            self._warned = True
            _log.warning("a monitoring event was not stored, and will be sent again: %s", error)


def _by_sequence(event: Event) -> int:
    return event.sequence


def _tick(reporter: weakref.ref[Reporter], stop: threading.Event, seconds: float, at_once: bool) -> None:
    while not stop.wait(0 if at_once else seconds):
        at_once = False
        alive = reporter()
        if alive is None:
            return
        # Dropped by the application in the middle of a report, the producer would end in it, in this thread:
        # its last word would wait for the lock that the report holds.
        held = alive.owner()
        try:
            alive.report()
        except Exception:
            _log.exception("a monitoring event could not be made")
        del alive
        del held
