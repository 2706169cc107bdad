"""How handlers ask the transaction coordinator."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from headrace.broker.coordinators.coordinator import Coordinator
from headrace.broker.coordinators.producer_ids import ProducerIds
from headrace.broker.coordinators.refusals import told_as
from headrace.broker.requests.errors import code_of
from headrace.broker.runtime.runtime import Runtime
from headrace.broker.transactions.marker_manager import TransactionMarkerManager
from headrace.coordinators.shard import Operation
from headrace.core.completion import Completion
from headrace.core.errors import ConcurrentTransactions
from headrace.core.tasks import spawn
from headrace.protocol.error_codes import ErrorCode
from headrace.transactions.ending import NeedsProducerId
from headrace.transactions.shard import TransactionShard

PATIENCE_SECONDS = 0.25  # not final: tests are less patient


class _Patient:
    """One request, asked again when the markers that are in its way have arrived."""

    __slots__ = ("_deadline", "_operation", "_owner", "_transactional_id", "_writes", "answer")

    def __init__(
        self,
        owner: PatientRequests,
        transactional_id: str,
        operation: Operation[TransactionShard],
        writes: bool,
    ) -> None:
        self._owner = owner
        self._transactional_id = transactional_id
        self._operation = operation
        self._writes = writes
        self._deadline = owner.runtime.loop.time() + PATIENCE_SECONDS
        self.answer: Completion[Any] = Completion()
        self._ask()

    def _ask(self) -> None:
        asked = self._owner.coordinator.ask(self._transactional_id, self._operation, writes=self._writes)
        asked.when_done(self._on_decided)

    def _on_decided(self, decided: Completion[Any]) -> None:
        outcome = decided.error or decided.result()
        if isinstance(outcome, ConcurrentTransactions) and self._waits():
            return
        if decided.error is not None:
            self.answer.fail(decided.error)
        else:
            self.answer.complete(outcome)

    def _waits(self) -> bool:
        runtime, coordinator = self._owner.runtime, self._owner.coordinator
        left = self._deadline - runtime.loop.time()
        if left <= 0 or not coordinator.exists:
            return False
        partition = coordinator.partition_for(self._transactional_id)
        over = self._owner.ends.when_over(partition, self._transactional_id)
        if over is None:
            return False
        timer = runtime.timers.after(left, "a wait for a transaction", lambda: over.complete(None))

        def again(_: Completion[None]) -> None:
            timer.cancel()
            self._ask()

        over.when_done(again)
        return True


class PatientRequests:
    """Asks the transaction coordinator. A request that comes while the last transaction's markers are on
    their way waits for them a moment: CONCURRENT_TRANSACTIONS would send the client away for 20 to 100 ms."""

    def __init__(
        self, runtime: Runtime, coordinator: Coordinator[TransactionShard], ends: TransactionMarkerManager
    ) -> None:
        self.runtime = runtime
        self.coordinator = coordinator
        self.ends = ends

    def ask(
        self, transactional_id: str, operation: Operation[TransactionShard], *, writes: bool = True
    ) -> Completion[Any]:
        """As `ask` of the coordinator."""
        return _Patient(self, transactional_id, operation, writes).answer


class TransactionRequests:
    """Requests that may take a new producer id, which may have to come from the controller first."""

    def __init__(self, runtime: Runtime, patient: PatientRequests, producer_ids: ProducerIds) -> None:
        self._runtime = runtime
        self._patient = patient
        self._producer_ids = producer_ids
        self._fetching: dict[asyncio.Task[None], None] = {}

    def ask(
        self, transactional_id: str, operation: Callable[[int | None], Operation[TransactionShard]]
    ) -> Completion[Any]:
        """Ask without a producer id, and again with one if it is needed. Most requests need none."""
        answer: Completion[Any] = Completion()
        asked = self._patient.ask(transactional_id, operation(None))
        asked.when_done(lambda decided: self._on_decided(transactional_id, operation, decided, answer))
        return answer

    def _on_decided(
        self,
        transactional_id: str,
        operation: Callable[[int | None], Operation[TransactionShard]],
        decided: Completion[Any],
        answer: Completion[Any],
    ) -> None:
        if decided.error is not None:
            answer.fail(decided.error)
        elif isinstance(decided.result(), NeedsProducerId):
            fetching = spawn(
                f"a producer id for {transactional_id}",
                self._ask_with_id(transactional_id, operation, answer),
                self._runtime.loop,
            )
            self._fetching[fetching] = None
            fetching.add_done_callback(lambda done: self._fetching.pop(done, None))
        else:
            answer.complete(decided.result())

    async def _ask_with_id(
        self,
        transactional_id: str,
        operation: Callable[[int | None], Operation[TransactionShard]],
        answer: Completion[Any],
    ) -> None:
        try:
            producer_id = await self._producer_ids.next()
            answer.complete(await self._patient.ask(transactional_id, operation(producer_id)))
        except Exception as error:
            answer.fail(error)

    def stop(self) -> None:
        for fetching in list(self._fetching):
            fetching.cancel()


def told_to(version: int, knows_fencing_from: int, error: Exception) -> ErrorCode:
    """A client that is older than the word for it hears that its epoch is not valid, which it is not. What
    the coordinator's partition cannot do now becomes what a coordinator cannot do."""
    code = code_of(error)
    if code is ErrorCode.PRODUCER_FENCED and version < knows_fencing_from:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return told_as(code)
