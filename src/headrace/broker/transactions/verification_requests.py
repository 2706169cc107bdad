"""Asking coordinators whether partitions are in a transaction, or putting them into it (AddPartitionsToTxn).

One request at a time goes to each broker, with all questions that have come meanwhile. This broker itself is
asked without a socket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.cluster.peer_link import PeerLink
from headrace.broker.cluster.peer_requests import ask
from headrace.broker.runtime.runtime import Runtime
from headrace.broker.transactions.adding_partitions import Codes as Joined
from headrace.broker.transactions.adding_partitions import join
from headrace.broker.transactions.patient_requests import PatientRequests
from headrace.core.completion import Completion
from headrace.core.errors import HeadraceError
from headrace.core.failures import report
from headrace.core.ids import TopicPartition
from headrace.core.tasks import spawn
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from headrace.protocol.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from headrace.transactions.transaction import Producer

VERSION: Final = 5
REQUEST_SECONDS: Final = 10.0

Codes = dict[TopicPartition, ErrorCode]


class Question:
    """One transaction, and which partitions it is about. The completion gives a code for each of them."""

    __slots__ = ("add", "completion", "epoch", "partitions", "producer_id", "transactional_id")

    def __init__(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Sequence[TopicPartition],
        add: bool,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.epoch = epoch
        self.partitions = partitions
        self.add = add
        self.completion: Completion[Codes] = Completion()

    def answer(self, code: ErrorCode) -> None:
        """The same for all partitions."""
        self.completion.complete(dict.fromkeys(self.partitions, code))

    def goes_with(self, other: Question) -> bool:
        return (self.producer_id, self.epoch, self.add) == (other.producer_id, other.epoch, other.add)


class VerificationSender:
    """All for one broker. Invariant: while something waits, a task is at work."""

    __slots__ = ("_broker_id", "_peer", "_runtime", "_task", "_waiting")

    def __init__(self, runtime: Runtime, metadata: MetadataCache, broker_id: int) -> None:
        self._runtime = runtime
        self._broker_id = broker_id
        self._waiting: list[Question] = []
        self._task: asyncio.Task[None] | None = None
        self._peer = PeerLink(runtime, metadata, broker_id)

    def add(self, question: Question) -> None:
        self._waiting.append(question)
        if self._task is None:
            self._task = spawn(f"transactions of broker {self._broker_id}", self._run(), self._runtime.loop)

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._peer.close()
        waiting, self._waiting = self._waiting, []
        for question in waiting:
            question.answer(ErrorCode.NETWORK_EXCEPTION)

    async def _run(self) -> None:
        sent: list[Question] = []
        try:
            while self._waiting:
                sent = self._take()
                try:
                    link = await self._peer.open()
                    response = await ask(
                        link,
                        request_of(sent),
                        AddPartitionsToTxnResponse,
                        version=VERSION,
                        timeout=REQUEST_SECONDS,
                    )
                    tell(sent, response)
                except HeadraceError as error:
                    self._give_up(sent)
                    self._runtime.log.info(
                        "transaction coordinator not reached", broker=self._broker_id, error=str(error)
                    )
                except Exception as error:  # those who wait behind these have a right to be asked for
                    self._give_up(sent)
                    report(f"asking broker {self._broker_id} about transactions", error)
        finally:
            self._task = None
            for question in sent:
                question.answer(ErrorCode.NETWORK_EXCEPTION)  # cancelled: nobody will hear more

    def _give_up(self, sent: list[Question]) -> None:
        self._peer.close()
        for question in sent:
            question.answer(ErrorCode.NETWORK_EXCEPTION)

    def _take(self) -> list[Question]:
        """What can go into one request, where a transactional id stands once."""
        taken: dict[str, Question] = {}
        sent: list[Question] = []
        left: list[Question] = []
        for question in self._waiting:
            first = taken.setdefault(question.transactional_id, question)
            (sent if first is question or first.goes_with(question) else left).append(question)
        self._waiting = left
        return sent


def ask_itself(metadata: MetadataCache, patient: PatientRequests, question: Question) -> None:
    """This broker is the coordinator."""
    join(
        metadata,
        patient,
        question.transactional_id,
        Producer(question.producer_id, question.epoch),
        question.partitions,
        verify_only=not question.add,
        version=VERSION,
    ).when_done(lambda decided: _hear(question, decided))


def _hear(question: Question, decided: Completion[Joined]) -> None:
    if decided.error is None:
        codes = decided.result()
        question.completion.complete({each: codes.get(each, ErrorCode.NONE) for each in question.partitions})
    else:
        question.answer(ErrorCode.NETWORK_EXCEPTION)


def request_of(questions: Sequence[Question]) -> AddPartitionsToTxnRequest:
    transactions: dict[str, AddPartitionsToTxnTransaction] = {}
    topics: dict[tuple[str, str], dict[int, None]] = {}
    for question in questions:
        name = question.transactional_id
        if name not in transactions:
            transactions[name] = AddPartitionsToTxnTransaction(
                transactional_id=name,
                producer_id=question.producer_id,
                producer_epoch=question.epoch,
                verify_only=not question.add,
            )
        for topic, partition in question.partitions:
            topics.setdefault((name, topic), {})[partition] = None
    for (name, topic), partitions in topics.items():
        transactions[name].topics.append(AddPartitionsToTxnTopic(name=topic, partitions=list(partitions)))
    return AddPartitionsToTxnRequest(transactions=list(transactions.values()))


def tell(questions: Sequence[Question], response: AddPartitionsToTxnResponse) -> None:
    """Hand the answers out. What an answer leaves out was not carried out."""
    if response.error_code != ErrorCode.NONE:
        refused = ErrorCode(response.error_code)
        if refused == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            refused = ErrorCode.INVALID_TXN_STATE  # between brokers only: the client has done nothing wrong
        for question in questions:
            question.answer(refused)
        return
    codes = {
        (result.transactional_id, topic.name, each.partition_index): each.partition_error_code
        for result in response.results_by_transaction
        for topic in result.topic_results
        for each in topic.results_by_partition
    }
    for question in questions:
        name = question.transactional_id
        question.completion.complete(
            {
                each: ErrorCode(codes.get((name, each.topic, each.partition), ErrorCode.NETWORK_EXCEPTION))
                for each in question.partitions
            }
        )
