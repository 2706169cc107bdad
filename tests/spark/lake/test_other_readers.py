"""A lake is read without Spark too: by delta-rs, Polars and DuckDB."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import polars
from deltalake import DeltaTable

from tests.broker_process import BrokerProcess
from tests.spark.lake.conftest import LakeUnderTest

Make = Callable[[BrokerProcess, str], LakeUnderTest]

_TOPIC = '[[topics]]\nname = "{}"\nformat = "json"\nschema = "id {}, name string"'


def _filled(lake: LakeUnderTest, topic: str) -> str:
    """Where the table of 30 records is."""
    lake.produce_json(topic, [{"id": number, "name": f"n{number}"} for number in range(30)])
    config = lake.config(_TOPIC.format(topic, "int"))
    lake.load(config)
    return str(lake.directory / "lake" / topic)


def test_delta_rs_polars_and_duckdb_read_a_delta_table(
    headrace: BrokerProcess,
    make_lake: Make,
    new_topic: Callable[[], str],
) -> None:
    topic = new_topic()
    lake = make_lake(headrace, "delta")
    path = _filled(lake, topic)

    table = DeltaTable(path)
    assert "typeWidening" not in (table.protocol().writer_features or [])
    found = table.to_pyarrow_table()
    assert sorted(found.column("id").to_pylist()) == list(range(30))
    assert polars.read_delta(path).select(polars.col("id").sum()).item() == sum(range(30))
    assert duckdb.execute("select count(distinct name) from found").fetchall() == [(30,)]

    # A column that becomes wider still does.
    lake.produce_json(topic, [{"id": 1 << 40, "name": "large"}])
    wide = lake.config(_TOPIC.format(topic, "bigint"))
    lake.load(wide)
    assert max(row.id for row in lake.rows(wide, topic)) == 1 << 40


def test_duckdb_and_polars_read_a_parquet_table(
    headrace: BrokerProcess,
    make_lake: Make,
    new_topic: Callable[[], str],
) -> None:
    topic = new_topic()
    path = _filled(make_lake(headrace, "parquet"), topic)
    assert polars.read_parquet(f"{path}/**/*.parquet").get_column("id").sum() == sum(range(30))
    (counted,) = duckdb.execute(
        f"select count(*), sum(id) from read_parquet('{path}/**/*.parquet')"
    ).fetchall()
    assert counted == (30, sum(range(30)))
