"""What confluent-kafka says of records that failed, without a broker."""

from __future__ import annotations

from confluent_kafka import Producer

from headrace.audit.confluent import audited
from headrace.audit.event import decode
from headrace.audit.settings import AuditSettings
from headrace.audit.tally import Cell


def test_a_record_that_never_had_a_partition_is_uncertain_of_none() -> None:
    settings = AuditSettings("p", "s", report_seconds=600, close_seconds=0.01)
    nobody = {"bootstrap.servers": "127.0.0.1:1", "message.timeout.ms": 100, "log_level": 0}
    producer = audited(Producer, settings)(nobody)
    producer.produce("t", b"x")
    # The client's own: the wrapper's may report, and then there is nothing left to tell.
    Producer.flush(producer, 10)
    event = producer.audit.ledger.event(60_000)
    assert [(count.cell, count.uncertain) for count in event.counts] == [(Cell("t", -1, 60_000), 1)]
    assert decode(event.encode()) == event
    producer.audit.close()
