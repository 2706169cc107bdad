"""`headrace table` as people use it, with the session that the tests have anyway."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from headrace.cli import table_run
from headrace.cli.main import cli
from headrace.spark.lake import locks
from tests.broker_process import BrokerProcess
from tests.spark.table.conftest import PLAIN, TablesUnderTest, order


def call(*arguments: str) -> Any:
    result = CliRunner().invoke(cli, ["table", *arguments, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_table_is_run_asked_and_rebuilt(
    spark: SparkSession,
    headrace: BrokerProcess,
    new_topic: Callable[[], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @contextmanager
    def given(*_: object) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(table_run, "spark_for", given)
    topic = new_topic()
    path = str(tmp_path / "table.toml")
    assert CliRunner().invoke(cli, ["table", "init", path]).exit_code == 0
    Path(path).write_text(
        f'[kafka]\n"bootstrap.servers" = "{headrace.bootstrap}"\n[store]\nlocation = "tables"\n'
        + f'{PLAIN.format(topic=topic)}[[indexes]]\ntable = "orders"\ncolumns = ["customer"]\n'
    )
    assert call("status", "-c", path) == {"tables": [], "absent": [topic]}
    TablesUnderTest.produce(
        headrace.bootstrap, topic, [(b"a", order("ada", 1)), (b"a", order("bob", 2)), (b"b", b"{")]
    )
    (before,) = call("status", "-c", path)["tables"]
    assert (before["loaded"], before["lag"], before["last"]) == (0, 3, None)

    (done,) = call("run", "--once", "-c", path)
    assert [batch["records"] for batch in done["batches"]] == [3]
    (after,) = call("status", "-c", path)["tables"]
    assert (after["loaded"], after["lag"]) == (3, 0)
    last = after["last"]
    assert (last["step"], last["upserts"], last["deletes"], last["bad"]) == (1, 1, 0, 1)
    assert after["derived"] == ["orders_by_customer"]

    # A step that only dead letters have. It may not be used again.
    TablesUnderTest.produce(headrace.bootstrap, topic, [(b"b", b"[")])
    call("run", "--once", "-c", path)
    (rebuilt,) = call("rebuild", "orders", "-c", path)
    assert rebuilt == {"table": "orders", "step": 3, "rows": 1, "dead_letters": 1, "ends": {"0": 4}}
    (after,) = call("status", "-c", path)["tables"]
    assert (after["loaded"], after["lag"]) == (4, 0)
    TablesUnderTest.produce(headrace.bootstrap, topic, [(b"a", None), (b"c", b"}")])
    call("run", "--once", "-c", path)
    assert spark.read.format("delta").load(f"{tmp_path}/tables/orders").isEmpty()
    dead = spark.read.format("delta").load(f"{tmp_path}/tables/orders_dead_letters").collect()
    assert sorted(row.offset for row in dead) == [2, 3, 5]

    said = CliRunner().invoke(cli, ["table", "rebuild", "-c", path])
    assert said.exit_code == 2
    assert "name the tables to rebuild, or say --all" in said.output
    with locks.held(f"file://{tmp_path}/tables/_headrace", "run"):
        said = CliRunner().invoke(cli, ["table", "rebuild", "orders", "-c", path])
    assert "already does `headrace table run`" in said.output
