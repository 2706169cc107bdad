"""Which transactional ids a tool asked for, and what it is shown of each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from headrace.transactions.states import BY_SHOWN, TransactionState
from headrace.transactions.transaction import Transaction


class Filter(NamedTuple):
    states: frozenset[TransactionState] = frozenset()
    """Empty, like the others: all of them."""
    producer_ids: frozenset[int] = frozenset()
    longer_than_ms: int = -1
    """Open for longer than this; negative for all."""

    def fits(self, transaction: Transaction, now_ms: int) -> bool:
        if self.producer_ids and transaction.producer_id not in self.producer_ids:
            return False
        if self.states and transaction.state not in self.states:
            return False
        return self.longer_than_ms < 0 or now_ms - transaction.start_ms > self.longer_than_ms


def parse_filter(
    states: Iterable[str], producer_ids: Iterable[int], longer_than_ms: int
) -> tuple[Filter, list[str]]:
    """The filter, and the names of states that do not exist."""
    known, unknown = [], []
    for name in states:
        state = BY_SHOWN.get(name)
        if state is None:
            unknown.append(name)
        else:
            known.append(state)
    if unknown and not known:
        known = [TransactionState.DEAD]  # only unknown states were asked for, and nothing is in one
    return Filter(frozenset(known), frozenset(producer_ids), longer_than_ms), unknown
