"""When a transaction has lasted too long, also by a clock that jumps."""

from __future__ import annotations

import pytest

from headrace.transactions.states import TransactionState
from headrace.transactions.transaction import FOREVER_MS, Transaction

TIMEOUT = 10_000
START = 1_000_000
DAY = 86_400_000


def ongoing(timeout_ms: int = TIMEOUT) -> Transaction:
    return Transaction("t", 1, 0, timeout_ms, START, TransactionState.ONGOING, start_ms=START)


@pytest.mark.parametrize(
    ("now_ms", "overdue"),
    [
        (START, False),
        (START + TIMEOUT, False),
        (START + TIMEOUT + 1, True),
        (START - TIMEOUT, False),
        (START - TIMEOUT - 1, True),
        (START - DAY, True),
    ],
)
def test_a_transaction_that_began_too_far_behind_or_ahead_is_overdue(now_ms: int, overdue: bool) -> None:
    assert ongoing().is_overdue(now_ms) is overdue


def test_one_that_may_last_for_ever_is_never_overdue() -> None:
    assert not ongoing(FOREVER_MS).is_overdue(START + DAY)
    assert not ongoing(FOREVER_MS).is_overdue(START - DAY)


def test_one_that_is_not_open_is_never_overdue() -> None:
    assert not ongoing()._replace(state=TransactionState.EMPTY).is_overdue(START + DAY)
