"""How handlers ask the transaction coordinator."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from headrace.broker.errors import code_of
from headrace.broker.promise import Promise
from headrace.coordinators.shard import Operation
from headrace.protocol.error_codes import ErrorCode
from headrace.transactions.ending import NeedsProducerId
from headrace.transactions.shard import TransactionShard

if TYPE_CHECKING:
    from headrace.broker.broker import Broker


_OF_A_PARTITION: Final = {
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


class TransactionRequests:
    """Requests that may take a new producer id, which may have to come from the controller first."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._fetching: dict[asyncio.Task[None], None] = {}

    def ask(
        self, transactional_id: str, operation: Callable[[int | None], Operation[TransactionShard]]
    ) -> Promise[Any]:
        """Ask without a producer id, and again with one if it is needed. Most requests need none."""
        answer: Promise[Any] = Promise()
        asked = self._broker.coordinators.transactions.ask(transactional_id, operation(None))
        asked.listen(lambda decided: self._on_decided(transactional_id, operation, decided, answer))
        return answer

    def _on_decided(
        self,
        transactional_id: str,
        operation: Callable[[int | None], Operation[TransactionShard]],
        decided: Promise[Any],
        answer: Promise[Any],
    ) -> None:
        if decided.error is not None:
            answer.reject(decided.error)
        elif isinstance(decided.result(), NeedsProducerId):
            fetching = self._broker.loop.create_task(self._ask_with_id(transactional_id, operation, answer))
            self._fetching[fetching] = None
            fetching.add_done_callback(lambda done: self._fetching.pop(done, None))
        else:
            answer.resolve(decided.result())

    async def _ask_with_id(
        self,
        transactional_id: str,
        operation: Callable[[int | None], Operation[TransactionShard]],
        answer: Promise[Any],
    ) -> None:
        try:
            producer_id = await self._broker.producer_ids.next()
            asked = self._broker.coordinators.transactions.ask(transactional_id, operation(producer_id))
            answer.resolve(await asked)
        except Exception as error:
            answer.reject(error)

    def stop(self) -> None:
        for fetching in list(self._fetching):
            fetching.cancel()


def told_to(version: int, knows_fencing_from: int, error: Exception) -> ErrorCode:
    """A client that is older than the word for it hears that its epoch is not valid, which it is not. What
    the coordinator's partition cannot do now becomes what a coordinator cannot do."""
    code = code_of(error)
    if code is ErrorCode.PRODUCER_FENCED and version < knows_fencing_from:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return _OF_A_PARTITION.get(code, code)
