"""The example runs by its one command; its numbers agree with each other and with what lies on the disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

EXAMPLE = Path(__file__).parents[2] / "examples" / "clickstream"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, spark_jars: Path) -> Path:
    """What a small run leaves behind."""
    directory = tmp_path_factory.mktemp("clickstream") / "run"
    command = [sys.executable, "-m", "clickstream", "--minutes", "0.3", "--rate", "300"]
    ran = subprocess.run(
        [*command, "--directory", str(directory)],
        cwd=EXAMPLE,
        env={**os.environ, "HEADRACE_SPARK_JARS": str(spark_jars)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=540,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    return directory


@pytest.fixture(scope="module")
def summary(run: Path) -> Any:
    return json.loads((run / "summary.json").read_text())


def delta(spark: SparkSession, path: Path) -> DataFrame:
    return spark.read.format("delta").load(str(path))


def test_what_was_sent_is_in_the_lake_and_certified(spark: SparkSession, run: Path, summary: Any) -> None:
    assert [station["topic"] for station in summary["stations"]] == ["page-views", "orders"]
    for station in summary["stations"]:
        table = delta(spark, run / "lake" / station["topic"])
        dead = run / "lake" / f"{station['topic']}_dead_letters"
        rows = table.select("partition", "offset")
        if dead.exists():
            rows = rows.union(delta(spark, dead).select("partition", "offset"))
        assert rows.count() == rows.distinct().count() == station["sent"] == station["certified"]
        assert station["windows"] >= 2
    views = summary["stations"][0]
    assert views["sent"] > 3_000
    assert views["dead_letters"] > 0


def test_the_audit_found_no_difference_and_left_nothing_open(spark: SparkSession, run: Path) -> None:
    verdicts = delta(spark, run / "audit" / "verdicts")
    last = verdicts.groupBy("topic", "window_ms").agg({"step": "max"})
    last = last.withColumnRenamed("max(step)", "step")
    states = verdicts.join(last, ["topic", "window_ms", "step"]).select("state").distinct().collect()
    assert [row.state for row in states] == ["certified"]
    assert verdicts.where("state = 'different'").isEmpty()


def test_the_table_has_the_last_state_of_each_order(spark: SparkSession, run: Path, summary: Any) -> None:
    records = delta(spark, run / "lake" / "orders")
    last = {}
    for row in records.orderBy("partition", "offset").collect():
        last[bytes(row.key).decode()] = None if row.value is None else (row.customer, row.status, row.total)
    there = {number: order for number, order in last.items() if order is not None}
    table = delta(spark, run / "tables" / "latest-orders")
    assert {row.key: (row.customer, row.status, row.total) for row in table.collect()} == there
    assert len(there) == summary["orders"] == summary["in_table"]
    assert summary["table_differs"] == 0
    assert len(there) < len(last), "nobody cancelled: the test cannot see whether tombstones delete"


def test_the_totals_are_those_of_the_lake(summary: Any) -> None:
    assert summary["traffic"] == summary["traffic_in_lake"] > 0


def test_charts_are_drawn(run: Path) -> None:
    assert "certified" in (run / "charts" / "page-views.svg").read_text()
    assert (run / "charts" / "audit.html").exists()


def test_nothing_is_left_running(run: Path) -> None:
    """Brokers and Spark have the run's directory in their commands."""
    left = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended meanwhile
            left += [path] if str(run).encode() in path.read_bytes() else []
    assert left == []
    assert "Traceback" not in (run / "broker" / "broker.log").read_text()
