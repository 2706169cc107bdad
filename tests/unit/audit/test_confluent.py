"""What the wrapper makes of confluent-kafka's producers, without a broker."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from confluent_kafka import Producer, SerializingProducer

from headrace.audit.confluent import audited
from headrace.audit.event import decode
from headrace.audit.settings import AuditSettings
from headrace.audit.tally import Cell

SETTINGS = AuditSettings("p", "s", report_seconds=600, close_seconds=0.01)
NOBODY = {"bootstrap.servers": "127.0.0.1:1", "message.timeout.ms": 100, "log_level": 0}


class Client:
    """Takes what the C class takes, and reports of each record at once."""

    def __init__(self, configuration: dict[str, Any]) -> None:
        self.configuration = configuration

    def produce(
        self, topic: str, value: Any = None, key: Any = None, partition: int = -1, on_delivery: Any = None
    ) -> None:
        error = "no room" if value == b"bad" else None
        on_delivery(error, Message(topic, value, key))

    def flush(self, _seconds: float = -1) -> int:
        return 0


class Message:
    def __init__(self, *record: Any) -> None:
        self.record = record

    def topic(self) -> Any:
        return self.record[0]

    def partition(self) -> int:
        return 0

    def timestamp(self) -> tuple[int, int]:
        return 1, 0

    def value(self) -> Any:
        return self.record[1]

    def key(self) -> Any:
        return self.record[2]


@pytest.mark.parametrize("transactional", [{}, {"transactional.id": "x"}])
def test_a_serializing_producer_can_be_audited(transactional: dict[str, str]) -> None:
    seen: list[object] = []

    def serialised(value: object, _context: object) -> bytes:
        seen.append(value)
        return str(value).encode()

    configuration = {**NOBODY, **transactional, "key.serializer": serialised, "value.serializer": serialised}
    producer = audited(SerializingProducer, SETTINGS)(configuration)
    if not transactional:
        producer.produce("t", key=1, value=2)
    producer.audit.close()
    assert seen == ([] if transactional else [1, 2])


@pytest.mark.parametrize("at", ["config", "call"])
def test_who_wants_to_hear_of_errors_only_does_and_all_is_counted(at: str) -> None:
    heard: list[object] = []

    def hear(error: object, _message: object) -> None:
        heard.append(error)

    own = {"on_delivery": hear}
    configuration = {"delivery.report.only.error": True, **(own if at == "config" else {})}
    producer = audited(Client, SETTINGS)(configuration)
    assert producer.configuration == {}
    for value in (b"good", b"bad"):
        producer.produce("t", value, **(own if at == "call" else {}))
    event = producer.audit.ledger.event(60_000)
    assert [(count.tally.count, count.uncertain) for count in event.counts] == [(1, 1)]
    assert heard == ["no room"]
    producer.audit.close()


def test_a_record_that_never_had_a_partition_is_uncertain_of_none() -> None:
    producer = audited(Producer, SETTINGS)(NOBODY)
    producer.produce("t", b"x")
    # The client's own: the wrapper's may report, and then there is nothing left to tell.
    Producer.flush(producer, 10)
    event = producer.audit.ledger.event(60_000)
    assert [(count.cell, count.uncertain) for count in event.counts] == [(Cell("t", -1, 60_000), 1)]
    assert decode(event.encode()) == event
    producer.audit.close()


class SlowClient:
    """Its second event is on its way until it is let go."""

    def __init__(self, configuration: dict[str, Any]) -> None:
        self.events: list[bytes] = configuration["events"]
        self.under_way, self.let_go = configuration["under_way"], configuration["let_go"]

    def produce(self, _topic: str, value: bytes, key: bytes, on_delivery: Any) -> None:
        self.events.append(value)
        if len(self.events) == 2:
            self.under_way.set()
            assert self.let_go.wait(60)
        on_delivery(None, None)

    def flush(self, _seconds: float = -1) -> int:
        return 0


def test_a_producer_that_is_dropped_while_it_is_reported_on_has_its_last_word() -> None:
    events: list[bytes] = []
    under_way, let_go = threading.Event(), threading.Event()
    settings = AuditSettings("p", "s", report_seconds=0.01, close_seconds=0.01)
    producer = audited(SlowClient, settings)({"events": events, "under_way": under_way, "let_go": let_go})
    assert under_way.wait(60)
    del producer
    let_go.set()
    deadline = time.monotonic() + 10
    while not decode(events[-1]).closing:
        assert time.monotonic() < deadline, "the last event did not come"
        time.sleep(0.01)
    assert len(events) == 3
