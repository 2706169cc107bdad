"""Is this partition in that transaction? Asked before a transaction's first records are taken (KIP-890).

Without the question, records that arrive after their transaction has ended would begin one that nobody ever
ends, and readers of committed records would wait for ever. A client of transaction.version 2 does not name
its partitions beforehand: then the coordinator is not asked whether, but told that the partition is in it.

What is proved is noted in the log's producer state (log/producer_verification.py). A marker that comes
between the question and the append takes the proof away again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.coordinators.internal_topics import TRANSACTIONS_TOPIC
from headrace.broker.replicas.partitions import PartitionTable
from headrace.broker.requests.errors import code_of
from headrace.broker.runtime.runtime import Runtime
from headrace.broker.transactions.patient_requests import PatientRequests
from headrace.broker.transactions.verification_requests import (
    Codes,
    Question,
    VerificationSender,
    ask_itself,
)
from headrace.coordinators.partitioning import partition_for
from headrace.core.completion import Completion
from headrace.core.errors import HeadraceError, NotLeader
from headrace.core.ids import TopicPartition
from headrace.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from headrace.log.producer_verification import Verification
    from headrace.replication.partition import Partition

_REFUTED: Final = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
"""There is no such producer, or not in this epoch."""
NO_SEQUENCE: Final = -1
"""Of what a coordinator writes into a client's transaction."""


class Verifications:
    def __init__(
        self, runtime: Runtime, metadata: MetadataCache, partitions: PartitionTable, patient: PatientRequests
    ) -> None:
        self.runtime = runtime
        self._metadata = metadata
        self.partitions = partitions
        self._patient = patient
        self._askers: dict[int, VerificationSender] = {}
        self._stopped = False

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Iterable[TopicPartition],
        *,
        add: bool,
        knows_abortable: bool = True,
        sequences: Mapping[TopicPartition, int] | None = None,
    ) -> Completion[Codes]:
        """Gives a code for each partition, all of them led by this broker.

        Where it is NONE, transactional batches of that producer and epoch are taken from now on until a
        marker comes. Otherwise it is what a client may be told, unless it is one of the codes that say that
        the coordinator could not be asked; those are the caller's to translate. With `add` the partitions are
        put into the transaction. `knows_abortable`: the client's version has TRANSACTION_ABORTABLE.
        """
        if sequences is None:
            sequences = dict.fromkeys(partitions, NO_SEQUENCE)
        step = _Step(self, transactional_id, producer_id, epoch, sequences, add, knows_abortable)
        step.begin(sequences)
        return step.completion

    def ask(self, question: Question) -> None:
        topic = self._metadata.image.topic(TRANSACTIONS_TOPIC)
        leader = -1
        if topic is not None:
            leader = topic.leader(partition_for(question.transactional_id, len(topic)))
        if leader == self.runtime.broker_id:
            ask_itself(self._metadata, self._patient, question)
        elif leader < 0 or self._stopped or not self._metadata.is_alive(leader):
            question.answer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        else:
            asker = self._askers.get(leader)
            if asker is None:
                asker = self._askers[leader] = VerificationSender(self.runtime, self._metadata, leader)
            asker.add(question)

    def stop(self) -> None:
        self._stopped = True
        while self._askers:
            self._askers.popitem()[1].stop()


class _Step:
    """From one call of `verify` to its answer."""

    __slots__ = (
        "_abortable",
        "_add",
        "_asked",
        "_codes",
        "_deadline",
        "_epoch",
        "_owner",
        "_producer_id",
        "_sequences",
        "_transactional_id",
        "completion",
    )

    def __init__(
        self,
        owner: Verifications,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        sequences: Mapping[TopicPartition, int],
        add: bool,
        knows_abortable: bool,
    ) -> None:
        self._owner = owner
        self._transactional_id = transactional_id
        self._producer_id = producer_id
        self._epoch = epoch
        self._sequences = sequences
        self._add = add
        self._abortable = knows_abortable
        self._codes: Codes = {}
        self._asked: dict[TopicPartition, tuple[Partition, Verification]] = {}
        self.completion: Completion[Codes] = Completion()
        config = owner.runtime.config
        self._deadline = owner.runtime.loop.time() + config.add_partitions_to_txn_retry_backoff_max_ms / 1000

    def begin(self, partitions: Iterable[TopicPartition]) -> None:
        self._asked = {}
        for name in partitions:
            try:
                self._codes[name] = ErrorCode.NONE
                self._begin_one(name)
            except HeadraceError as error:
                self._codes[name] = code_of(error)
        if not self._asked:
            self.completion.complete(self._codes)
            return
        question = Question(
            self._transactional_id, self._producer_id, self._epoch, list(self._asked), self._add
        )
        question.completion.when_done(self._hear)
        self._owner.ask(question)

    def _begin_one(self, name: TopicPartition) -> None:
        runtime = self._owner.runtime
        partition = self._owner.partitions.get(name.topic, name.partition)
        if not partition.is_leader:
            raise NotLeader(f"this broker does not lead {name}")
        verification = partition.log.producers.begin_verification(
            self._producer_id,
            self._epoch,
            self._sequences[name],
            raises_epochs=self._add,
            now_ms=runtime.clock.wall_ms(),
        )
        if verification is None or verification.is_verified:
            return
        # Where the question also puts the partition into the transaction, nobody else does.
        if self._add or runtime.config.transaction_partition_verification_enable:
            self._asked[name] = (partition, verification)
        else:
            verification.is_verified = True

    def _hear(self, answered: Completion[Codes]) -> None:
        for name, code in answered.result().items():
            self._codes[name] = self._translated(name, code)
            if code != ErrorCode.NONE:
                self._owner.runtime.metrics.coordinators.verification_failures += 1
        if self._add and ErrorCode.CONCURRENT_TRANSACTIONS in self._codes.values():
            # The producer has gone on to its next transaction while markers of the last one are written.
            runtime = self._owner.runtime
            if runtime.loop.time() < self._deadline:
                backoff = runtime.config.add_partitions_to_txn_retry_backoff_ms / 1000
                asked = list(self._asked)
                runtime.timers.after(backoff, "a verification tried again", lambda: self.begin(asked))
                return
        self.completion.complete(self._codes)

    def _translated(self, name: TopicPartition, code: ErrorCode) -> ErrorCode:
        if code == ErrorCode.NONE:
            partition, verification = self._asked[name]
            if partition.log.producers.end_verification(self._producer_id, verification):
                return code
            # A marker came in between. Of a producer whose epoch is raised with every transaction it may have
            # been that of the one before, and to ask again is safe: the epoch says which one is meant.
            return ErrorCode.CONCURRENT_TRANSACTIONS if self._add else ErrorCode.INVALID_TXN_STATE
        if code in _REFUTED:
            partition, verification = self._asked[name]
            partition.log.producers.refute_verification(self._producer_id, verification)
        if code == ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if code == ErrorCode.TRANSACTION_ABORTABLE and not self._abortable:
            return ErrorCode.INVALID_TXN_STATE
        return code
