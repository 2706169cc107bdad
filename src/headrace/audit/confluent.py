"""Auditing for confluent-kafka: a subclass of its Producer that tells what was acknowledged.

    from confluent_kafka import Producer
    from headrace.audit.confluent import audited
    producer = audited(Producer)({"bootstrap.servers": "127.0.0.1:9092"})

It is used as before. Deliveries are counted when the application polls or flushes, as its own callbacks are
called.
"""

from __future__ import annotations

import atexit
import re
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

from headrace.audit.ledger import Fields
from headrace.audit.reporter import Reporter, Stored, wall_clock_ms
from headrace.audit.settings import AuditSettings


def _fields(messages: Iterable[Any]) -> Iterator[Fields]:
    for message in messages:
        yield message.topic(), message.partition(), message.timestamp()[1], message.key(), message.value()


def _failed(messages: Iterable[Any]) -> Iterator[Fields]:
    for message in messages:
        # A record that was given up before its topic was known has none.
        partition = -1 if message.partition() is None else message.partition()
        yield message.topic(), partition, message.timestamp()[1], message.key(), message.value()


class _Channel:
    """Events go out through the producer itself, past its counting, and past what a subclass does to values.

    `base` is the client's own class, whose `produce` takes bytes.
    """

    def __init__(self, client: Any, base: type[Any]) -> None:
        self._client = weakref.ref(client)
        self._base = base

    def send(self, topic: str, key: bytes, value: bytes, stored: Stored) -> None:
        client = self._client()
        if client is not None:
            self._base.produce(
                client, topic, value=value, key=key, on_delivery=lambda error, _: stored(error)
            )

    def flush(self, seconds: float) -> None:
        client = self._client()
        if client is not None:
            self._base.flush(client, seconds)


class _OwnChannel:
    """A transactional producer can send nothing outside its transactions, so its events have another."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def send(self, topic: str, key: bytes, value: bytes, stored: Stored) -> None:
        self._client.produce(topic, value=value, key=key, on_delivery=lambda error, _: stored(error))
        self._client.poll(0)

    def flush(self, seconds: float) -> None:
        self._client.flush(seconds)


_CALLBACKS = frozenset({"on_delivery", "callback"})
_ONLY_ERRORS = "delivery.report.only.error"
_NOT_FOR_EVENTS = re.compile(r"transactional\.id|transaction\.timeout\.ms|(key|value)\.serializer")
# The client is not imported here, so what is mixed into its class has no base with a type.
_Client: Any = object


class _Audited(_Client):  # type: ignore[misc]  # see above
    """Goes in front of a client's class; see `audited`."""

    audit_settings: AuditSettings
    #: The client's own, found without a search: it is called for every record.
    _client_produce: Any

    def __init__(self, config: Any = None, /, **more: Any) -> None:
        configuration = {**(config or {}), **more}
        # Ours is called first, and calls the application's: of all records, since all are counted.
        self._only_errors = configuration.get(_ONLY_ERRORS) is True
        if self._only_errors:
            del configuration[_ONLY_ERRORS]
        self._on_delivery = configuration.pop("on_delivery", None)
        super().__init__(configuration)
        self.audit = Reporter(
            self.audit_settings, self._channel(configuration), _fields, _failed, owner=weakref.ref(self)
        )
        self._ledger = self.audit.ledger
        self.audit.start()
        self._at_exit = _close_at_exit(self)

    def _channel(self, configuration: dict[str, Any]) -> _Channel | _OwnChannel:
        # The client's own class, not one of the application's that makes bytes of other things first.
        (*_, client) = (base for base in type(self).__mro__ if "produce" in vars(base))
        if "transactional.id" not in configuration:
            return _Channel(self, client)
        return _OwnChannel(
            client({name: value for name, value in configuration.items() if not _NOT_FOR_EVENTS.match(name)})
        )

    def produce(self, *args: Any, **keywords: Any) -> None:
        settled = self._ledger.settled
        if len(args) < 5 and (not keywords or _CALLBACKS.isdisjoint(keywords)) and self._on_delivery is None:
            self._client_produce(*args, on_delivery=settled, **keywords)
            return
        theirs = args[4] if len(args) > 4 else None
        for name in _CALLBACKS:
            theirs = keywords.pop(name, None) or theirs
        both = self._both(settled, theirs or self._on_delivery)
        if len(args) > 4:
            super().produce(*args[:4], both, *args[5:], **keywords)
        else:
            super().produce(*args, on_delivery=both, **keywords)

    def produce_batch(self, topic: str, messages: Any, *args: Any, **keywords: Any) -> Any:
        settled = self._ledger.settled
        default = keywords.pop("on_delivery", None) or keywords.pop("callback", None) or self._on_delivery
        # Copies: the application's dictionaries are its own.
        ours = [
            {**message, "callback": self._both(settled, message.get("callback") or default)}
            for message in messages
        ]
        try:
            return super().produce_batch(topic, ours, *args, **keywords)
        finally:
            for message, sent in zip(messages, ours, strict=True):
                if "_error" in sent:
                    message["_error"] = sent["_error"]

    def _both(self, settled: Any, theirs: Any) -> Any:
        if theirs is None:
            return settled
        only_errors = self._only_errors

        def callback(error: Any, message: Any) -> None:
            settled(error, message)
            if error is not None or not only_errors:
                theirs(error, message)

        return callback

    def flush(self, *args: Any, **keywords: Any) -> Any:
        left = super().flush(*args, **keywords)
        self.audit.after_flush()
        return left

    def begin_transaction(self, *args: Any, **keywords: Any) -> Any:
        super().begin_transaction(*args, **keywords)
        self._ledger.begin_transaction(wall_clock_ms())

    def commit_transaction(self, *args: Any, **keywords: Any) -> Any:
        try:
            super().commit_transaction(*args, **keywords)
        except Exception as error:
            # One that may be tried again, or must be aborted, is still open.
            if not _still_open(error):
                self._ledger.end_transaction(committed=None)
            raise
        super().poll(0)  # what it waited for is reported now, and belongs to it
        self._ledger.end_transaction(committed=True)

    def abort_transaction(self, *args: Any, **keywords: Any) -> Any:
        super().abort_transaction(*args, **keywords)
        super().poll(0)
        self._ledger.end_transaction(committed=False)

    def close(self, *args: Any, **keywords: Any) -> Any:
        self._finish()
        return super().close(*args, **keywords)

    def _finish(self) -> None:
        """Everything of the application's is settled first, as far as the time goes; then the last word."""
        if not self.audit.closed:
            atexit.unregister(self._at_exit)
            super().flush(self.audit_settings.close_seconds)
            self.audit.close()

    def __exit__(self, *args: Any) -> Any:
        self._finish()
        return super().__exit__(*args)

    def __del__(self) -> None:
        if hasattr(self, "_at_exit"):
            self._finish()


def audited(producer: type[Any], settings: AuditSettings | None = None) -> type[Any]:
    """A class to use in place of confluent_kafka.Producer, or of a subclass of it."""
    own = {"audit_settings": settings or AuditSettings(), "_client_produce": producer.produce}
    return type(f"Audited{producer.__name__}", (_Audited, producer), own)


def _still_open(error: Exception) -> bool:
    reason = error.args[0] if error.args else None
    return any(getattr(reason, ask, bool)() for ask in ("retriable", "txn_requires_abort"))


def _close_at_exit(producer: Any) -> Any:
    """A program that ends in order says so, even if it forgets to close; one that is killed does not."""
    alive = weakref.ref(producer)

    def close() -> None:
        found = alive()
        if found is not None:
            found._finish()

    atexit.register(close)
    return close
