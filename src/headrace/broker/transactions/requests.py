"""How handlers ask the transaction coordinator."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.broker.coordinators.internal_topics import TRANSACTIONS_TOPIC
from headrace.broker.coordinators.refusals import told_as
from headrace.broker.errors import code_of
from headrace.coordinators.shard import Operation
from headrace.core.completion import Completion
from headrace.core.errors import ConcurrentTransactions
from headrace.core.tasks import spawn
from headrace.protocol.error_codes import ErrorCode
from headrace.transactions.ending import NeedsProducerId
from headrace.transactions.shard import TransactionShard

if TYPE_CHECKING:
    from headrace.broker.broker import Broker


PATIENCE_SECONDS = 0.25  # not final: tests are less patient


class _Patient:
    """One request, asked again when the markers that are in its way have arrived."""

    __slots__ = ("_broker", "_deadline", "_operation", "_transactional_id", "_writes", "answer")

    def __init__(
        self, broker: Broker, transactional_id: str, operation: Operation[TransactionShard], writes: bool
    ) -> None:
        self._broker = broker
        self._transactional_id = transactional_id
        self._operation = operation
        self._writes = writes
        self._deadline = broker.loop.time() + PATIENCE_SECONDS
        self.answer: Completion[Any] = Completion()
        self._ask()

    def _ask(self) -> None:
        coordinator = self._broker.coordinators.transactions
        coordinator.ask(self._transactional_id, self._operation, writes=self._writes).when_done(
            self._on_decided
        )

    def _on_decided(self, decided: Completion[Any]) -> None:
        outcome = decided.error or decided.result()
        if isinstance(outcome, ConcurrentTransactions) and self._waits():
            return
        if decided.error is not None:
            self.answer.fail(decided.error)
        else:
            self.answer.complete(outcome)

    def _waits(self) -> bool:
        loop, coordinators = self._broker.loop, self._broker.coordinators
        left = self._deadline - loop.time()
        if left <= 0 or self._broker.image.topic(TRANSACTIONS_TOPIC) is None:
            return False
        partition = coordinators.transactions.partition_for(self._transactional_id)
        over = coordinators.transaction_ends.when_over(partition, self._transactional_id)
        if over is None:
            return False
        timer = self._broker.timers.after(left, "a wait for a transaction", lambda: over.complete(None))

        def again(_: Completion[None]) -> None:
            timer.cancel()
            self._ask()

        over.when_done(again)
        return True


def ask_patiently(
    broker: Broker, transactional_id: str, operation: Operation[TransactionShard], *, writes: bool = True
) -> Completion[Any]:
    """As `ask` of the coordinator, but a request that comes while the last transaction's markers are on their
    way waits for them a moment. CONCURRENT_TRANSACTIONS would send the client away for 20 to 100 ms."""
    return _Patient(broker, transactional_id, operation, writes).answer


class TransactionRequests:
    """Requests that may take a new producer id, which may have to come from the controller first."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._fetching: dict[asyncio.Task[None], None] = {}

    def ask(
        self, transactional_id: str, operation: Callable[[int | None], Operation[TransactionShard]]
    ) -> Completion[Any]:
        """Ask without a producer id, and again with one if it is needed. Most requests need none."""
        answer: Completion[Any] = Completion()
        asked = ask_patiently(self._broker, transactional_id, operation(None))
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
                self._broker.loop,
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
            producer_id = await self._broker.producer_ids.next()
            answer.complete(await ask_patiently(self._broker, transactional_id, operation(producer_id)))
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
