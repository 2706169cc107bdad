"""All transactional ids that fall into one partition of __transaction_state.

Every operation decides on the state as it is and returns the record of the next one. What a prepared
transaction still needs, its markers, is an effect: it is begun when the decision is committed, by whoever
leads the partition then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from headrace.coordinators.decision import CoordinatorRecord, Decision
from headrace.coordinators.shard import Timers
from headrace.core.errors import (
    ConcurrentTransactions,
    HeadraceError,
    InvalidTransactionTimeout,
    TransactionalIdNotAuthorized,
    TransactionalIdNotFound,
    UnsupportedVersion,
)
from headrace.core.memory import MemoryShare
from headrace.protocol.stored.transaction_log_key import TransactionLogKey
from headrace.protocol.stored.transaction_log_value import TransactionLogValue
from headrace.transactions import ending, membership
from headrace.transactions.ending import EndRequest, NeedsProducerId, Repeated
from headrace.transactions.initialising import InitRequest, InTheWay, Known, initialise
from headrace.transactions.listing import Filter
from headrace.transactions.membership import Named
from headrace.transactions.records import record_of, tombstone, transaction_of
from headrace.transactions.transaction import FOREVER_MS, NO_EPOCH, Producer, Transaction

ABORTS_AT_ONCE = 200  # not final, and the next: tests have fewer transactions
"""Transactions that one decision aborts, so that its batch does not grow without bounds."""
EXPIRED_AT_ONCE = 2_000
ID_BYTES: Final = 1_000
"""What a transactional id takes in memory, with its places in tables, besides its name and its partitions."""
PARTITION_BYTES: Final = 50


class TransactionSettings(NamedTuple):
    max_timeout_ms: int = 900_000
    id_expiration_ms: int = 604_800_000
    abort_check_interval_ms: int = 10_000
    expiry_check_interval_ms: int = 3_600_000
    two_phase_commit: bool = False


class Initialised(NamedTuple):
    producer: Producer
    ongoing: Producer | None = None
    """Of a transaction that was kept: who wrote it."""


class TransactionShard:
    """Implements coordinators.shard.Shard. Invariant: `_transactions` is what the records say, in order."""

    __slots__ = ("_last_epochs", "_level", "_memory", "_settings", "_timers", "_transactions")

    def __init__(
        self,
        timers: Timers,
        settings: TransactionSettings,
        level: Callable[[], int],
        memory: MemoryShare | None = None,
    ) -> None:
        """`level`: the finalised transaction.version, now. `memory` is told what was loaded."""
        self._memory = memory
        self._timers = timers
        self._settings = settings
        self._level = level
        self._transactions: dict[str, Transaction] = {}
        self._last_epochs: dict[str, tuple[Producer, int]] = {}
        """By id: a producer and the epoch that it had before, by which a repeated request is known. Kafka's
        records have no place for it, so it ends with the leadership; then such a request is refused."""

    @property
    def transactions(self) -> Mapping[str, Transaction]:
        return self._transactions

    def size_bytes(self) -> int:
        """About what the state takes in memory."""
        return sum(
            ID_BYTES + len(name) + sum(PARTITION_BYTES * len(parts) for parts in each.partitions.values())
            for name, each in self._transactions.items()
        )

    # --- the only mutators -------------------------------------------------------------------------------

    def replay(self, record: CoordinatorRecord, offset: int, timestamp_ms: int) -> None:  # noqa: ARG002 - the shape of every shard
        key, value = record.key, record.value
        if not isinstance(key, TransactionLogKey):
            return
        transactional_id = key.transactional_id
        if isinstance(value, TransactionLogValue):
            try:
                self._transactions[transactional_id] = transaction_of(transactional_id, value)
            except ValueError:
                return  # a state of a later version, which only its own coordinator can go on with
        else:
            self._transactions.pop(transactional_id, None)
            self._last_epochs.pop(transactional_id, None)

    def replay_transactional(
        self, record: CoordinatorRecord, offset: int, timestamp_ms: int, producer_id: int
    ) -> None:
        """Nobody writes to this topic in a transaction."""

    def replay_end(self, producer_id: int, producer_epoch: int, *, committed: bool) -> None:
        """And so nobody ends one here."""

    def on_loaded(self, now_ms: int) -> Decision[None]:  # noqa: ARG002 - the shape of every shard
        """Go on with what the coordinator before this one had decided."""
        if self._memory is not None:
            self._memory.take(self.size_bytes())
        self._arm_abort(self._settings.abort_check_interval_ms)
        self._arm_expiry(self._settings.expiry_check_interval_ms)
        resumed = [ending.markers_of(each) for each in self._transactions.values() if each.state.is_prepared]
        return Decision(response=None, effects=resumed)

    # --- producers ---------------------------------------------------------------------------------------

    def initialise(
        self, request: InitRequest, now_ms: int, *, two_phase: bool = False
    ) -> Decision[Initialised | NeedsProducerId | HeadraceError]:
        request = self._granted(request, two_phase)
        name = request.transactional_id
        before = self._transactions.get(name)
        outcome = initialise(before, request, self._last_epoch(before), self._level(), now_ms)
        if isinstance(outcome, NeedsProducerId):
            return Decision(response=outcome, reveals=False)
        if isinstance(outcome, InTheWay):
            return Decision(
                [self._record(outcome.prepared)],
                ConcurrentTransactions("the open transaction is being aborted"),
                effects=[ending.markers_of(outcome.prepared)],
            )
        if isinstance(outcome, Known):
            return Decision(response=Initialised(outcome.producer, _ongoing(before)))
        taken = outcome.transaction
        self._last_epochs[name] = (taken.holder, outcome.last_epoch)
        return Decision([self._record(taken)], Initialised(taken.holder, _ongoing(taken)))

    def _granted(self, request: InitRequest, two_phase: bool) -> InitRequest:
        settings = self._settings
        if two_phase and not settings.two_phase_commit:
            raise TransactionalIdNotAuthorized("transaction.two.phase.commit.enable is false")
        if request.keeps_prepared and self._level() < ending.RAISES_EPOCH:
            raise UnsupportedVersion("a transaction is kept only with transaction.version 2")
        if two_phase:
            return request._replace(timeout_ms=FOREVER_MS)
        if not 0 < request.timeout_ms <= settings.max_timeout_ms:
            raise InvalidTransactionTimeout(
                f"a timeout of {request.timeout_ms} ms is not between 1 and {settings.max_timeout_ms}"
                " (transaction.max.timeout.ms)"
            )
        return request

    def _last_epoch(self, transaction: Transaction | None) -> int:
        if transaction is None:
            return NO_EPOCH
        producer, epoch = self._last_epochs.get(transaction.transactional_id, (None, NO_EPOCH))
        return epoch if producer == transaction.holder else NO_EPOCH

    # --- partitions --------------------------------------------------------------------------------------

    def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Iterable[Named],
        now_ms: int,
        *,
        client_version: int = 0,
    ) -> Decision[None]:
        before = self._transactions.get(transactional_id)
        after = membership.add(before, producer, partitions, client_version=client_version, now_ms=now_ms)
        return Decision([] if after is None else [self._record(after)], None)

    def verify_partitions(
        self, transactional_id: str, producer: Producer, partitions: Sequence[Named]
    ) -> Decision[list[Named]]:
        """Answers with those that are not in the transaction."""
        known = self._transactions.get(transactional_id)
        return Decision(response=membership.missing(known, producer, partitions))

    # --- ends --------------------------------------------------------------------------------------------

    def end(self, request: EndRequest, now_ms: int) -> Decision[Producer | NeedsProducerId]:
        """Answers with what the producer is from now on."""
        before = self._transactions.get(request.transactional_id)
        if request.raises_epoch and self._level() < ending.RAISES_EPOCH:
            request = request._replace(raises_epoch=False)
        outcome = ending.end(before, request, now_ms)
        if isinstance(outcome, NeedsProducerId):
            return Decision(response=outcome, reveals=False)
        if isinstance(outcome, Repeated):
            return Decision(response=outcome.producer)
        if request.raises_epoch:
            self._last_epochs[request.transactional_id] = (outcome.owner, request.producer.epoch)
        return Decision([self._record(outcome)], outcome.owner, effects=[ending.markers_of(outcome)])

    def complete(self, transactional_id: str, producer: Producer, now_ms: int) -> Decision[bool]:
        """All markers of a prepared transaction are written. False if that is another one by now."""
        prepared = self._transactions.get(transactional_id)
        if prepared is None or not prepared.state.is_prepared or prepared.writer != producer:
            return Decision(response=False)
        return Decision([self._record(ending.complete(prepared, now_ms))], response=True)

    # --- time --------------------------------------------------------------------------------------------

    def _arm_abort(self, delay_ms: float) -> None:
        self._timers.set("abort", delay_ms, self._abort_overdue)

    def _abort_overdue(self, now_ms: int) -> Decision[None]:
        overdue = [each for each in self._transactions.values() if each.is_overdue(now_ms)]
        self._arm_abort(0 if len(overdue) > ABORTS_AT_ONCE else self._settings.abort_check_interval_ms)
        aborted = [ending.fence(each, self._level(), now_ms) for each in overdue[:ABORTS_AT_ONCE]]
        return Decision(
            [self._record(each) for each in aborted],
            None,
            effects=[ending.markers_of(each) for each in aborted],
        )

    def _arm_expiry(self, delay_ms: float) -> None:
        self._timers.set("expiry", delay_ms, self._expire)

    def _expire(self, now_ms: int) -> Decision[None]:
        last = now_ms - self._settings.id_expiration_ms
        gone = [
            name
            for name, each in self._transactions.items()
            if each.state.is_at_rest and each.update_ms <= last
        ]
        self._arm_expiry(0 if len(gone) > EXPIRED_AT_ONCE else self._settings.expiry_check_interval_ms)
        return Decision([tombstone(name) for name in gone[:EXPIRED_AT_ONCE]], None)

    # --- tools -------------------------------------------------------------------------------------------

    def describe(self, transactional_id: str) -> Decision[Transaction]:
        known = self._transactions.get(transactional_id)
        if known is None:
            raise TransactionalIdNotFound(f"there is no transactional id {transactional_id}")
        return Decision(response=known)

    def list(self, wanted: Filter, now_ms: int) -> Decision[Sequence[Transaction]]:
        return Decision(response=[each for each in self._transactions.values() if wanted.fits(each, now_ms)])

    def _record(self, transaction: Transaction) -> CoordinatorRecord:
        return record_of(transaction, self._level())


def _ongoing(transaction: Transaction | None) -> Producer | None:
    return transaction.writer if transaction is not None and transaction.is_kept else None
