"""A coordinator in memory: a shard, and the log that a failover replays. Every step checks that the live
state is the one that the log gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.coordinators.codec import decode, encode
from headrace.coordinators.decision import Decision
from headrace.coordinators.shard import TimerOperation
from headrace.core.errors import HeadraceError
from headrace.protocol.records import NewRecord, Record
from headrace.transactions.ending import EndRequest, Markers, NeedsProducerId
from headrace.transactions.initialising import InitRequest
from headrace.transactions.records import KINDS, record_of
from headrace.transactions.shard import Initialised, TransactionSettings, TransactionShard
from headrace.transactions.states import TransactionState
from headrace.transactions.transaction import Producer, Transaction

ID = "payments"
TIMEOUT_MS = 60_000
ORDERS = ("orders", 0)


class FakeTimers:
    def __init__(self) -> None:
        self.due: dict[object, tuple[float, TimerOperation]] = {}

    def set(self, name: object, delay_ms: float, operation: TimerOperation) -> None:
        self.due[name] = (delay_ms, operation)

    def cancel(self, name: object) -> None:
        self.due.pop(name, None)


class MemoryCoordinator:
    def __init__(self, *, level: int = 2, settings: TransactionSettings | None = None) -> None:
        self.level = level
        self.settings = settings or TransactionSettings()
        self.now_ms = 1_000_000
        self.log: list[NewRecord] = []
        self.markers: list[Markers] = []
        """Effects that were not carried out yet."""
        self.next_producer_id = 1_000
        self.fail_over()

    # --- the log -----------------------------------------------------------------------------------------

    def fail_over(self) -> None:
        """Another broker takes over. What was on its way is begun again by it."""
        self.shard, self.timers = self._replayed()
        self.markers.clear()
        self.decide(lambda: self.shard.on_loaded(self.now_ms))

    def _replayed(self) -> tuple[TransactionShard, FakeTimers]:
        timers = FakeTimers()
        shard = TransactionShard(timers, self.settings, lambda: self.level)
        for offset, new in enumerate(self.log):
            record = decode(Record(offset, new.timestamp, new.key, new.value, ()), KINDS)
            assert record is not None
            shard.replay(record, offset, new.timestamp)
        return shard, timers

    def decide(self, operation: Callable[[], Decision[Any]]) -> Any:
        before = dict(self.shard.transactions)
        try:
            decision = operation()
        except HeadraceError:
            assert dict(self.shard.transactions) == before, "a refusal changed the state"
            raise
        assert dict(self.shard.transactions) == before, "a decision changed the state"
        for record in decision.records:
            self.log.append(encode(record, self.now_ms))
            replayed = decode(
                Record(len(self.log) - 1, self.now_ms, self.log[-1].key, self.log[-1].value, ()), KINDS
            )
            assert replayed is not None
            self.shard.replay(record, len(self.log) - 1, self.now_ms)
        for effect in decision.effects:
            assert isinstance(effect, Markers)
            self.markers.append(effect)
        assert self._replayed()[0].transactions == self.shard.transactions
        if isinstance(decision.response, HeadraceError):
            raise decision.response
        return decision.response

    def set_state(self, transaction: Transaction) -> None:
        """As if many transactions had led to it."""
        self.decide(lambda: Decision([record_of(transaction, self.level)], None))

    # --- what clients ask --------------------------------------------------------------------------------

    @property
    def transaction(self) -> Transaction:
        return self.shard.transactions[ID]

    @property
    def state(self) -> TransactionState:
        return self.transaction.state

    def initialise(
        self,
        expected: Producer | None = None,
        *,
        timeout_ms: int = TIMEOUT_MS,
        two_phase: bool = False,
        keep: bool = False,
        name: str = ID,
    ) -> Initialised:
        request = InitRequest(name, timeout_ms, expected, keep)
        answer = self._with_id(
            lambda new_id: self.shard.initialise(
                request._replace(new_producer_id=new_id), self.now_ms, two_phase=two_phase
            )
        )
        assert isinstance(answer, Initialised)
        return answer

    def producer(self, expected: Producer | None = None, **options: Any) -> Producer:
        return self.initialise(expected, **options).producer

    def add(self, producer: Producer, *partitions: tuple[str, int], version: int = 0, name: str = ID) -> None:
        self.decide(
            lambda: self.shard.add_partitions(
                name, producer, partitions or (ORDERS,), self.now_ms, client_version=version
            )
        )

    def missing(self, producer: Producer, *partitions: tuple[str, int]) -> list[tuple[str, int]]:
        found = self.decide(lambda: self.shard.verify_partitions(ID, producer, partitions))
        assert isinstance(found, list)
        return found

    def end(self, producer: Producer, *, commit: bool, version: int = 5, name: str = ID) -> Producer:
        request = EndRequest(name, producer, commit, version >= 5)
        answer = self._with_id(
            lambda new_id: self.shard.end(request._replace(new_producer_id=new_id), self.now_ms)
        )
        assert isinstance(answer, Producer)
        return answer

    def _with_id(self, operation: Callable[[int | None], Decision[Any]]) -> Any:
        answer = self.decide(lambda: operation(None))
        if isinstance(answer, NeedsProducerId):
            self.next_producer_id += 1
            answer = self.decide(lambda: operation(self.next_producer_id))
        return answer

    # --- what the shell does -----------------------------------------------------------------------------

    def write_markers(self) -> list[Markers]:
        """All markers that are due are written, and the transactions completed."""
        written, self.markers = self.markers, []
        for each in written:
            self._complete(each)
        return written

    def _complete(self, markers: Markers) -> None:
        self.decide(lambda: self.shard.complete(markers.transactional_id, markers.producer, self.now_ms))

    def pass_time(self, milliseconds: int) -> None:
        self.now_ms += milliseconds

    def fire(self, name: str) -> None:
        _, operation = self.timers.due.pop(name)
        self.decide(lambda: operation(self.now_ms))
