"""Jobs with notes on a real Spark: a batch is there with its note, or neither is."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Iterator

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from headrace.client.transaction_ends import end
from headrace.core.ids import TopicPartition
from headrace.protocol.records import NewRecord
from headrace.spark.sink import decisions, driver
from headrace.spark.sink.decision import SinkFailure
from headrace.spark.sink.job import Jobs, Noted, forget, last_note, put_note, run_job
from headrace.spark.sink.landing import Landed
from headrace.spark.sink.options import Options, parse_options
from tests.broker_process import BrokerProcess
from tests.spark.sink.reading import create, read


class Killed(BaseException):
    """Nothing of the driver runs any more."""


@pytest.fixture
def topic(broker: BrokerProcess, new_topic: Callable[[], str]) -> str:
    name = new_topic()
    create(broker.bootstrap, name, 2)
    return name


@pytest.fixture
def options(broker: BrokerProcess, topic: str) -> Options:
    given = {"kafka.bootstrap.servers": broker.bootstrap, "topic": topic, "sink.id": f"sink-{topic}"}
    return parse_options(given, streaming=False)


@pytest.fixture
def jobs(options: Options) -> Iterator[Jobs]:
    with Jobs(options) as made:
        yield made


def _frame(spark: SparkSession, first: int, last: int) -> DataFrame:
    frame = spark.range(first, last, numPartitions=2)
    return frame.selectExpr(
        "cast(id as string) as value", "cast(id % 2 as int) as partition", "id * 3 as source_offset"
    )


def _values(options: Options) -> list[int]:
    assert options.topic is not None
    return sorted(int(each.value or b"") for each in read(options.bootstrap, options.topic))


def _visible(look: Callable[[], Noted | None], job: str) -> Noted | None:
    """Apache Kafka answers that a transaction is committed before readers see it."""
    until = time.monotonic() + 60
    while True:
        found = look()
        if (found is not None and found.job == job) or time.monotonic() > until:
            return found
        time.sleep(0.05)


def test_a_batch_is_there_with_its_note(spark: SparkSession, jobs: Jobs, options: Options) -> None:
    assert asyncio.run(last_note(options)) is None, "also where there is no topic of decisions yet"
    assert jobs.settle() == (None, 0)
    done = jobs.run(_frame(spark, 0, 100), "batch 0", '{"read": 100}')
    assert (done.rows, done.replayed) == (100, False)
    jobs.run(_frame(spark, 100, 200), "batch 1", '{"read": 200}')
    assert _visible(jobs.last, "batch 1") == Noted("batch 1", '{"read": 200}', 1, '{"read": 100}', 100)
    assert jobs.settle().note == '{"read": 200}'
    assert jobs.run(_frame(spark, 100, 200), "batch 1", "of a repetition").replayed
    assert _values(options) == list(range(200))


def test_a_note_moves_without_rows(spark: SparkSession, jobs: Jobs, options: Options) -> None:
    jobs.run(_frame(spark, 0, 10), "batch 0", "10")
    assert jobs.run(None, "batch 1", "20").rows == 0
    assert jobs.run(_frame(spark, 0, 0), "batch 2", "30").rows == 0
    assert _visible(lambda: asyncio.run(last_note(options)), "batch 2") == ("batch 2", "30", 2, "20", 0)
    asyncio.run(put_note(options, "by hand", "0"))
    assert _visible(jobs.last, "by hand") == ("by hand", "0", 3, "30", 0)
    asyncio.run(forget(options))
    assert jobs.settle() == (None, 0)
    assert _values(options) == list(range(10))


def test_a_note_that_is_put_shuts_out_the_job_that_runs(
    spark: SparkSession, jobs: Jobs, options: Options
) -> None:
    with pytest.raises(SinkFailure, match=r"another driver|before the batch was decided"):
        jobs.run(
            _frame(spark, 0, 10),
            "batch 0",
            "10",
            check=lambda: asyncio.run(put_note(options, "by hand", "5")),
        )
    assert _visible(jobs.last, "by hand") == ("by hand", "5", 0, None, 0)
    assert _values(options) == []


def test_what_fails_before_the_decision_leaves_nothing(
    spark: SparkSession, jobs: Jobs, options: Options
) -> None:
    jobs.run(_frame(spark, 0, 10), "batch 0", "10")

    def refuse() -> None:
        raise SinkFailure("the source has changed meanwhile")

    with pytest.raises(SinkFailure, match="changed meanwhile"):
        jobs.run(_frame(spark, 10, 20), "batch 1", "20", check=refuse)
    broken = _frame(spark, 10, 20).selectExpr("cast(raise_error('a row breaks') as string) as value")
    with pytest.raises(PySparkException, match="a row breaks"):
        jobs.run(broken, "batch 1", "20")
    with pytest.raises(SinkFailure, match="no place for column 'id'"):
        jobs.run(spark.range(3), "batch 1", "20")
    assert jobs.settle().note == "10"
    assert _values(options) == list(range(10)), "nothing open is in the way"


def test_tasks_tell_where_rows_landed_and_write_that_beside_them(
    spark: SparkSession, jobs: Jobs, options: Options, new_topic: Callable[[], str]
) -> None:
    beside = new_topic()
    create(options.bootstrap, beside, 1)

    def aside(landed: Landed) -> Iterable[tuple[TopicPartition, NewRecord]]:
        for target, runs in landed.items():
            for row in zip(*(column.tolist() for column in runs), strict=True):
                text = json.dumps([target.partition, *row])
                yield TopicPartition(beside, 0), NewRecord(text.encode(), b"run", 7)

    done = jobs.run(_frame(spark, 0, 100).coalesce(1), "batch 0", "100", aside=aside)
    jobs.run(_frame(spark, 100, 200).coalesce(1), "batch 1", "200", aside=aside)
    found = {int(each.value or b"") * 3: each for each in read(options.bootstrap, options.topic or "")}
    told: dict[int, tuple[int, int]] = {}
    for record in read(options.bootstrap, beside):
        partition, source, target, count = json.loads(record.value or b"")
        told |= {source + step: (partition, target + step) for step in range(count)}
    assert told == {source: (each.partition, each.offset) for source, each in found.items()}
    assert [
        (place.partition, place.rows, place.first_source, place.last_source) for place in done.placed
    ] == [
        (0, 50, 0, 294),
        (1, 50, 3, 297),
    ]
    assert all(found[place.last_source].offset == place.last_target for place in done.placed)


def test_a_driver_that_dies_on_either_side_of_the_decision(
    spark: SparkSession, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def die(*_: object) -> None:
        raise Killed

    monkeypatch.setattr(driver, "give_up", die)
    for place, name, after in (("_carry_out", "batch 0", "100"), ("decide", "batch 1", "100")):
        with monkeypatch.context() as patched:
            patched.setattr(driver, place, die)
            with pytest.raises(Killed):
                run_job(_frame(spark, 0, 100), options, name, str(100 + 100 * (name == "batch 1")))
        with Jobs(options) as jobs:
            assert jobs.settle() == (("batch 0", after, 0, None, 100), 0)
    assert _values(options) == list(range(100))


def test_a_job_that_was_lost_is_asked_for_again(
    spark: SparkSession, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a time-out behind the decision: the driver is dead, and one of its transactions is aborted."""
    options = options._replace(checksum=True)
    run_job(_frame(spark, 0, 100), options, "batch 0", "100")

    async def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(driver, "give_up", die)
        patched.setattr(driver, "_carry_out", die)
        with pytest.raises(Killed):
            run_job(_frame(spark, 100, 200), options, "batch 1", "200")
    asyncio.run(_lose_one(options))
    with Jobs(options) as jobs:
        settled = jobs.settle()
        assert settled == (("batch 1", "200", 1, "100", 100), 50)
        with pytest.raises(SinkFailure, match="50 rows of job batch 1"):
            jobs.run(_frame(spark, 200, 300), "batch 2", "300")
        assert not jobs.run(_frame(spark, 100, 200), "batch 1", "200").replayed
        assert jobs.settle() == (("batch 1", "200", 2, "100", 100), 0)
        jobs.run(_frame(spark, 200, 300), "batch 2", "300")
    assert _values(options) == list(range(300))


async def _lose_one(options: Options) -> None:
    async with options.cluster() as cluster:
        state = await decisions.read_state(cluster, options.decisions, options.sink or "")
        assert state.decision is not None
        await end(cluster, state.decision.transactions[1].identity, commit=False)


def test_a_long_note_fits(jobs: Jobs) -> None:
    note = ",".join(f'"topic-{number % 100}-{number}": {number * 7919}' for number in range(20_000))
    jobs.run(None, "batch 0", note)
    jobs.run(None, "batch 1", note)
    last = jobs.last()
    assert last is not None
    assert last.note == last.before == note


def test_one_that_was_away_does_not_go_on_from_where_it_was(
    spark: SparkSession, jobs: Jobs, options: Options
) -> None:
    jobs.settle()
    jobs.run(_frame(spark, 0, 10), "batch 0", "10")
    with Jobs(options) as newer:
        assert newer.settle().note == "10"
        newer.run(_frame(spark, 10, 20), "batch 1", "20")
        with pytest.raises(SinkFailure, match="another driver has decided"):
            jobs.run(_frame(spark, 10, 20), "batch of the old one", "20")
        assert newer.settle().note == "20"
    assert _values(options) == list(range(20))
