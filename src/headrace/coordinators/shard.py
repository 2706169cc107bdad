"""The seam between the pure coordinators and the runtime that keeps them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from headrace.coordinators.decision import CoordinatorRecord, Decision
from headrace.core.completion import Completion

S_contra = TypeVar("S_contra", bound="Shard", contravariant=True)


class Shard(Protocol):
    """The state of one partition of an internal topic, from the first record on. One exists while this broker
    leads that partition, and is thrown away when it no longer does."""

    def replay(self, record: CoordinatorRecord, offset: int, timestamp_ms: int) -> None:
        """Change the state by one record that is in the log."""
        ...

    def replay_transactional(
        self, record: CoordinatorRecord, offset: int, timestamp_ms: int, producer_id: int
    ) -> None:
        """The same for a record that a transaction wrote, and that counts only if it is committed."""
        ...

    def replay_end(self, producer_id: int, producer_epoch: int, *, committed: bool) -> None:
        """A marker in this partition ended a producer's transaction."""
        ...

    def on_loaded(self, now_ms: int) -> Decision[None]:
        """Everything is replayed, and this broker decides from now on: arm the timers."""
        ...


TimerOperation = Callable[[int], Decision[Any]]
"""Told the time at which it runs, which may be later than it was due."""


class Timers(Protocol):
    """Given to a shard. A timer fires once, as an operation of its own; what it decides is written like any
    other decision. All timers end with the shard."""

    def set(self, name: object, delay_ms: float, operation: TimerOperation) -> None:
        """Arm, or arm again: the earlier one of the same name is forgotten. Moving one later is cheap."""
        ...

    def cancel(self, name: object) -> None: ...


class Operation(Protocol[S_contra]):
    """What a handler asks of a shard. Runs to its end at once; raises a HeadraceError to refuse."""

    def __call__(self, shard: S_contra, completion: Completion[Any], now_ms: int) -> Decision[Any]: ...
