"""The names of what a log must not do."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Kind(Enum):
    INCONSISTENT_OFFSET = "inconsistent offset"
    """One offset of a key has two values."""
    DUPLICATE = "duplicate"
    """One value stands at two offsets of a key."""
    LOST_WRITE = "lost write"
    """An acknowledged value below the highest that was read was never read."""
    UNSEEN = "unseen"
    """An acknowledged value is in no poll, after everything was read to the end."""
    ABORTED_READ = "aborted read"
    """A value was read whose writer was told that it is certainly not written (G1a)."""
    INVENTED_READ = "invented read"
    """A value was read that nobody wrote."""
    PRECOMMITTED_READ = "precommitted read"
    """A transaction polled what itself had sent."""
    POLL_SKIP = "skip inside a poll"
    POLL_STEP_BACK = "step back inside a poll"
    SKIP = "skip between polls"
    STEP_BACK = "step back between polls"
    SEND_ORDER_INSIDE = "sends out of order inside an operation"
    SEND_ORDER = "sends out of order between operations"
    READ_CYCLE = "read cycle"
    """Transactions read from each other in a circle (G1c)."""
    CONSUMED_TWICE = "consumed twice"
    """Two transactions of one group polled the same record, and both were committed with their offsets."""


class Anomaly(NamedTuple):
    kind: Kind
    key: str
    detail: str
    operations: tuple[int, ...] = ()

    def __str__(self) -> str:
        where = f" (operations {', '.join(map(str, self.operations))})" if self.operations else ""
        return f"{self.kind.value}: {self.key} {self.detail}{where}"
