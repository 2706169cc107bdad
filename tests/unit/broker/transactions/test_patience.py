"""A request that comes while markers are on their way waits for them, and not for long."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.transactions import patient_requests
from headrace.broker.transactions.patient_requests import PatientRequests
from headrace.core.completion import Completion
from headrace.core.errors import ConcurrentTransactions, InvalidTransactionState
from headrace.core.timers import TimerQueue

BUSY = ConcurrentTransactions("markers are on their way")


class Coordinator:
    """Answers in turn: an exception refuses, unless it is wrapped as a value. The last one stays."""

    def __init__(self, *outcomes: Any) -> None:
        self.outcomes = list(outcomes)
        self.asked = 0
        self.overs: list[Completion[None]] = []
        self.is_sending = True
        self.exists = True
        loop = asyncio.get_running_loop()
        runtime: Any = SimpleNamespace(loop=loop, timers=TimerQueue(loop))
        itself: Any = self
        self.patient = PatientRequests(runtime, coordinator=itself, ends=itself)

    def ask(self, transactional_id: str, operation: Any, *, writes: bool) -> Completion[Any]:
        self.asked += 1
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        completion: Completion[Any] = Completion()
        if isinstance(outcome, tuple):
            completion.complete(outcome[0])
        elif isinstance(outcome, Exception):
            completion.fail(outcome)
        else:
            completion.complete(outcome)
        return completion

    def partition_for(self, transactional_id: str) -> int:
        return 7

    def when_over(self, partition: int, transactional_id: str) -> Completion[None] | None:
        assert (partition, transactional_id) == (7, "id")
        if not self.is_sending:
            return None
        self.overs.append(Completion())
        return self.overs[-1]

    def begin(self) -> Completion[Any]:
        return self.patient.ask("id", lambda *_: pytest.fail("the coordinator is a stub"))


@pytest.mark.parametrize("busy", [BUSY, (BUSY,)], ids=["refused", "answered"])
async def test_it_is_asked_again_when_they_have_arrived(busy: Any) -> None:
    coordinator = Coordinator(busy, "done")
    answer = coordinator.begin()
    assert not answer.is_done
    coordinator.overs[0].complete(None)
    assert answer.result() == "done"
    assert coordinator.asked == 2


async def test_it_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patient_requests, "PATIENCE_SECONDS", 0.01)
    coordinator = Coordinator(BUSY)
    async with asyncio.timeout(15):
        with pytest.raises(ConcurrentTransactions):
            await coordinator.begin()
    assert len(coordinator.overs) == 1


async def test_what_nothing_is_sent_for_is_not_waited_for() -> None:
    coordinator = Coordinator(BUSY)
    coordinator.is_sending = False
    assert isinstance(coordinator.begin().error, ConcurrentTransactions)


async def test_other_refusals_are_told_at_once() -> None:
    coordinator = Coordinator(InvalidTransactionState("no"))
    assert isinstance(coordinator.begin().error, InvalidTransactionState)
    assert not coordinator.overs
