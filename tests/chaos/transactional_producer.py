"""A transactional producer of librdkafka in a process that may be killed at any moment.

Errors are of three kinds: try the same call again, abort the transaction, or end. A process that must end
says so by `Ended`; whoever starts it starts another one with the same transactional id.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.chaos.workload import QUICK

TRANSACTION_SECONDS: Final = 10
#: How long one call may take before it is made again.
CALL_SECONDS: Final = 5.0
#: How long it is made again. A cluster that is broken for longer makes the process start anew.
PATIENCE_SECONDS: Final = 90.0


class Ended(Exception):
    """This producer is of no use any more: it was fenced, or nobody answers."""


def failure(error: KafkaException) -> KafkaError:
    told = error.args[0]
    assert isinstance(told, KafkaError)
    return told


def must_abort(error: KafkaException) -> str:
    """The name of an error after which the transaction can only be aborted. Raises `Ended` for worse ones."""
    told = failure(error)
    if told.fatal() or not (told.txn_requires_abort() or told.retriable()):
        raise Ended(told.name()) from error
    return str(told.name())


@contextmanager
def callbacks_told_apart() -> Iterator[None]:
    """The binding raises errors for good before it calls back, and Python takes that for its own failure."""
    try:
        yield
    except SystemError as error:
        if isinstance(error.__cause__, KafkaException):
            raise error.__cause__ from None
        raise


class TransactionalProducer:
    def __init__(
        self,
        bootstrap: str,
        transactional_id: str,
        settings: Mapping[str, str | int],
        remark: Callable[[str], None],
    ) -> None:
        self._remark = remark
        self.producer = Producer(
            {
                **QUICK,
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": TRANSACTION_SECONDS * 1000,
                "request.timeout.ms": 5000,
                "retry.backoff.ms": 50,
                # When all brokers are down, 2.16 otherwise forgets them all, but not who coordinates a
                # group: it then waits for that one without end, against Apache Kafka too.
                "metadata.recovery.strategy": "none",
                "error_cb": lambda _: None,
                **settings,
            }
        )

    def start(self) -> None:
        """From here on, no earlier process with this transactional id can write."""
        self._insist(lambda: self.producer.init_transactions(CALL_SECONDS))

    def flush(self) -> bool:
        """Whether everything was delivered, or refused, in good time."""
        with callbacks_told_apart():
            return self.producer.flush(CALL_SECONDS * 2) == 0

    def send_offsets(self, offsets: list[TopicPartition], consumer: Consumer) -> None:
        """They are committed with the transaction, if the consumer still is what its group thinks it is."""
        member = consumer.consumer_group_metadata()
        self._insist(lambda: self.producer.send_offsets_to_transaction(offsets, member, CALL_SECONDS))

    def commit(self) -> None:
        """Once this was called, the outcome is unknown until it has returned."""
        self._insist(lambda: self.producer.commit_transaction(CALL_SECONDS))

    def abort(self) -> None:
        self._insist(lambda: self.producer.abort_transaction(CALL_SECONDS))

    def _insist(self, call: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                with callbacks_told_apart():
                    call()
                return
            except KafkaException as error:
                told = failure(error)
                if told.fatal() or not told.retriable():
                    raise
                self._remark(f"a transactional producer tries again after {told.name()}: {told.str()[:60]}")
                if time.monotonic() > deadline:
                    raise Ended(f"still {told.name()} after {PATIENCE_SECONDS:g} s") from error
