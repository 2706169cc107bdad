"""Auditing for kafka-python: a subclass of its KafkaProducer that tells what was acknowledged.

from kafka import KafkaProducer
from headrace.audit.kafka_python import audited
producer = audited(KafkaProducer)(bootstrap_servers="127.0.0.1:9092")
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from headrace.audit.ledger import Fields
from headrace.audit.reporter import Reporter, Stored, wall_clock_ms
from headrace.audit.settings import AuditSettings


def _fields(delivered: Iterable[Any]) -> Iterator[Fields]:
    for metadata, key, value in delivered:
        yield metadata.topic, metadata.partition, metadata.timestamp, key, value


def _failed(given: Iterable[Any]) -> Iterator[Fields]:
    for topic, partition, timestamp, key, value in given:
        yield (
            topic,
            -1 if partition is None else partition,
            -1 if timestamp is None else timestamp,
            key,
            value,
        )


class _Remembering:
    """A serialiser that keeps what it made last in this thread: the client does not hand the bytes back."""

    def __init__(self, serializer: Any) -> None:
        self._serializer = serializer
        self.made = threading.local()

    def serialize(self, topic: str, headers: Any, data: Any) -> Any:
        made = self.made.bytes = self._serializer.serialize(topic, headers, data)
        return made

    def close(self) -> None:
        self._serializer.close()


class _Channel:
    """`make` is called when the first event goes out: that is not in a thread of the application."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._client: Any = None

    def send(self, topic: str, key: bytes, value: bytes, stored: Stored) -> None:
        if self._client is None:
            self._client = self._make()
        future = self._client.send(topic, value=value, key=key)
        future.add_callback(lambda _: stored(None))
        future.add_errback(stored)

    def flush(self, seconds: float) -> None:
        if self._client is not None:
            self._client.flush(seconds)

    def close(self, seconds: float) -> None:
        if self._client is not None:
            self._client.close(seconds)


_NOT_FOR_EVENTS = frozenset(
    {
        "key_serializer",
        "value_serializer",
        "partitioner",
        "transactional_id",
        "transaction_timeout_ms",
        "max_block_ms",
    }
)
# The client is not imported here, so what is mixed into its class has no base with a type.
_Client: Any = object


class _Audited(_Client):  # type: ignore[misc]  # see above
    """Goes in front of a client's class; see `audited`."""

    audit_settings: AuditSettings

    def __init__(self, **configs: Any) -> None:
        super().__init__(**configs)
        self._key, self._value = self._remember("key_serializer"), self._remember("value_serializer")
        # Sending may wait for metadata, and goes through serialisers, a partitioner, a transaction: events
        # have a
        # client of their own.
        plain = {name: value for name, value in configs.items() if name not in _NOT_FOR_EVENTS}
        patience_ms = round(self.audit_settings.close_seconds * 1000)
        client = type(self).__mro__[2]
        self._events = _Channel(lambda: client(**plain, max_block_ms=patience_ms))
        self.audit = Reporter(self.audit_settings, self._events, _fields, _failed)
        self._ledger = self.audit.ledger
        self.audit.start(at_once=False)

    def _remember(self, name: str) -> _Remembering | None:
        if self.config[name] is None:
            return None
        remembering = self.config[name] = _Remembering(self.config[name])
        return remembering

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Any:
        settled = self._ledger.settled
        future = super().send(topic, value, key, headers, partition, timestamp_ms)
        key_bytes = key if self._key is None else self._key.made.bytes
        value_bytes = value if self._value is None else self._value.made.bytes
        given = (topic, partition, timestamp_ms, key_bytes, value_bytes)
        future.add_callback(lambda metadata: settled(None, (metadata, key_bytes, value_bytes)))
        future.add_errback(lambda error: settled(error, given))
        return future

    def flush(self, timeout: float | None = None) -> None:
        super().flush(timeout)
        self.audit.after_flush()

    def begin_transaction(self) -> None:
        super().begin_transaction()
        self._ledger.begin_transaction(wall_clock_ms())

    def commit_transaction(self) -> None:
        try:
            super().commit_transaction()
        except Exception:
            self._ledger.end_transaction(committed=None)
            raise
        self._ledger.end_transaction(committed=True)

    def abort_transaction(self) -> None:
        super().abort_transaction()
        self._ledger.end_transaction(committed=False)

    def close(self, timeout: float | None = None, null_logger: bool = False) -> None:
        super().close(timeout, null_logger)
        # A constructor that failed has no auditor yet.
        reporter = getattr(self, "audit", None)
        if reporter is not None and not reporter.closed:
            reporter.close()
            self._events.close(self.audit_settings.close_seconds)


def audited(producer: type[Any], settings: AuditSettings | None = None) -> type[Any]:
    """A class to use in place of kafka.KafkaProducer, or of a subclass of it."""
    own = {"audit_settings": settings or AuditSettings()}
    return type(f"Audited{producer.__name__}", (_Audited, producer), own)
