"""The judges see what they are there for: one too few, one too many, one that is not what it was."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession

from tests.broker_process import BrokerProcess
from tests.spark.connector.topics import Sent, batch, create, hand_over, send
from tests.spark.fire.judges import output_equals_input, table_equals_log

_COUNT = 90


def numbered(count: int = _COUNT) -> list[Sent]:
    return [Sent(f"{number:04}", number % 3) for number in range(count)]


@pytest.fixture(scope="module")
def log(headrace: BrokerProcess) -> str:
    topic = create(headrace.bootstrap, "judged", 3)
    send(headrace.bootstrap, topic, numbered())
    return topic


@pytest.mark.parametrize(
    ("change", "missing", "doubled", "alien", "differs"),
    [
        (lambda rows: rows, 0, 0, 0, False),
        (lambda rows: rows.where("not (partition = 1 and offset = 7)"), 1, 0, 0, True),
        (lambda rows: rows.where("partition != 2"), 30, 0, 0, True),
        (lambda rows: rows.union(rows.where("partition = 0 and offset >= 28")), 0, 2, 0, True),
        (lambda rows: rows.union(rows.where("offset = 0").selectExpr("3", "offset", "value")), 0, 2, 3, True),
        (
            lambda rows: rows.selectExpr(
                "partition",
                "offset",
                "if(partition = 1 and offset = 3, encode('0011', 'UTF-8'), value) value",
            ),
            0,
            0,
            0,
            True,
        ),
        (
            # Two values that changed places: nothing is lost, and nothing is where it was.
            lambda rows: rows.selectExpr(
                "partition", "if(offset < 2, 1 - offset, offset) as offset", "value"
            ),
            0,
            0,
            0,
            True,
        ),
    ],
)
def test_a_table_is_the_log_or_the_difference_is_told(
    spark: SparkSession,
    headrace: BrokerProcess,
    log: str,
    change: Callable[[DataFrame], DataFrame],
    missing: int,
    doubled: int,
    alien: int,
    differs: bool,
) -> None:
    rows = batch(spark, headrace.bootstrap, {"subscribe": log}).select("partition", "offset", "value")
    verdict = table_equals_log(change(rows), headrace.bootstrap, log)
    assert verdict.records == _COUNT
    assert (verdict.missing, verdict.doubled, verdict.alien) == (missing, doubled, alien)
    assert bool(verdict.differing) == differs
    assert verdict.equal != differs


def test_an_output_is_its_input_or_the_difference_is_counted(
    headrace: BrokerProcess, log: str, new_topic: Callable[[], str]
) -> None:
    target = create(headrace.bootstrap, new_topic(), 2)
    producer = Producer({"bootstrap.servers": headrace.bootstrap, "transactional.id": target})
    producer.init_transactions(60)

    def write(records: list[Sent], *, commit: bool) -> None:
        producer.begin_transaction()
        hand_over(producer, target, [record._replace(partition=0) for record in records])
        assert producer.flush(60) == 0  # what is aborted before it is sent was never there
        if commit:
            producer.commit_transaction(60)
        else:
            producer.abort_transaction(60)

    write(numbered(), commit=False)
    write(numbered()[5:], commit=True)
    short = output_equals_input(headrace.bootstrap, log, target)
    assert (short.records, short.missing, short.doubled, short.alien) == (_COUNT, 5, 0, 0)

    write(numbered(5), commit=True)
    assert output_equals_input(headrace.bootstrap, log, target).equal

    write([*numbered(2), *numbered(1), Sent("never sent")], commit=True)
    more = output_equals_input(headrace.bootstrap, log, target)
    assert (more.missing, more.doubled, more.alien) == (0, 3, 1)


def test_nothing_at_all_is_not_equal(headrace: BrokerProcess, new_topic: Callable[[], str]) -> None:
    source, target = (create(headrace.bootstrap, new_topic()) for _ in range(2))
    assert not output_equals_input(headrace.bootstrap, source, target).equal
