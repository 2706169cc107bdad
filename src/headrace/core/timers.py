"""What happens when a time is over: the one queue for it, with one timer of the event loop for many.

Requests wait by the thousand, and nearly all are answered long before their time is over; a heartbeat moves
the end of a session by the thousand a second, nearly always to a later time. So times are rounded up to a
slot, whatever falls into a slot shares a timer, and a move to a later time only changes a number: its old
place is looked at when the old time comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Protocol

from headrace.core.failures import report

NOT_SCHEDULED: Final = -1
ALMOST_ONE: Final = 1 - 1e-6
"""Rounds up, and forgives what a sum of floats is too much."""


class Schedules(Protocol):
    """As much of an event loop as this needs."""

    def time(self) -> float: ...
    def call_at(self, when: float, callback: Callable[[int], None], slot: int, /) -> object: ...


class Timed:
    """A base for whatever has a time. `on_time` is called once for each time it is scheduled."""

    __slots__ = ("due", "slot")

    def __init__(self) -> None:
        self.slot = NOT_SCHEDULED
        """Where the queue has it."""
        self.due = NOT_SCHEDULED
        """The slot in which its time is over; not before `slot`."""

    @property
    def is_scheduled(self) -> bool:
        return self.slot != NOT_SCHEDULED

    def on_time(self) -> None:
        raise NotImplementedError

    def timer_name(self) -> str:
        """For the log, if `on_time` raises."""
        raise NotImplementedError


class Timer(Timed):
    """One call of a function, as TimerQueue.after returns it."""

    __slots__ = ("_callback", "_name", "_queue")

    def __init__(self, queue: TimerQueue, name: str, callback: Callable[[], object]) -> None:
        super().__init__()
        self._queue = queue
        self._name = name
        self._callback = callback

    def on_time(self) -> None:
        self._callback()

    def timer_name(self) -> str:
        return self._name

    def cancel(self) -> None:
        self._queue.cancel(self)


class TimerQueue:
    """Invariant: what is scheduled stands in exactly one slot, `slot`, and fires in `due`."""

    __slots__ = ("_count", "_loop", "_slots", "_slots_per_second")

    def __init__(self, loop: Schedules, slots_per_second: int = 1000) -> None:
        self._loop = loop
        self._slots_per_second = slots_per_second
        self._slots: dict[int, dict[Timed, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Timed]:
        """All that are scheduled now, whatever becomes of them meanwhile."""
        return iter([timed for members in self._slots.values() for timed in members])

    def after(self, seconds: float, name: str, callback: Callable[[], object]) -> Timer:
        timer = Timer(self, name, callback)
        self.schedule(timer, seconds)
        return timer

    def schedule(self, timed: Timed, seconds: float) -> None:
        """Or schedule it anew. Its time is over in `seconds`, and up to one slot later. What is due at once,
        as the next step of a decision, waits for no slot but for the next turn of the loop."""
        if seconds > 0:
            due = int((self._loop.time() + seconds) * self._slots_per_second + ALMOST_ONE)
        else:
            due = int(self._loop.time() * self._slots_per_second)
        if timed.slot != NOT_SCHEDULED:
            if due >= timed.slot:
                timed.due = due
                return
            self.cancel(timed)
        self._put(timed, due)

    def cancel(self, timed: Timed) -> bool:
        """False if it was not scheduled."""
        if timed.slot == NOT_SCHEDULED:
            return False
        members = self._slots.get(timed.slot)
        if members is not None:  # else the slot is being worked through just now
            members.pop(timed, None)
        timed.slot = NOT_SCHEDULED
        self._count -= 1
        return True

    def _put(self, timed: Timed, slot: int) -> None:
        members = self._slots.get(slot)
        if members is None:
            members = self._slots[slot] = {}
            self._loop.call_at(slot / self._slots_per_second, self._on_slot, slot)
        members[timed] = None
        timed.slot = timed.due = slot
        self._count += 1

    def _on_slot(self, slot: int) -> None:
        for timed in self._slots.pop(slot):
            if timed.slot != slot:
                continue  # one before it has cancelled it
            timed.slot = NOT_SCHEDULED
            self._count -= 1
            if timed.due > slot:
                self._put(timed, timed.due)
                continue
            try:
                timed.on_time()
            except Exception as error:  # of this one: those behind it have waited long enough as well
                report(timed.timer_name(), error)
