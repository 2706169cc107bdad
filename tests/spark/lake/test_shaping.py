"""What Spark makes of a batch. Only planned: the rows are for other tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import Observation, SparkSession
from pyspark.sql.types import StructType

from headrace.spark.decoding.formats import Decoding, Format
from headrace.spark.lake import shaping
from headrace.spark.lake.plan import Route
from headrace.spark.lake.table_schema import follow

_RECORDS = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int, headers array<struct<key: string, value: binary>>"
)


def test_good_records_are_parsed_once_and_counted_without_their_reasons(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], _RECORDS)
    decoding = Decoding(Format.JSON, "id bigint not null, name string")
    shaped = shaping.shape(frame, Route("t", "t", "t_dead_letters", decoding, False, "state"))
    following = follow(StructType(shaped.incoming.fields[:2]), shaped.incoming)
    judged = shaping.judge(shaped, following)
    rows = shaping.counted_rows(judged, shaped, following, Observation())
    assert set(rows.columns) == set(shaped.incoming.names)
    plan = rows._jdf.queryExecution().executedPlan().toString()
    assert "CollectMetrics" in plan
    assert plan.count("from_json(") == 1
    assert "parseJson" not in plan  # it stands in every reason
    assert "parseJson" in shaping.dead_letters(judged)._jdf.queryExecution().executedPlan().toString()


def test_a_column_of_the_values_own_is_not_mistaken_for_the_bytes(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], _RECORDS)
    decoding = Decoding(Format.JSON, "value double")
    typed = shaping.shape(frame, Route("t", "t", "t_dead_letters", decoding, False, "state"))
    kept_too = shaping.shape(frame, Route("t", "t", "t_dead_letters", decoding, True, "state"))
    with pytest.raises(shaping.ColumnTaken, match=r'another table \(table = "..."\)'):
        shaping.judge(kept_too, follow(typed.incoming, kept_too.incoming))


def test_names_that_differ_only_in_case_and_messages_without_fields_are_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = """
        syntax = "proto3";
        message Event { int64 id = 1; string ID = 2; Ping ping = 3; Ping gone = 4; repeated Ping all = 5; }
        message Ping {}
    """
    value = bytearray(b"\x08\x01\x12\x01a\x1a\x00\x2a\x00")
    frame = spark.createDataFrame([(None, value, "t", 0, 0, None, 0, [])], _RECORDS)
    decoding = Decoding(Format.PROTOBUF, text, message="Event")
    shaped = shaping.shape(frame, Route("t", "t", "t_dead_letters", decoding, False, "state"))
    following = follow(shaped.incoming, shaped.incoming)
    table = str(tmp_path / "table")
    shaping.good_rows(shaping.judge(shaped, following), shaped, following).write.parquet(table)
    [row] = spark.read.parquet(table).select("id", "value_ID", "ping", "gone", "all").collect()
    assert tuple(row) == (1, "a", "{}", None, ["{}"])
