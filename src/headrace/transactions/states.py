"""The states of a transactional id, by the numbers that are stored and the names that tools show."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class TransactionState(IntEnum):
    EMPTY = 0
    """A producer has the id, and has not begun a transaction with its epoch."""
    ONGOING = 1
    PREPARE_COMMIT = 2
    """Decided, for good. The markers are on their way."""
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    """Every partition has its marker."""
    COMPLETE_ABORT = 5
    DEAD = 6
    """Kafka's name for an id that is being forgotten. Never stored: a tombstone is."""
    PREPARE_EPOCH_FENCE = 7
    """Kafka's name for an abort by the coordinator, before it is written. Never stored either."""

    @property
    def shown(self) -> str:
        return self.name.title().replace("_", "")

    @property
    def is_prepared(self) -> bool:
        return self is TransactionState.PREPARE_COMMIT or self is TransactionState.PREPARE_ABORT

    @property
    def is_at_rest(self) -> bool:
        """No transaction is open, and none is being ended."""
        return self in _AT_REST


_AT_REST: Final = (
    TransactionState.EMPTY,
    TransactionState.COMPLETE_COMMIT,
    TransactionState.COMPLETE_ABORT,
)

BY_SHOWN: Final = {state.shown: state for state in TransactionState}
