"""Auditing for kafka-python: a subclass of its KafkaProducer that tells what was acknowledged.

from kafka import KafkaProducer
from headrace.audit.kafka_python import audited
producer = audited(KafkaProducer)(bootstrap_servers="127.0.0.1:9092")
"""

from __future__ import annotations

import threading
from typing import Any

from headrace.audit.ledger import Fields
from headrace.audit.reporter import Reporter, Stored, wall_clock_ms
from headrace.audit.settings import AuditSettings


def _fields(delivered: Any) -> Fields:
    metadata, key, value = delivered
    return metadata.topic, metadata.partition, metadata.timestamp, key, value


def _failed(delivered: Any) -> Fields:
    topic, partition, timestamp, key, value = delivered
    return topic, -1 if partition is None else partition, -1 if timestamp is None else timestamp, key, value


class _Remembering:
    """A serialiser that keeps what it made last in this thread: the client does not hand the bytes back."""

    def __init__(self, serializer: Any) -> None:
        self._serializer = serializer
        self.made = threading.local()

    def serialize(self, topic: str, headers: Any, data: Any) -> Any:
        made = data if self._serializer is None else self._serializer.serialize(topic, headers, data)
        self.made.bytes = made
        return made

    def close(self) -> None:
        if self._serializer is not None:
            self._serializer.close()


class _Channel:
    def __init__(self, client: Any) -> None:
        self._client = client

    def send(self, topic: str, key: bytes, value: bytes, stored: Stored) -> None:
        future = self._client.send(topic, value=value, key=key)
        future.add_callback(lambda _: stored(None))
        future.add_errback(stored)

    def flush(self, seconds: float) -> None:
        self._client.flush(seconds)


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
        self._key = self.config["key_serializer"] = _Remembering(self.config["key_serializer"])
        self._value = self.config["value_serializer"] = _Remembering(self.config["value_serializer"])
        # Its first send to a topic may wait for metadata, which the application did not ask for: a client of
        # their own keeps events off its transactions and its serialisers.
        plain = {name: value for name, value in configs.items() if name not in _NOT_FOR_EVENTS}
        self._events = type(self).__mro__[2](
            **plain, max_block_ms=round(self.audit_settings.close_seconds * 1000)
        )
        self.audit = Reporter(self.audit_settings, _Channel(self._events), _fields, _failed)
        self._ledger = self.audit.ledger
        self.audit.start()

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
        key_bytes, value_bytes = self._key.made.bytes, self._value.made.bytes
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
