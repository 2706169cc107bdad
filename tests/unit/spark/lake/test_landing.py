"""Files that are added to a table: by which numbers, codecs and statistics it knows them."""

from __future__ import annotations

import json

import pytest

from headrace.spark.lake.tables.delta_actions import add_file, statistics, transaction
from headrace.spark.lake.tables.landing import LandedFile, codec, field_ids
from headrace.spark.lake.tables.table import Commit

FILE = LandedFile("a-1.parquet", 3, 99, "t", 1, 4, 10, 20, 1_700_000_000_123, 1_700_000_001_000, {"key": 2})


def test_iceberg_numbers_columns_by_their_paths() -> None:
    pair = {
        "type": "struct",
        "fields": [
            {"id": 9, "name": "key", "required": False, "type": "string"},
            {"id": 10, "name": "value", "required": False, "type": "binary"},
        ],
    }
    headers = {"type": "list", "element-id": 8, "element": pair, "element-required": False}
    schema = {
        "type": "struct",
        "schema-id": 0,
        "fields": [
            {"id": 1, "name": "topic", "required": False, "type": "string"},
            {"id": 6, "name": "headers", "required": False, "type": headers},
        ],
    }
    assert field_ids(schema) == {
        "topic": 1,
        "headers": 6,
        "headers.list.element": 8,
        "headers.list.element.key": 9,
        "headers.list.element.value": 10,
    }


@pytest.mark.parametrize(
    ("spark", "parquet"),
    [("snappy", "snappy"), ("ZSTD", "zstd"), ("uncompressed", "none"), ("lz4_raw", "lz4"), ("lzo", "snappy")],
)
def test_codecs_are_those_that_spark_would_write_where_arrow_has_them(spark: str, parquet: str) -> None:
    assert codec(spark) == parquet


def test_delta_is_told_of_a_file_and_of_its_commit() -> None:
    entry = json.loads(add_file(FILE, 5))["add"]
    assert (entry["path"], entry["size"], entry["dataChange"]) == ("a-1.parquet", 99, True)
    assert json.loads(entry["stats"]) == {
        "numRecords": 3,
        "minValues": {"topic": "t", "partition": 1, "offset": 10, "timestamp": "2023-11-14T22:13:20.123Z"},
        "maxValues": {"topic": "t", "partition": 4, "offset": 20, "timestamp": "2023-11-14T22:13:21.000Z"},
        "nullCount": {"key": 2},
    }
    assert json.loads(transaction(Commit("w", 7), 5)) == {
        "txn": {"appId": "w", "version": 7, "lastUpdated": 5}
    }


@pytest.mark.parametrize(("first", "last"), [(-1, 5), (0, 253_402_300_800_000)])
def test_times_without_a_text_are_left_out(first: int, last: int) -> None:
    found = statistics(FILE._replace(first_ms=first, last_ms=last))
    assert "timestamp" not in json.dumps(found)
