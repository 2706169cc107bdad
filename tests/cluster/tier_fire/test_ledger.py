"""The judge sees what it must."""

from __future__ import annotations

import pytest

from tests.cluster.tier_fire.ledger import Ledger, Sent, parse, value_of

KEY = ("orders", 0)


def ledger(*sent: Sent | None) -> Ledger:
    found = Ledger()
    for offset, each in enumerate(sent):
        if each is not None:
            found.on_read(KEY, offset, value_of(each))
    return found


def test_what_is_whole_is_whole() -> None:
    judge = ledger(Sent(1, 0), Sent(2, 0), Sent(1, 1))
    judge.on_acknowledged(KEY, 1, Sent(2, 0))
    judge.judge_contiguous([KEY], {1: 2, 2: 1})
    assert not judge.anomalies


@pytest.mark.parametrize(
    ("rows", "sent", "said"),
    [
        ([Sent(1, 0), None, Sent(1, 1)], 2, "nothing at 1"),
        ([Sent(1, 0), Sent(1, 0)], 1, "twice"),
        ([Sent(1, 0)], 2, "is lost"),
        ([Sent(1, 1), Sent(1, 0)], 2, "after 1"),
        ([Sent(1, 0), Sent(1, 1)], 1, "did not send"),
    ],
)
def test_what_must_not_be_is_seen(rows: list[Sent | None], sent: int, said: str) -> None:
    judge = ledger(*rows)
    judge.judge_contiguous([KEY], {1: sent})
    assert any(said in each for each in judge.anomalies), judge.anomalies


def test_an_offset_never_changes_and_every_byte_counts() -> None:
    judge = ledger(Sent(1, 0))
    judge.on_read(KEY, 0, value_of(Sent(1, 1)))
    assert "was there" in judge.anomalies[0]
    damaged = bytearray(value_of(Sent(1, 0)))
    damaged[-1] ^= 1
    assert parse(bytes(damaged)) is None
    assert parse(None) is None


@pytest.mark.parametrize(
    ("numbers", "committed", "said"),
    [
        ([0, 1], True, ""),
        ([0], True, "1 of 2 are there"),
        ([1], False, "is aborted"),
        ([1], None, "is torn"),
        ([0, 1, 1], True, "2 times"),
        ([1, 0], True, "after 1"),
    ],
)
def test_transactions_are_whole(numbers: list[int], committed: bool | None, said: str) -> None:
    judge = Ledger()
    rows = [(offset, Sent(9, number)) for offset, number in enumerate(numbers)]
    judge.judge_transactions({KEY: rows}, {0: (range(2), committed)})
    assert any(said in each for each in judge.anomalies) if said else not judge.anomalies
