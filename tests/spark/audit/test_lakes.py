"""An audit of what `headrace lake` fills: dead letters count, and a batch that is half done is no loss."""

from __future__ import annotations

import shutil
from pathlib import Path
from unittest.mock import Mock

import pytest
from pyspark.sql import SparkSession

from headrace.audit.tally import Cell, Tally
from headrace.audit.verdict import Kind, State
from headrace.spark.audit import tiers
from headrace.spark.audit.config import AuditConfig, LakeTable
from headrace.spark.audit.lakes import tables_of
from headrace.spark.lake import config as lake_configs
from headrace.spark.lake import job
from headrace.spark.lake.config import LakeConfig
from tests.broker_process import BrokerProcess
from tests.spark.audit.pipeline import BEGIN_MS, WINDOW_MS, Pipeline, Sent, Teller


def lake_of(pipeline: Pipeline) -> LakeConfig:
    text = f"""
    [kafka]
    "bootstrap.servers" = "{pipeline.bootstrap}"
    [lake]
    location = "lake"
    [[topics]]
    name = "{pipeline.topic}"
    format = "json"
    schema = "id int"
    keep_value = true
    """
    return lake_configs.parse(text, pipeline.directory / "lake.toml")


def test_between_the_two_commits_of_a_batch_nothing_is_lost(
    spark: SparkSession, headrace: BrokerProcess, tmp_path: Path
) -> None:
    pipeline = Pipeline(spark, headrace.bootstrap, tmp_path)
    records = [Sent(0, BEGIN_MS + number, b"k", b'{"id":%d}' % number) for number in range(20)]
    records[7] = records[7]._replace(value=b'{"id":')
    teller = Teller(pipeline.topic)
    teller.acknowledged(records)
    teller.tell(BEGIN_MS + WINDOW_MS, closing=True)
    pipeline.store(records)
    pipeline.tell(*teller.events)
    lake = lake_of(pipeline)
    tables = tables_of(lake, (pipeline.topic,))
    auditor = pipeline.auditor(lakes=tables)

    # As a driver leaves it that dies between the records and the dead letters of a batch.
    job.run(spark, lake, once=True)
    checkpoint = Path(str(tables[0].checkpoint).removeprefix("file://"))
    shutil.rmtree(tmp_path / "lake" / f"{pipeline.topic}_dead_letters")
    shutil.rmtree(checkpoint / "commits")
    (half,) = auditor.run_once().verdicts
    assert (half.state, half.differences) == (State.INCOMPLETE, ())
    assert half.tiers["lake"].count == 19, "what is not there, as the dead letters now, is empty"

    # Only the checkpoint can tell that from a loss.
    rows_only = [LakeTable(table.format, table.location) for table in tables]
    blind = pipeline.auditor(lakes=tuple(rows_only), state=str(tmp_path / "other"))
    (lost,) = blind.run_once().verdicts
    assert [(found.tier, found.kind) for found in lost.differences] == [("lake", Kind.LOST)]

    job.run(spark, lake, once=True)
    (whole,) = auditor.run_once().verdicts
    assert (whole.state, whole.tiers["lake"].count) == (State.CERTIFIED, 20)


def test_a_commit_while_a_table_is_counted_loses_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = LakeTable("delta", str(tmp_path / "table"))
    place = ("'t' as topic", "0 as partition", "id as offset")
    record = (f"timestamp_millis({BEGIN_MS}) as timestamp", "binary('k') as key", "binary('v') as value")
    frame = spark.range(10).selectExpr(*place, *record)
    frame.where("offset < 6").write.format("delta").save(table.location)

    def parse_and_commit(count: int, checksum: str) -> Tally:
        frame.where("offset >= 6").write.format("delta").mode("append").save(table.location)
        return Tally.parse(count, checksum)

    monkeypatch.setattr(tiers, "Tally", Mock(parse=parse_and_commit))
    config = AuditConfig({"bootstrap.servers": "x:1"}, ("t",), "unused", window_ms=WINDOW_MS)
    found = tiers.lake_tier(spark, [table], config, [("t", BEGIN_MS)], {("t", 0): 10})
    counted = found.cells[Cell("t", 0, BEGIN_MS)].count
    assert (counted, found.positions) == (6, {("t", 0): 6})
