"""Records that are gone, and topics that were made anew: the query says so, or goes on as it was told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from tests.broker_process import BrokerProcess
from tests.spark.connector.topics import Sent, create, send, stream
from tests.spark.source.queries import Job, committed, delete, eventually, remove_before


def words(word: str, count: int) -> list[str]:
    return [f"{word}{index:04}" for index in range(count)]


def write(bootstrap: str, topic: str, word: str, count: int) -> list[str]:
    send(bootstrap, topic, [Sent(value) for value in words(word, count)])
    return words(word, count)


@pytest.fixture
def job(spark: SparkSession, broker: BrokerProcess, new_topic: Callable[[], str], tmp_path: Path) -> Job:
    """One that has read ten records."""
    topic = create(broker.bootstrap, new_topic())
    made = Job(spark, broker.bootstrap, topic, tmp_path)
    write(broker.bootstrap, topic, "old", 10)
    assert made(group=topic) == [10]
    return made


def test_removed_records_are_told_of_and_then_passed_over(broker: BrokerProcess, job: Job) -> None:
    write(broker.bootstrap, job.topic, "late", 30)
    remove_before(broker.bootstrap, job.topic, 25)
    with pytest.raises(StreamingQueryException, match=r'15 offsets from 10 on .* on_loss="earliest"'):
        job(group=job.topic)
    assert committed(broker.bootstrap, job.topic, job.topic, 1) == [10]
    assert job(group=job.topic, on_loss="earliest") == [15]
    assert job.values == words("late", 30)[15:] + words("old", 10)
    assert committed(broker.bootstrap, job.topic, job.topic, 1) == [40]
    write(broker.bootstrap, job.topic, "never", 30)
    remove_before(broker.bootstrap, job.topic, 50)
    assert job(on_loss="latest") == []
    new = write(broker.bootstrap, job.topic, "new", 5)
    assert job() == [5]
    assert job.values == words("late", 30)[15:] + new + words("old", 10)


def test_a_topic_made_anew_while_stopped_is_told_of_though_it_is_longer(
    broker: BrokerProcess, job: Job
) -> None:
    delete(broker.bootstrap, job.topic)
    with pytest.raises(StreamingQueryException, match="does not exist"):
        job(group=job.topic)
    create(broker.bootstrap, job.topic)
    new = write(broker.bootstrap, job.topic, "new", 25)
    with pytest.raises(StreamingQueryException, match="was deleted and made anew"):
        job(group=job.topic)
    assert job.values == words("old", 10)
    assert job(group=job.topic, on_loss="earliest") == [25]
    assert job.values == new + words("old", 10)
    assert committed(broker.bootstrap, job.topic, job.topic, 1) == [25]
    more = write(broker.bootstrap, job.topic, "more", 3)
    assert job(group=job.topic) == [3]
    assert job.values == more + new + words("old", 10)


def test_a_topic_made_anew_while_the_query_runs_stops_it(broker: BrokerProcess, job: Job) -> None:
    with job.running("1 second", group=job.topic) as query:
        late = write(broker.bootstrap, job.topic, "late", 5)
        eventually(
            lambda: committed(broker.bootstrap, job.topic, job.topic, 1) == [15], "the query is at the end"
        )
        delete(broker.bootstrap, job.topic)
        create(broker.bootstrap, job.topic)
        write(broker.bootstrap, job.topic, "new", 25)
        eventually(lambda: not query.isActive, "the query has stopped")
        error = str(query.exception())
        assert "was deleted and made anew" in error or "does not exist" in error
    assert job.values == late + words("old", 10)


def test_a_topic_made_anew_while_the_query_runs_is_read_from_its_beginning(
    broker: BrokerProcess, job: Job
) -> None:
    with job.running("1 second", group=job.topic, on_loss="earliest") as query:
        write(broker.bootstrap, job.topic, "late", 5)
        eventually(
            lambda: committed(broker.bootstrap, job.topic, job.topic, 1) == [15], "the query is at the end"
        )
        delete(broker.bootstrap, job.topic)
        create(broker.bootstrap, job.topic)
        write(broker.bootstrap, job.topic, "new", 25)
        eventually(
            lambda: committed(broker.bootstrap, job.topic, job.topic, 1) == [25] or not query.isActive,
            "the query has read the new topic",
        )
        assert query.exception() is None
    assert job.values == words("late", 5) + words("new", 25) + words("old", 10)


def test_the_bare_connector_goes_on_in_the_middle_of_a_topic_made_anew(
    spark: SparkSession, headrace: BrokerProcess, new_topic: Callable[[], str], tmp_path: Path
) -> None:
    """What the tests above would not see if they could not see it."""
    topic = create(headrace.bootstrap, new_topic())
    job = Job(spark, headrace.bootstrap, topic, tmp_path)
    bare = stream(spark, headrace.bootstrap, {"subscribe": topic, "startingOffsets": "earliest"})
    write(headrace.bootstrap, topic, "old", 10)
    assert job.write(bare, {"availableNow": True}).awaitTermination(300)
    delete(headrace.bootstrap, topic)
    create(headrace.bootstrap, topic)
    write(headrace.bootstrap, topic, "new", 25)
    assert job.write(bare, {"availableNow": True}).awaitTermination(300)
    assert job.values == words("new", 25)[10:] + words("old", 10)
