"""No batch passes for a repetition of another one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headrace.spark.table.loader import StepTaken
from tests.broker_process import BrokerProcess
from tests.spark.table.conftest import PLAIN, TablesUnderTest, order


def test_a_batch_that_the_table_is_past_is_not_skipped(spark: SparkSession, tmp_path: Path) -> None:
    tables = TablesUnderTest(spark, tmp_path, "delta")
    config = tables.config(PLAIN.format(topic="t"))
    tables.load(config, [(0, 0, b"a", order("ada", 1))], 3)
    with pytest.raises(StepTaken, match=r"step 3 already.* step 2.*headrace table rebuild orders"):
        tables.load(config, [(0, 1, b"b", order("bob", 2))], 2)


def test_a_checkpoint_that_came_back_from_a_copy_loses_no_record(
    spark: SparkSession, headrace: BrokerProcess, new_topic: Callable[[], str], tmp_path: Path
) -> None:
    topic = new_topic()
    tables = TablesUnderTest(spark, tmp_path, "delta")
    config = tables.config(PLAIN.format(topic=topic), headrace.bootstrap)
    tables.produce(headrace.bootstrap, topic, [(b"a", order("ada", 1)), (b"b", order("bob", 2))])
    tables.run(config)
    state, copy = tmp_path / "tables" / "_headrace", tmp_path / "copy"
    shutil.copytree(state, copy)
    tables.produce(headrace.bootstrap, topic, [(b"a", None)])
    tables.run(config)
    shutil.rmtree(state)
    shutil.copytree(copy, state)
    # Batch 1 after the copy. The table has had another batch 1, and would take this one for it.
    tables.produce(headrace.bootstrap, topic, [(b"c", order("cy", 3))])
    tables.run(config)
    rows = tables.rows(config, "orders")
    assert {row.key: (row.customer, row.total) for row in rows} == {"b": ("bob", 2), "c": ("cy", 3)}
