"""One direction of a simulated connection: frames arrive whole, in order, each once, or not at all.

That is what TCP gives, so the trouble is elsewhere: a frame may be late, frames behind it wait with it, and
what was sent before a connection was given up may still arrive afterwards.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.testing.simulation.virtual_loop import ProcessLoop

if TYPE_CHECKING:
    from headrace.testing.simulation.network import SimulatedNetwork
    from headrace.testing.simulation.virtual_time import SimulatedHandle

Segment = bytes | None
"""A frame, or the end of the connection."""


class Stream:
    """`deliver` is called in the process that receives, once the segment has come through."""

    __slots__ = (
        "_deliver",
        "_last_due",
        "_loop",
        "_network",
        "_queue",
        "_timer",
        "is_stalled",
        "source",
        "target",
    )

    def __init__(
        self,
        network: SimulatedNetwork,
        source: str,
        target: str,
        loop: ProcessLoop,
        deliver: Callable[[Segment], None],
    ) -> None:
        self._network = network
        self.source = source
        self.target = target
        self._loop = loop
        self._deliver = deliver
        self._queue: deque[tuple[float, Segment]] = deque()
        self._last_due = 0.0
        self._timer: SimulatedHandle | None = None
        self.is_stalled = False
        """The head is due and cannot come through: the path is cut, or the host is down."""

    def push(self, segment: Segment) -> None:
        network = self._network
        due = network.scheduler.now + network.delay(self.source, self.target)
        if due < self._last_due:
            due = self._last_due
        self._last_due = due
        self._queue.append((due, segment))
        if self._timer is None and not self.is_stalled:
            self._arm()

    def postpone(self, seconds: float) -> None:
        """Everything that is under way comes that much later."""
        self._queue = deque((due + seconds, segment) for due, segment in self._queue)
        self._last_due += seconds

    def drop(self) -> None:
        """What is under way never arrives."""
        self._queue.clear()

    def resume(self, delay: float) -> None:
        """The path is whole again: the kernel sends again what was not acknowledged."""
        if self.is_stalled:
            self.is_stalled = False
            if self._queue:
                due, segment = self._queue[0]
                self._queue[0] = (max(due, self._network.scheduler.now + delay), segment)
                self._arm()

    def _arm(self) -> None:
        due = self._queue[0][0]
        self._timer = self._loop.call_later(max(0.0, due - self._network.scheduler.now), self._on_due)

    def _on_due(self) -> None:
        self._timer = None
        queue, now = self._queue, self._network.scheduler.now
        while queue and queue[0][0] <= now:
            if not self._network.passes(self.source, self.target):
                self.is_stalled = True
                return
            segment = queue.popleft()[1]
            if segment is not None:
                self._network.on_frame(self, segment)
            self._deliver(segment)
        if queue:
            self._arm()
