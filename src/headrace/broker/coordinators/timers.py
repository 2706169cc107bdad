"""The timers of one shard, by name. They end with the shard, and their operations are run by its host."""

from __future__ import annotations

from collections.abc import Callable

from headrace.coordinators.shard import TimerOperation
from headrace.core.timers import Timed, TimerQueue


class ShardTimers:
    """Invariant: `_timers` holds exactly the timers that are scheduled."""

    __slots__ = ("_on_due", "_queue", "_timers")

    def __init__(self, queue: TimerQueue, on_due: Callable[[object, TimerOperation], None]) -> None:
        self._queue = queue
        self._on_due = on_due
        self._timers: dict[object, _ShardTimer] = {}

    def __len__(self) -> int:
        return len(self._timers)

    def set(self, name: object, delay_ms: float, operation: TimerOperation) -> None:
        timer = self._timers.get(name)
        if timer is None:
            timer = self._timers[name] = _ShardTimer(self, name)
        timer.operation = operation
        self._queue.schedule(timer, delay_ms / 1000)

    def cancel(self, name: object) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            self._queue.cancel(timer)

    def stop(self) -> None:
        timers, self._timers = self._timers, {}
        for timer in timers.values():
            self._queue.cancel(timer)

    def fire(self, timer: _ShardTimer) -> None:
        del self._timers[timer.name]
        assert timer.operation is not None
        self._on_due(timer.name, timer.operation)


class _ShardTimer(Timed):
    __slots__ = ("_timers", "name", "operation")

    def __init__(self, timers: ShardTimers, name: object) -> None:
        super().__init__()
        self._timers = timers
        self.name = name
        self.operation: TimerOperation | None = None

    def on_time(self) -> None:
        self._timers.fire(self)

    def timer_name(self) -> str:
        return f"the timer {self.name!r} of a coordinator"
