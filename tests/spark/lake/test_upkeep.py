"""Compaction, expiry and replays change no record and add none twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headrace.spark.lake import maintenance
from headrace.spark.lake.config import Maintenance, TopicRule
from headrace.spark.lake.dead_letters import replay
from headrace.spark.lake.files import LocalFiles
from headrace.spark.lake.plan import route, routes
from headrace.spark.lake.tables.opening import open_table
from headrace.spark.lake.tables.parquet import ParquetTable
from headrace.spark.lake.tables.table import Commit
from tests.spark.lake.conftest import LakeUnderTest
from tests.spark.lake.test_interrupted import DyingFiles, Killed

_SOON = Maintenance(least_files=3, keep_seconds=0.0)


def test_maintenance_keeps_every_row_and_what_was_committed(
    lake: LakeUnderTest, new_topic: Callable[[], str]
) -> None:
    topic = new_topic()
    config = replace(lake.config(f'[[topics]]\nname = "{topic}"'), maintenance=_SOON)
    for number in range(4):
        lake.produce(topic, [b"%d-%d" % (number, at) for at in range(5)])
        lake.load(replace(config, maintenance=None))
    table = open_table(lake.spark, config, topic)
    way = route(config, topic)
    assert way is not None
    before = lake.rows(config, topic)

    (done,) = maintenance.maintain(lake.spark, config, [way])
    maintenance.maintain(lake.spark, config, [way])

    assert done.error is None
    assert done.upkeep is not None
    assert done.upkeep.files_after < done.upkeep.files_before == 4
    assert lake.rows(config, topic) == before
    # A batch that is repeated after all that is still known.
    from headrace.spark.lake.checkpoint import Checkpoint

    writer = Checkpoint(LocalFiles(), way.checkpoint).query_id()
    assert writer is not None
    assert table.last(writer) == 3
    lake.produce(topic, [b"more"])
    lake.load(config)
    assert [row.offset for row in lake.rows(config, topic)] == list(range(21))


def test_dead_letters_are_delivered_once_after_a_fix(
    lake: LakeUnderTest, new_topic: Callable[[], str]
) -> None:
    topic = new_topic()
    lake.produce(topic, [b'{"id": 1}', b'{"id": "x"}', b"{", b'{"id": 4}', b'{"id": "y"}'])
    config = lake.config(f'[[topics]]\nname = "{topic}"\nformat = "json"\nschema = "id bigint"')
    lake.load(config)
    way = route(config, topic)
    assert way is not None
    assert replay(lake.spark, config, way).delivered == 0

    fixed = replace(
        config, topics=(TopicRule(name=topic, format=config.topics[0].format, schema="name string"),)
    )
    way = route(fixed, topic)
    assert way is not None
    done = replay(lake.spark, fixed, way)
    assert (done.delivered, done.left) == (2, 1)
    assert [reason[:8] for reason in done.reasons] == ["not JSON"]
    assert replay(lake.spark, fixed, way)[:2] == (0, 1)
    assert [row.offset for row in lake.rows(fixed, topic)] == [0, 1, 3, 4]
    assert [row.offset for row in lake.rows(fixed, f"{topic}_dead_letters")] == [2]


@pytest.mark.parametrize("table_format", ["parquet"], indirect=True)
def test_a_replay_that_was_cut_off_delivers_the_rest_once(
    lake: LakeUnderTest, new_topic: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed while the letters that were delivered are removed: the others are in two files then."""
    topic = new_topic()
    lake.produce(topic, [b'{"id": "x"}', b"{", b"["])
    config = lake.config(f'[[topics]]\nname = "{topic}"\nformat = "json"\nschema = "id bigint"')
    lake.load(config)

    remove = LocalFiles.remove

    def die(files: LocalFiles, path: str) -> None:
        if path.endswith(".parquet"):
            raise Killed
        remove(files, path)

    fixed = replace(config, topics=(replace(config.topics[0], schema="name string"),))
    undecoded = replace(config, topics=(TopicRule(name=topic),))
    way, last = route(fixed, topic), route(undecoded, topic)
    assert way is not None
    assert last is not None
    with monkeypatch.context() as patched:
        patched.setattr(LocalFiles, "remove", die)
        with pytest.raises(Killed):
            replay(lake.spark, fixed, way)
    assert replay(lake.spark, undecoded, last) == (2, 0, {})
    assert [row.offset for row in lake.rows(undecoded, topic)] == [0, 1, 2]


def test_a_compaction_of_parquet_survives_a_kill_between_any_two_steps(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = f"file://{tmp_path}/t"
    rows = spark.range(10, numPartitions=2).selectExpr("id as offset")
    whole = ParquetTable(spark, path, LocalFiles())
    whole.create(rows.schema)
    expected: list[int] = []
    for steps in range(100):
        whole.append(rows, Commit("query", steps))
        whole.append(rows, Commit("other", steps))
        expected += [*range(10)] * 2
        files = DyingFiles(steps)
        try:
            ParquetTable(spark, path, files).maintain(replace(_SOON, least_files=2))
            assert steps > 5
            break
        except Killed:
            whole.recover("query")
            found = sorted(row.offset for row in whole.read().collect())
            assert found == sorted(expected), f"killed after {steps} steps"
    else:
        pytest.fail("it never lived")


@pytest.mark.parametrize("table_format", ["parquet"], indirect=True)
def test_tables_that_topics_share_are_maintained_once(lake: LakeUnderTest) -> None:
    config = lake.config('[[topics]]\npattern = "a.*"\ntable = "both"')
    assert maintenance.table_names(routes(config, ["a1", "a2"])) == ["both", "both_dead_letters"]
