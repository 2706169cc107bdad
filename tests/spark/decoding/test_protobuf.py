"""Protobuf through Spark: the same decoder as in the unit tests, as a column of a frame."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass
from pyspark.sql import DataFrame, SparkSession

from headrace.spark.decoding import protobuf_schema
from headrace.spark.decoding.decode import decode
from headrace.spark.decoding.formats import Decoding, DecodingRefused, Format
from headrace.spark.decoding.wire_format import header_of
from tests.spark.decoding.registry_server import serve

_OLD = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Order {
  int32 id = 1; string gone = 2; google.protobuf.Timestamp at = 3; repeated Line lines = 4;
  map<string, double> prices = 5; uint64 huge = 6;
  message Line { string sku = 1; }
}
"""
_NEW = _OLD.replace("int32 id = 1; string gone = 2;", "int64 id = 1; string added = 7;")


def _bytes(text: str, document: dict[str, Any]) -> bytes:
    schema = protobuf_schema.given(text, None)
    encoded: bytes = ParseDict(document, GetMessageClass(schema.descriptor())()).SerializeToString()
    return encoded


def _frame(spark: SparkSession, values: list[bytes | None]) -> DataFrame:
    rows = [(value, number) for number, value in enumerate(values)]
    return spark.createDataFrame(rows, "value binary, offset bigint").coalesce(1)


def test_records_of_a_given_schema_and_a_poisonous_one(spark: SparkSession) -> None:
    full = {
        "id": 3, "at": "2026-11-15T12:00:00Z", "lines": [{"sku": "a"}], "prices": {"x": 0.5}, "huge": 2**63,
    }  # fmt: skip
    frame = _frame(spark, [_bytes(_OLD, full), b"\xff\xff", None])
    rows = decode(frame, Decoding(Format.PROTOBUF, _OLD)).collect()
    assert rows[0].decoded.asDict(recursive=True) == {
        "id": 3, "gone": "", "at": datetime(2026, 11, 15, 12), "lines": [{"sku": "a"}], "prices": {"x": 0.5},
        "huge": 2**63,
    }  # fmt: skip
    assert rows[1].problem.startswith("the bytes are not a shop.Order: ")
    assert [row.offset for row in rows] == [0, 1, 2]
    assert (rows[1].decoded, rows[2].decoded, rows[2].problem) == (None, None, None)


def test_several_versions_of_a_registry_in_one_batch(spark: SparkSession) -> None:
    with serve() as registry:
        first = registry.register("orders-value", _OLD, "PROTOBUF")
        odd = registry.register("orders-value", 'import "gone.proto";', "PROTOBUF")
        second = registry.register("orders-value", _NEW, "PROTOBUF")
        values: list[bytes | None] = [
            header_of(first) + b"\0" + _bytes(_OLD, {"id": 1, "gone": "g"}),
            header_of(second) + b"\0" + _bytes(_NEW, {"id": 2**40, "added": "a"}),
            header_of(50) + b"\0",
            header_of(odd) + b"\0",
        ]
        decoding = Decoding(Format.PROTOBUF, registry=registry.url, subject="orders-value")
        decoded = decode(_frame(spark, values), decoding)
        good = decoded.where("problem is null").select("decoded.id", "decoded.added").collect()
        assert [tuple(row) for row in good] == [(1, ""), (2**40, "a")]
        unlisted, unusable = decoded.where("problem is not null").orderBy("offset").collect()
        assert unusable.problem.startswith(f"schema id {odd} cannot be used: ")
        assert unlisted.problem == "schema id 50 is not registered under orders-value"
        plan = decoded.where("problem is null")._jdf.queryExecution().executedPlan().toString()
        assert plan.count("ArrowEvalPython") == 1
        with pytest.raises(DecodingRefused, match="has a schema of type PROTOBUF, not AVRO"):
            decode(
                _frame(spark, values), Decoding(Format.AVRO, registry=registry.url, subject="orders-value")
            )
