"""What a worker needs of whoever runs connectors. `spark/connect/` has it; the worker knows no Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple, Protocol

from headrace.connect.api import Described
from headrace.connect.position import Position
from headrace.core.ids import TopicPartition


class Run(NamedTuple):
    """One connector to be run."""

    name: str
    described: Described
    properties: Mapping[str, str]
    """As configured: secrets are references still."""


class Condition(Enum):
    RUNNING = "running"
    FAILED = "failed"
    """It does not go on by itself."""
    RETRYING = "retrying"
    """It failed, and is tried again at the time that the trace tells."""


class Report(NamedTuple):
    """How a connector is now. Without secrets."""

    name: str
    condition: Condition
    trace: str | None = None
    """Why it has failed; of one that runs, what of it stands still."""
    tasks: tuple[Mapping[str, str], ...] | None = None
    """The configurations of its tasks, where they are known for the first time."""
    topics: frozenset[str] = frozenset()
    """Topics that it has been seen to use."""


class Runner(Protocol):
    """Its methods are called on the worker's event loop and do not block it."""

    def start(self, run: Run, report: Callable[[Report], None]) -> None:
        """`report` is called from any thread."""

    async def stop(self, name: str) -> None:
        """When this returns, nothing of the connector runs here any more."""

    async def abandon(self, name: str) -> None:
        """Somebody else runs it by now: end without waiting for what is under way, which is fenced."""

    async def source_position(self, name: str) -> Position: ...

    async def set_source_position(self, name: str, position: Position) -> None:
        """Whoever ran it before is fenced, even if it only seemed to be stopped."""

    async def job_position(self, run: Run) -> Position:
        """Of a `Job`, which keeps it itself."""

    async def sink_position(self, run: Run) -> Mapping[TopicPartition, int] | None:
        """What the target says itself; None if the group's offsets count."""

    async def set_sink_position(self, run: Run, ends: Mapping[TopicPartition, int | None]) -> None:
        """Tells a target that has positions of its own; the group's offsets are the worker's part."""

    async def failed(self) -> None:
        """Returns never, or raises where nothing can run here any more."""

    async def close(self) -> None: ...
