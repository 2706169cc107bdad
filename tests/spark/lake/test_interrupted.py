"""A batch that was cut off anywhere is there once after it is repeated, in each of its two tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from headrace.spark.decoding.formats import Format
from headrace.spark.kafka_properties import KafkaProperties
from headrace.spark.lake.checkpoint import Checkpoint
from headrace.spark.lake.config import LakeConfig, TopicRule
from headrace.spark.lake.files import LocalFiles
from headrace.spark.lake.loader import TopicLoader
from headrace.spark.lake.plan import Route, route
from headrace.spark.lake.tables.opening import open_table
from headrace.spark.lake.tables.parquet import ParquetTable
from headrace.spark.lake.tables.table import Commit, Table
from tests.spark.places import location_of

_CONNECTOR = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int, headers array<struct<key: string, value: binary>>"
)
_WRITER = "query"


class Killed(Exception):
    pass


def frame(spark: SparkSession, first: int, values: list[bytes]) -> DataFrame:
    rows = [(b"k", value, "t", 0, first + at, None, 0, None) for at, value in enumerate(values)]
    return spark.createDataFrame(rows, _CONNECTOR)


@pytest.fixture
def config(spark: SparkSession, tmp_path: Path, table_format: str) -> LakeConfig:
    rule = TopicRule(name="t", format=Format.JSON, schema="id bigint")
    return LakeConfig(
        kafka=KafkaProperties(),
        topics=(rule,),
        format=table_format,
        location=location_of(spark, table_format, tmp_path / "lake"),
        namespace=f"n{abs(hash(str(tmp_path))):x}",
        state=f"file://{tmp_path}/state",
    )


class Dying:
    """A table that dies before or after its append."""

    def __init__(self, table: Table, moment: str) -> None:
        self._table = table
        self._moment = moment

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def append(self, rows: DataFrame, commit: Commit) -> None:
        if self._moment == "before":
            raise Killed
        self._table.append(rows, commit)
        if self._moment == "after":
            raise Killed


def offsets(table: Table) -> list[int]:
    return [] if table.schema() is None else sorted(row.offset for row in table.read().collect())


def loader(config: LakeConfig, way: Route) -> TopicLoader:
    return TopicLoader(config, way, Checkpoint(LocalFiles(), way.checkpoint), check_topic=lambda: None)


def test_a_batch_is_cut_off_at_each_moment_and_repeated(spark: SparkSession, config: LakeConfig) -> None:
    way = route(config, "t")
    assert way is not None
    table, dead = (open_table(spark, config, name) for name in (way.table, way.dead_letters))
    # The schema is fixed between the kill and the restart: nothing may fall between "bad" and "good".
    fixed = replace(config, topics=(replace(config.topics[0], schema="id string"),))
    now_fixed = route(fixed, "t")
    not_decoded = route(replace(config, topics=(TopicRule(name="t"),)), "t")
    assert now_fixed is not None
    assert not_decoded is not None
    kills = (
        ("table", "before", way),
        ("table", "after", now_fixed),
        ("dead", "before", now_fixed),
        ("dead", "before", not_decoded),
        ("dead", "after", way),
    )
    for batch, (who, moment, again) in enumerate(kills):
        records = frame(spark, batch * 10, [b'{"id": 1}', b'{"id": "x"}', b'{"id": 3}', b"{"])
        commit = Commit(_WRITER, batch)
        with pytest.raises(Killed):
            loader(config, way).load(
                records,
                commit,
                Dying(table, moment if who == "table" else ""),
                Dying(dead, moment if who == "dead" else ""),
            )
        restarted = loader(config, again)
        restarted.load(records, commit, table, dead)
        whole = sorted(offsets(table) + offsets(dead))
        assert whole == [each * 10 + at for each in range(batch + 1) for at in range(4)], (who, moment)
        loader(config, again).load(records, commit, table, dead)
        assert sorted(offsets(table) + offsets(dead)) == whole, (who, moment)
    assert len(offsets(dead)) == 2 * len(kills)


class DyingFiles(LocalFiles):
    """Control files of a process that dies at its n-th step."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def _step(self) -> None:
        if self.steps == 0:
            raise Killed
        self.steps -= 1

    def create(self, path: str, text: str) -> bool:
        self._step()
        return super().create(path, text)

    def move(self, source: str, target: str) -> bool:
        self._step()
        return super().move(source, target)

    def remove(self, path: str) -> None:
        self._step()
        super().remove(path)


def _until_it_lives(
    act: Callable[[ParquetTable], None], make: Callable[[LocalFiles], ParquetTable]
) -> Iterator[int]:
    for steps in range(100):
        files = DyingFiles(steps)
        try:
            act(make(files))
        except Killed:
            yield steps
        else:
            return
    raise AssertionError("it never lived")


def test_a_parquet_table_survives_a_kill_between_any_two_steps(spark: SparkSession, tmp_path: Path) -> None:
    path = f"file://{tmp_path}/t"
    rows = spark.range(40, numPartitions=3).selectExpr("id as offset")
    whole = ParquetTable(spark, path, LocalFiles())
    whole.create(rows.schema)
    batch = 0

    def append(table: ParquetTable) -> None:
        table.recover(_WRITER)
        if table.last(_WRITER) < batch:
            table.append(rows, Commit(_WRITER, batch))

    kills = 0
    for steps in _until_it_lives(append, lambda files: ParquetTable(spark, path, files)):
        kills += 1
        append(whole)
        assert offsets(whole) == sorted([*range(40)] * (batch + 1)), f"killed after {steps} steps"
        assert whole.files.names(f"{path}/_headrace/staging") == []
        batch += 1
    assert kills >= 5
