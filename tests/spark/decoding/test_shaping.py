"""Records of an older or newer schema are written in the shape of their table."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from headrace.spark.decoding.evolution import Evolution, evolve
from headrace.spark.decoding.shaping import shaped


def _struct(ddl: str) -> StructType:
    found = StructType.fromDDL(ddl)
    assert isinstance(found, StructType)
    return found


def test_records_take_the_shape_of_the_table_by_name_at_every_depth(spark: SparkSession) -> None:
    old = _struct("gone string, n int, s struct<x: float, g: int>, a array<struct<d: decimal(3,1)>>")
    new = _struct(
        "a array<struct<e: int, d: decimal(5,2)>>, s struct<y: string, x: double>, n bigint,"
        " m map<string, struct<k: int>>"
    )
    evolution = evolve(old, new)
    assert isinstance(evolution, Evolution)
    rows: list[Any] = [([(1, None)], ("why", 0.5), 2**40, {"key": (3,)}), ([None], None, None, None)]
    frame = spark.createDataFrame(rows, new).select(sf.struct("*").alias("record"))
    found = frame.select(shaped(sf.col("record"), new, evolution.schema).alias("r")).select("r.*")
    assert [field.dataType for field in found.schema] == [field.dataType for field in evolution.schema]
    first, second = (row.asDict(recursive=True) for row in found.collect())
    assert first == {
        "gone": None, "n": 2**40, "s": {"x": 0.5, "g": None, "y": "why"},
        "a": [{"d": None, "e": 1}], "m": {"key": {"k": 3}},
    }  # fmt: skip
    assert second == {"gone": None, "n": None, "s": None, "a": [None], "m": None}
