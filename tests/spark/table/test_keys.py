"""Keys of each kind, and what becomes of records that have none. One kind goes into a table."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from headrace.spark.lake.table_schema import follow
from headrace.spark.table import changes
from headrace.spark.table.changes import NoSuchColumn
from headrace.spark.table.config import TableConfig
from headrace.spark.table.plan import route_of
from tests.spark.table.conftest import Record, TablesUnderTest


def judge(
    tables: TablesUnderTest, config: TableConfig, batch: list[Record]
) -> tuple[list[Row], dict[int, str]]:
    """What the batch would change, and the reason of each dead letter by its offset."""
    (spec,) = config.tables
    shaped = changes.shape(tables.frame(batch), spec, route_of(config.store, spec, 0))
    judged = changes.judge(shaped, follow(shaped.incoming, shaped.incoming), spec)
    letters = changes.dead_letters(judged).collect()
    rows = changes.good(changes.last_of_each_key(judged, spec)).collect()
    return rows, {row.offset: row.reason for row in letters}


def test_bytes_stay_bytes_and_values_too(spark: SparkSession, tmp_path: Path) -> None:
    tables = TablesUnderTest(spark, tmp_path, "delta")
    config = tables.config('[[tables]]\ntopic = "t"\n')
    batch: list[Record] = [
        (0, 0, b"\xff", b"a"),
        (0, 1, b"\xff", b"b"),
        (0, 2, None, b"c"),
        (0, 3, b"", b"d"),
    ]
    rows, reasons = judge(tables, config, batch)
    assert {bytes(row.key): (bytes(row.value), row.offset) for row in rows} == {
        b"\xff": (b"b", 1),
        b"": (b"d", 3),
    }
    assert reasons == {2: "the record has no key"}


def test_a_key_with_fields_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    tables = TablesUnderTest(spark, tmp_path, "iceberg")
    config = tables.config('[[tables]]\ntopic = "t"\nkey = "json"\nkey_schema = "shop string, id bigint"\n')
    batch: list[Record] = [
        (0, 0, b'{"shop": "a", "id": 1}', b"old"),
        (0, 1, b'{"id": 1, "shop": "a"}', b"new"),  # other bytes, the same key
        (0, 2, b'{"shop": "b", "id": 1}', b"gone"),
        (0, 3, b"not JSON", b"x"),
    ]
    tables.load(config, batch, 1)
    tables.load(config, [(0, 4, b'{"shop":"b","id":1}', None)], 2)
    rows = tables.rows(config, "t")
    assert {(row.key.shop, row.key.id): bytes(row.value) for row in rows} == {("a", 1): b"new"}
    (letter,) = tables.rows(config, "t_dead_letters")
    assert bytes(letter.key) == b"not JSON"
    assert letter.reason.startswith("the key: not JSON")


_FIELDS = """
[[tables]]
topic = "t"
key_fields = ["id"]
format = "json"
schema = "id bigint, status string, __deleted string, __bad string, __Headrace_Deleted string"
deleted = "status = 'gone' OR __deleted = 'true'"
order = "timestamp"
"""


def test_a_key_from_the_value_is_deleted_by_a_condition(spark: SparkSession, tmp_path: Path) -> None:
    tables = TablesUnderTest(spark, tmp_path, "delta")
    config = tables.config(_FIELDS)
    batch: list[Record] = [
        (0, 0, None, b'{"id": 1, "status": "open"}'),
        (1, 0, None, b'{"id": 1, "status": "paid"}'),  # of the same time: the partition decides
        (0, 1, None, b'{"id": 2}'),
        (0, 2, None, b'{"status": "open"}'),
        (0, 3, b"k", None),
        (0, 4, None, b'{"id": 3, "status": "open"}'),
        (0, 5, None, b'{"id": 3, "status": "gone"}'),
        # As Debezium writes it, and what is called like our own.
        (0, 6, None, b'{"id": 4, "__deleted": "true"}'),
        (0, 7, None, b'{"id": 5, "__deleted": "no", "__bad": "b", "__Headrace_Deleted": "h"}'),
    ]
    rows, reasons = judge(tables, config, batch)
    found = {row.id: (row.status, row[changes.DELETED]) for row in rows}
    assert found == {
        1: ("paid", False),
        2: (None, False),
        3: ("gone", True),
        4: (None, True),
        5: (None, False),
    }
    (kept,) = [row for row in rows if row.id == 5]
    assert (kept["__deleted"], kept["__bad"], kept["value___Headrace_Deleted"]) == ("no", "b", "h")
    assert reasons == {
        2: "field id, a part of the key, is null or missing",
        3: "a tombstone has no field id, so its row cannot be found",
    }


def test_a_record_whose_deletion_cannot_be_told_is_a_dead_letter(spark: SparkSession, tmp_path: Path) -> None:
    tables = TablesUnderTest(spark, tmp_path, "delta")
    # The same twice: what is computed for both is attempted too.
    condition = "CAST(total AS INT) = 1 OR CAST(total AS INT) = 2"
    config = tables.config(
        '[[tables]]\ntopic = "t"\nkey = "string"\nformat = "json"\nschema = "total string"\n'
        f'deleted = "{condition}"\n'
    )
    batch: list[Record] = [
        (0, 0, b"a", b'{"total": "0"}'),
        (0, 1, b"b", b'{"total": "2"}'),
        (0, 2, b"a", b'{"total": "many"}'),
        (0, 3, b"c", b"{}"),
        (0, 4, b"d", None),
    ]
    rows, reasons = judge(tables, config, batch)
    assert {row.key: (row.offset, row[changes.DELETED]) for row in rows} == {
        "a": (0, False),
        "b": (1, True),
        "c": (3, False),
        "d": (4, True),
    }
    assert list(reasons) == [2]
    assert reasons[2].startswith(f"deleted = '{condition}' cannot be computed")


def test_a_column_that_is_not_there_is_said_with_those_that_are(spark: SparkSession, tmp_path: Path) -> None:
    tables = TablesUnderTest(spark, tmp_path, "delta")
    config = tables.config(_FIELDS.replace('["id"]', '["number"]'))
    with pytest.raises(NoSuchColumn, match=r"t has no column number; it has .*id, status,"):
        judge(tables, config, [(0, 0, None, b"{}")])
