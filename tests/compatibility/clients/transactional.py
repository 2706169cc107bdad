"""Transactional producers, in one vocabulary for every client library that has them."""

from __future__ import annotations

import itertools
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

with warnings.catch_warnings():
    # The library reads its schemas by a function that Python has deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka
    from kafka.errors import KafkaError as KafkaPythonError

from tests.compatibility.clients.client import NO_CODE, ClientFailure
from tests.compatibility.clients.json_lines import JsonLinesClient, base64_text
from tests.compatibility.members.confluent import ConfluentMember
from tests.compatibility.members.json_lines import JsonLinesMember
from tests.compatibility.members.kafka_python import KafkaPythonMember
from tests.compatibility.members.member import Member

_WAIT = 15.0
_numbers = itertools.count()


class TransactionalProducer(ABC):
    """Made and introduced to its coordinator at once: a namesake is fenced from then on."""

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def send(self, topic: str, values: Sequence[bytes], partition: int = 0) -> None:
        """Send and wait."""

    @abstractmethod
    def send_offsets(self, member: Member, offsets: Mapping[int, int]) -> None:
        """Let the transaction move the group of `member`."""

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def abort(self) -> None: ...

    @abstractmethod
    def close(self) -> None: ...


def _confluent_failure(error: KafkaError) -> ClientFailure:
    return ClientFailure(error.code(), error.str())


class ConfluentTransactions(TransactionalProducer):
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 10_000) -> None:
        self._failed: list[KafkaError] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "linger.ms": 5,
            }
        )
        self._do(self._producer.init_transactions, _WAIT)

    def _do(self, function: Any, *arguments: Any) -> None:
        try:
            function(*arguments)
        except KafkaException as error:
            raise _confluent_failure(error.args[0]) from error

    def begin(self) -> None:
        self._do(self._producer.begin_transaction)

    def send(self, topic: str, values: Sequence[bytes], partition: int = 0) -> None:
        def on_delivery(error: KafkaError | None, _message: object) -> None:
            if error is not None:
                self._failed.append(error)

        for value in values:
            self._producer.produce(topic, value, partition=partition, on_delivery=on_delivery)
        assert self._producer.flush(_WAIT) == 0
        if self._failed:
            raise _confluent_failure(self._failed.pop())

    def send_offsets(self, member: Member, offsets: Mapping[int, int]) -> None:
        assert isinstance(member, ConfluentMember)
        moved = [TopicPartition(member.topic, at, offset) for at, offset in offsets.items()]
        self._do(
            self._producer.send_offsets_to_transaction,
            moved,
            member.consumer.consumer_group_metadata(),
            _WAIT,
        )

    def commit(self) -> None:
        self._do(self._producer.commit_transaction, _WAIT)

    def abort(self) -> None:
        self._do(self._producer.abort_transaction, _WAIT)

    def close(self) -> None:
        del self._producer


class KafkaPythonTransactions(TransactionalProducer):
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 10_000) -> None:
        self._producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            delivery_timeout_ms=15_000,
            request_timeout_ms=10_000,
        )
        self._do(self._producer.init_transactions)

    def _do(self, function: Any, *arguments: Any) -> None:
        try:
            function(*arguments)
        except KafkaPythonError as error:
            code = getattr(error, "errno", None)
            raise ClientFailure(NO_CODE if code is None else code, repr(error)) from error

    def begin(self) -> None:
        self._do(self._producer.begin_transaction)

    def send(self, topic: str, values: Sequence[bytes], partition: int = 0) -> None:
        sent = [self._producer.send(topic, value, partition=partition) for value in values]
        for one in sent:
            self._do(one.get, _WAIT)

    def send_offsets(self, member: Member, offsets: Mapping[int, int]) -> None:
        assert isinstance(member, KafkaPythonMember)
        moved = {
            kafka.TopicPartition(member.topic, at): kafka.OffsetAndMetadata(offset, "", -1)
            for at, offset in offsets.items()
        }
        self._do(self._producer.send_offsets_to_transaction, moved, member.consumer.group_metadata())

    def commit(self) -> None:
        self._do(self._producer.commit_transaction)

    def abort(self) -> None:
        self._do(self._producer.abort_transaction)

    def close(self) -> None:
        self._producer.close(5)


class JsonLinesTransactions(TransactionalProducer):
    """Inside the program around a client of another language."""

    def __init__(self, program: JsonLinesClient, transactional_id: str, timeout_ms: int = 10_000) -> None:
        self._program = program
        self._name = f"producer-{next(_numbers)}"
        self._ask("txn_open", transactional_id=transactional_id, timeout_ms=timeout_ms)

    def _ask(self, operation: str, **arguments: Any) -> None:
        self._program.operate(operation, producer=self._name, **arguments)

    def begin(self) -> None:
        self._ask("txn_begin")

    def send(self, topic: str, values: Sequence[bytes], partition: int = 0) -> None:
        self._ask(
            "txn_send", topic=topic, partition=partition, values=[base64_text(value) for value in values]
        )

    def send_offsets(self, member: Member, offsets: Mapping[int, int]) -> None:
        assert isinstance(member, JsonLinesMember)
        self._ask(
            "txn_offsets", member=member.name, offsets={str(at): offset for at, offset in offsets.items()}
        )

    def commit(self) -> None:
        self._ask("txn_end", how="commit")

    def abort(self) -> None:
        self._ask("txn_end", how="abort")

    def close(self) -> None:
        self._ask("txn_close")
